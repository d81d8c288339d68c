from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.errors import BadInput, CilfError
from cilf.workflow import Findings, findings_writer, merge_clusters, split_cluster

Change = Callable[[dict[str, str]], None]
Edit = Callable[[Path, Change], None]


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def names_of(folder: Path) -> dict[str, str]:
    return {row["cluster"]: row["name"] for row in rows_of(folder / "clusters.csv")}


def test_a_merge_and_a_split_lead_back(points: Path) -> None:
    before = Findings.open("found")
    clusters = [set(before.assignments.ids[before.assignments.cluster == c]) for c in (0, 1)]
    merged = merge_clusters("found", [2, 1])
    assert merged.assignments.cluster_sizes == [sum(map(len, clusters))]
    assert (merged.assignments.cluster < 0).sum() == (before.assignments.cluster < 0).sum()
    split = split_cluster("found", 1, 2)
    parts = [set(split.assignments.ids[split.assignments.cluster == c]) for c in (0, 1)]
    assert sorted(parts, key=sorted) == sorted(clusters, key=sorted)
    assert split.id == before.id
    edits = [{k: v for k, v in edit.items() if k != "time"} for edit in split.about["edits"]]
    assert edits == [{"merged": [1, 2], "into": 1}, {"split": 1, "into": [1, 2]}]


def test_all_files_say_the_same(points: Path) -> None:
    (points / "found/notes.txt").write_text("mine")
    split = split_cluster("found", 2, 3)
    folder, sizes = points / "found", split.assignments.cluster_sizes
    assert len(sizes) == 4
    assert sizes[1] >= sizes[2] >= sizes[3]
    assert split.about["clusters"] == sizes
    rows = rows_of(folder / "findings.csv")
    counts = [sum(row["cluster"] == str(c + 1) for row in rows) for c in range(4)]
    assert counts == sizes == [int(row["instances"]) for row in rows_of(folder / "clusters.csv")]
    sheets = sorted(path.name for path in folder.glob("cluster-*"))
    assert sheets == [f"cluster-{c + 1}.txt" for c in range(4)]
    assert [f'id="cluster-{c}"' in (folder / "index.html").read_text() for c in range(1, 6)] == [
        True, True, True, True, False,
    ]  # fmt: skip
    assert (folder / "notes.txt").read_text() == "mine"
    merge_clusters("found", [1, 2, 4])
    assert len(list(folder.glob("cluster-*"))) == 2
    assert Findings.open("found").assignments.cluster_sizes == [
        sizes[0] + sizes[1] + sizes[3],
        sizes[2],
    ]


def test_later_clusters_move_up(points: Path) -> None:
    first = split_cluster("found", 1, 3).assignments
    merged = merge_clusters("found", [1, 3]).assignments
    assert merged.cluster[first.cluster == 1].tolist() == [1] * int((first.cluster == 1).sum())
    assert set(merged.cluster[np.isin(first.cluster, [0, 2])].tolist()) == {0}
    assert set(merged.cluster[first.cluster == 3].tolist()) == {2}


def test_what_people_wrote_stays(points: Path, edit: Edit) -> None:
    edit(points / "found/clusters.csv", lambda row: row.update(name=f"n{row['cluster']}"))
    rows = rows_of(points / "found/findings.csv")
    odd, known = rows[0]["identity"], rows[-1]["identity"]
    filled = rows[1]["identity"]

    def write(row: dict[str, str]) -> None:
        row["name"] = {odd: "odd one", known: "left"}.get(row["identity"], "")
        row["label"] = "given" if row["identity"] == filled else row["label"]

    edit(points / "found/findings.csv", write)
    table = points / "found/findings.csv"
    lines = table.read_text().splitlines()
    marked = [f"{lines[0]},Note", f"{lines[1]},=look", *(f"{line}," for line in lines[2:])]
    table.write_text("\n".join(marked) + "\n")
    _, labels = workflow.read_labels("found")
    split_cluster("found", 1, 2)
    assert names_of(points / "found") == {"1": "n1", "2": "n2", "3": "n1"}
    assert workflow.read_labels("found")[1] == labels
    after = {row["identity"]: row for row in rows_of(table)}
    assert after[odd]["name"] == "odd one"
    assert after[filled]["name"] == "given"
    assert after[known]["name"] == "left"
    assert after[rows[0]["identity"]]["note"] == "'=look"
    merge_clusters("found", [1, 3])
    assert names_of(points / "found") == {"1": "n1", "2": "n2"}
    assert workflow.read_labels("found")[1] == labels


def test_an_update_learns_the_parts(points: Path, edit: Edit) -> None:
    merge_clusters("found", [1, 2])
    split_cluster("found", 1)
    edit(points / "found/clusters.csv", lambda row: row.update(name=f"n{row['cluster']}"))
    updated = workflow.update("model", *workflow.read_labels("found"), force=True)
    assert sorted(updated.new_classes) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda: split_cluster("found", 3),
            "cluster is 3: the findings in found have clusters 1 to 2",
        ),
        (lambda: split_cluster("found", 1, 1), "into is 1: give a whole number of at least 2"),
        (lambda: split_cluster("found", 1, 999), "into is 999: cluster 1 has"),
        (lambda: merge_clusters("found", [2, 2]), "name at least two different ones"),
        (lambda: merge_clusters("found", [0, 1]), "cluster is 0"),
        (lambda: split_cluster("nowhere", 1), "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    points: Path, change: Callable[[], Findings], problem: str
) -> None:
    before = (points / "found/findings.json").read_bytes()
    with pytest.raises(CilfError, match=problem):
        change()
    assert (points / "found/findings.json").read_bytes() == before


def test_clusters_with_different_names_are_not_merged(points: Path, edit: Edit) -> None:
    edit(points / "found/clusters.csv", lambda row: row.update(name=f"n{row['cluster']}"))
    with pytest.raises(BadInput, match=r"different names in .*\(1 is 'n1', 2 is 'n2'\): give them"):
        merge_clusters("found", [1, 2])


def test_a_change_that_fails_leaves_the_findings(
    points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in (points / "found").iterdir()}

    def fail(*_: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(findings_writer, "_pack", fail)
    with pytest.raises(BadInput, match="cannot write to found"):
        split_cluster("found", 1)
    assert {path.name: path.read_bytes() for path in (points / "found").iterdir()} == before
    assert [path.name for path in points.glob(".found*")] == []


def test_the_folder_one_is_in_is_not_replaced(
    points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("found")
    with pytest.raises(BadInput, match=r"and you are in it: go one up \(cd \.\.\)"):
        split_cluster(".", 1)


def test_only_one_command_changes_findings_at_a_time(points: Path) -> None:
    with (
        findings_writer.hold_findings(points / "found"),
        pytest.raises(BadInput, match="another command"),
    ):
        merge_clusters(points / "found", [1, 2])
