"""Small models and findings, made once and copied for each test that changes them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.workflow import Findings

from ..points import write_points
from .exported import write_named
from .tables import Change, edit_table

pytest.importorskip("pyarrow")


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


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Findings of grey pictures; two of them lie as files in the folder of the data."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    X = np.random.default_rng(1).integers(0, 255, (12, 6, 5), dtype=np.uint8)
    for name in ("+3.png", "sub/pic 5.png"):
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((40, 30), 99, dtype=np.uint8)).save(path)
    return write_named(folder / "found", X, str(folder / "data"))


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    X = np.array([f"text {i}\nof several <lines>" for i in range(12)], dtype=object)
    return write_named(tmp_path_factory.mktemp("texts") / "found", X)


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    X = np.random.default_rng(2).normal(size=(12, 4)).astype(np.float32)
    return write_named(tmp_path_factory.mktemp("numbers") / "found", X)
