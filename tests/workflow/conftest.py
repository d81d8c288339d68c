"""Small models and findings, made once and copied for each test that changes them."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cilf import workflow

pytest.importorskip("pyarrow")

PLACES = {"left": (-6.0, 0.0), "right": (6.0, 0.0), "up": (0.0, 9.0), "down": (0.0, -9.0)}
COLUMNS = ("x", "y")


def write_points(path: Path, kinds: dict[str, int], *, seed: int, labelled: bool) -> None:
    """Points around the place of each kind; an identity says which kind it is."""
    rng = np.random.default_rng(seed)
    lines = ["id,x,y" + (",label" if labelled else "")]
    for kind, n in kinds.items():
        for i, (x, y) in enumerate(rng.normal(PLACES[kind], 0.5, size=(n, 2))):
            lines.append(f"{kind}-{i},{x:.4f},{y:.4f}" + (f",{kind}" if labelled else ""))
    path.write_text("\n".join(lines) + "\n")


Change = Callable[[dict[str, str]], None]


def edited(table: Path, change: Change) -> None:
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


def kind_of(identity: str) -> str:
    return identity.partition("-")[0]


def named(findings: Path) -> None:
    """Name each new kind by what most of its members are, and leave the others out."""
    found = workflow.Findings.open(findings).assignments
    names = []
    for cluster in range(len(found.cluster_sizes)):
        kinds = [kind_of(identity) for identity in found.ids[found.cluster == cluster].tolist()]
        names.append(max(sorted(set(kinds)), key=kinds.count))
    members = dict(zip(found.ids.tolist(), found.cluster.tolist(), strict=True))

    def leave_out(row: dict[str, str]) -> None:
        cluster = members[row["identity"]]
        row["name"] = "-" if cluster >= 0 and names[cluster] != kind_of(row["identity"]) else ""

    edited(findings / "findings.csv", leave_out)
    edited(findings / "clusters.csv", lambda row: row.update(name=names[int(row["cluster"]) - 1]))


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    write_points(folder / "known.csv", {"left": 60, "right": 60}, seed=0, labelled=True)
    everything = {"left": 20, "right": 20, "up": 30, "down": 30}
    write_points(folder / "new.csv", everything, seed=1, labelled=False)
    workflow.fit(
        str(folder / "known.csv"),
        folder / "model",
        learner="iforest",
        parameters={"contamination": 0.05, "n_estimators": 30},
    )
    workflow.detect(folder / "model", folder / "new.csv", folder / "found")
    return folder


@pytest.fixture
def points(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with known.csv, new.csv, a model of two classes, and what it found: two kinds."""
    for name in ("model", "found"):
        shutil.copytree(_made / name, tmp_path / name)
    for name in ("known.csv", "new.csv"):
        shutil.copy(_made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def edit() -> Callable[[Path, Change], None]:
    """What changes the rows of a CSV file in place."""
    return edited


@pytest.fixture
def named_points(points: Path) -> Path:
    """The same, with the right names in clusters.csv."""
    named(points / "found")
    return points
