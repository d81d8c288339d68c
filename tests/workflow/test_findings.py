from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow import Findings
from cilf.workflow.findings import Assignments, pack_texts, unpack_texts


def test_assignments_are_counted() -> None:
    label = np.array(["a", "b", "b", "a", "b", "b"])
    cluster = np.array([0, -1, -1, -1, 1, 0])
    zeros = np.zeros(6, np.float32)
    source = np.full(6, "model")
    found = Assignments(np.arange(6).astype(str), label, zeros, zeros, cluster, source)
    assert found.known_counts == {"b": 2, "a": 1}
    assert (found.cluster_sizes, found.n_novel) == ([2, 1], 3)
    assert found.nearest_class(1) == "b"


def test_texts_are_packed_without_pickles() -> None:
    texts = np.array(["plain", "", "ümläut 日本"], dtype=object)
    assert unpack_texts(pack_texts(texts)).tolist() == texts.tolist()


def test_instances_are_kept_as_they_were(points: Path) -> None:
    kept = Findings.open("found")
    table = np.loadtxt("new.csv", delimiter=",", skiprows=1, usecols=(1, 2))
    assert np.array_equal(kept.instances(np.arange(100)), table.astype(np.float32))
    about = json.loads((points / "found/findings.json").read_text())
    assert about["model_id"] == workflow.ModelFolder("model").id
    assert (about["version"], about["n_instances"]) == (1, 100)


@pytest.mark.parametrize("name", ["instances.npz", "findings.json"])
def test_damaged_findings_are_refused(points: Path, name: str) -> None:
    (points / "found" / name).write_bytes(b"PK nothing")
    with pytest.raises(BadInput, match="damaged"):
        workflow.update("model", *workflow.read_labels("found"))


@pytest.mark.parametrize(
    ("key", "value"),
    [("columns", ["y", "x"]), ("version", 2), ("format", 3), ("id", "\ud800"), ("sha256", "0")],
)
def test_a_changed_key_of_findings_is_damage(points: Path, key: str, value: object) -> None:
    about = json.loads((points / "found/findings.json").read_text())
    (points / "found/findings.json").write_text(json.dumps(about | {key: value}))
    with pytest.raises(BadInput, match=r"damaged \(findings.json .*: detect again"):
        Findings.open("found")


def test_findings_of_an_earlier_cilf_have_no_checksum_of_their_description(points: Path) -> None:
    about = json.loads((points / "found/findings.json").read_text())
    del about["checksum"]
    (points / "found/findings.json").write_text(json.dumps(about | {"format": 3}))
    assert len(Findings.open("found").assignments.ids) == 100
    workflow.merge_clusters("found", [1, 2])
    assert json.loads((points / "found/findings.json").read_text())["format"] == 4


@pytest.mark.parametrize("number", [1, 2, 5, None])
def test_findings_of_another_format_are_refused(points: Path, number: int | None) -> None:
    about = json.loads((points / "found/findings.json").read_text())
    (points / "found/findings.json").write_text(json.dumps(about | {"format": number}))
    with pytest.raises(BadInput, match=f"format {number}, this cilf reads formats 3 and 4"):
        Findings.open("found")


def test_a_folder_without_findings_is_refused(points: Path) -> None:
    shutil.rmtree("found")
    with pytest.raises(BadInput, match=r"no folder or file found: name"):
        workflow.update("model", *workflow.read_labels("found"))
    with pytest.raises(BadInput, match="model holds no findings"):
        workflow.update("model", *workflow.read_labels("model"))
