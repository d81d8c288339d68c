"""Small models and findings, made once and copied for each test that changes them."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cilf import workflow

from ..points import write_points

pytest.importorskip("pyarrow")


Change = Callable[[dict[str, str]], None]


def edit_table(table: Path, change: Change) -> None:
    """Change the rows of a CSV file in place."""
    with table.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        rows, columns = list(reader), list(reader.fieldnames or ())
    for row in rows:
        change(row)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def class_of(identity: str) -> str:
    return identity.partition("-")[0]


def name_clusters(findings: Path) -> None:
    """Name each cluster by the class of most of its members, and leave the others out."""
    found = workflow.Findings.open(findings).assignments
    names = []
    for cluster in range(len(found.cluster_sizes)):
        ids = found.ids[found.cluster == cluster].tolist()
        classes = [class_of(identity) for identity in ids]
        names.append(max(sorted(set(classes)), key=classes.count))
    members = dict(zip(found.ids.tolist(), found.cluster.tolist(), strict=True))

    def leave_out(row: dict[str, str]) -> None:
        cluster = members[row["identity"]]
        row["name"] = "-" if cluster >= 0 and names[cluster] != class_of(row["identity"]) else ""

    edit_table(findings / "findings.csv", leave_out)
    edit_table(
        findings / "clusters.csv", lambda row: row.update(name=names[int(row["cluster"]) - 1])
    )


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    write_points(folder / "known.csv", {"left": 60, "right": 60}, 0, labelled=True)
    everything = {"left": 20, "right": 20, "up": 30, "down": 30}
    write_points(folder / "new.csv", everything, 1)
    workflow.fit(
        str(folder / "known.csv"),
        folder / "model",
        learner="iforest",
        parameters={"contamination": 0.05, "n_estimators": 30},
    )
    workflow.detect(folder / "model", folder / "new.csv", folder / "found")
    return folder


@pytest.fixture
def points(_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with known.csv, new.csv, a model of two classes, and its findings: two clusters."""
    for name in ("model", "found"):
        shutil.copytree(_template / name, tmp_path / name)
    for name in ("known.csv", "new.csv"):
        shutil.copy(_template / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def edit() -> Callable[[Path, Change], None]:
    """A function that changes the rows of a CSV file in place."""
    return edit_table


@pytest.fixture
def named_points(points: Path) -> Path:
    """The same, with the right names in clusters.csv."""
    name_clusters(points / "found")
    return points
