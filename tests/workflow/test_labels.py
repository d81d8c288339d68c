from __future__ import annotations

import codecs
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from cilf.errors import BadInput
from cilf.workflow import Findings
from cilf.workflow.labels import read_labels

Edit = Callable[[Path, Callable[[dict[str, str]], None]], None]


def labels_in(source: str | Path, findings: str | None = None) -> dict[str, str]:
    return read_labels(source, findings)[1]


def members(cluster: int) -> set[str]:
    found = Findings("found").assignments
    return set(found.ids[found.cluster == cluster].tolist())


def test_nothing_is_named_at_first(points: Path) -> None:
    for source in ("found", "found/findings.csv", "found/clusters.csv"):
        with pytest.raises(BadInput, match="names nothing: write names into the column 'name'"):
            read_labels(source)


def test_a_cluster_names_all_its_members(points: Path, edit: Edit) -> None:
    edit(points / "found/clusters.csv", lambda row: row.update(name=f" class {row['cluster']} "))
    expected = dict.fromkeys(members(0), "class 1") | dict.fromkeys(members(1), "class 2")
    assert labels_in("found") == labels_in("found/clusters.csv") == expected


def test_the_name_of_an_instance_comes_before_that_of_its_cluster(points: Path, edit: Edit) -> None:
    odd, gone = sorted(members(0))[:2]
    known = Findings("found").assignments.ids[Findings("found").assignments.cluster < 0][0]
    own = {odd: "odd", gone: "-", known: "surprise"}
    edit(points / "found/clusters.csv", lambda row: row.update(name="x" * int(row["cluster"])))
    edit(points / "found/findings.csv", lambda row: row.update(name=own.get(row["identity"], "")))
    together = labels_in("found")
    assert (together[odd], together[known]) == ("odd", "surprise")
    assert gone not in together
    assert {name for i, name in together.items() if i in members(1)} == {"xx"}
    assert labels_in("found/findings.csv") == {odd: "odd", known: "surprise"}
    edit(points / "found/clusters.csv", lambda row: row.update(name="-"))
    assert labels_in("found") == {odd: "odd", known: "surprise"}


def test_a_label_filled_in_for_something_new_counts(
    points: Path, edit: Edit, caplog: pytest.LogCaptureFixture
) -> None:
    odd = min(members(0))

    def change(row: dict[str, str]) -> None:
        if row["identity"] == odd:
            row["label"] = "odd"
        elif row["label"] == "left":
            row["label"] = "LEFT"  # as a spreadsheet might do

    edit(points / "found/findings.csv", change)
    with caplog.at_level(logging.WARNING, logger="cilf"):
        assert labels_in("found") == {odd: "odd"}
    assert "known instances was changed" in caplog.text
    edit(points / "found/findings.csv", lambda row: row.update(name="even"))
    with pytest.raises(BadInput, match=f"'{odd}' the label 'odd' and the name 'even': clear one"):
        labels_in("found")


def test_any_table_of_identities_and_labels(points: Path) -> None:
    content = "Label;Identity;when\r\nup;up-0;now\r\n;up-1;\r\n\r\n;;\r\ndown;down-0;now\r\n"
    (points / "mine.csv").write_bytes(codecs.BOM_UTF8 + content.encode())
    assert labels_in("mine.csv", "found") == {"up-0": "up", "down-0": "down"}
    (points / "found/mine.csv").write_bytes(content.encode())
    assert labels_in("found/mine.csv") == {"up-0": "up", "down-0": "down"}
    with pytest.raises(BadInput, match=r"mine\.csv does not lie in a findings folder.*--findings"):
        labels_in("mine.csv")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("identity,label\nup-0,up\nnobody,up\n", "'nobody' in line 3"),
        ("identity,kind\nup-0,up\n", "columns 'identity', 'kind': it needs 'identity' and 'label'"),
        ("identity,label\nup-0,up\nup-0,down\n", "gives 'up-0' two names, 'up' and 'down'"),
        ("identity,label\nup-0,\n", "names nothing"),
        ("cluster,name\n3,up\n", "cluster '3' .line 2.: the findings have 2"),
        ("cluster,name\nup,up\n", "cluster 'up'"),
    ],
)
def test_a_table_that_says_something_else_is_refused(
    points: Path, table: str, problem: str
) -> None:
    (points / "mine.csv").write_text(table)
    with pytest.raises(BadInput, match=problem):
        labels_in("mine.csv", "found")


def test_a_column_that_was_removed_is_missed(points: Path) -> None:
    (points / "found/findings.csv").write_text("identity,label\nup-0,up\n")
    with pytest.raises(BadInput, match=r"findings\.csv lacks the column 'name'"):
        labels_in("found")


def test_clusters_may_be_written_as_numbers_with_a_point(points: Path) -> None:
    (points / "found/clusters.csv").write_text("cluster;name\n2.0;two\n")
    assert set(labels_in("found").values()) == {"two"}
