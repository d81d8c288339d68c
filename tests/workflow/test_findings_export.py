"""Exports of findings, and labels that come back from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.errors import BadConfig, BadInput
from cilf.workflow import Findings, read_labels
from cilf.workflow.formats import FORMATS
from cilf.workflow.formats.contents import FORMS

pytest.importorskip("PIL")
pytest.importorskip("datasets")

HENS = ("+3.png", "@me", "Ähre", "x" * 300)
GIVEN = {"=1+1": "=cow", "-2": "Hühner/Küken", "a,b;c": "known, but wrong"}
LABELS = GIVEN | dict.fromkeys(HENS, "hen")
CASES = [(name, form) for name, format in FORMATS.items() for form in FORMS if form in format.forms]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_labels_and_identities_come_back_as_they_left(
    name: str, form: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    findings: Findings = request.getfixturevalue({"images": "pictures"}.get(form, form))
    out = tmp_path / "out"
    exported = workflow.export_findings(findings.path, out, to=name)
    assert (exported.n_instances, exported.labels) == (12, LABELS)
    assert read_labels(out, findings.path)[1] == LABELS
    if FORMATS[name].read_folder is None:
        assert read_labels(out / FORMATS[name].file, findings.path)[1] == LABELS
    assert read_labels(out, findings.path, format=name)[1] == LABELS


def test_an_export_replaces_only_an_export_of_its_format(numbers: Findings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    workflow.export_findings(numbers.path, out)
    with pytest.raises(BadInput, match=r"holds an export already.*--overwrite"):
        workflow.export_findings(numbers.path, out)
    (out / "mine.txt").write_text("mine")
    workflow.export_findings(numbers.path, out, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert sorted(path.name for path in out.iterdir()) == ["embeddings.csv", "labels.csv"]
    with pytest.raises(BadInput, match="holds other things"):
        workflow.export_findings(numbers.path, out, to="jsonl", overwrite=True)


def test_refusals(numbers: Findings, pictures: Findings, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="unknown format 'cavt': did you mean 'cvat'"):
        workflow.export_findings(numbers.path, tmp_path / "out", to="cavt")
    with pytest.raises(BadInput, match="holds numbers, and CVAT classification has images only"):
        workflow.export_findings(numbers.path, tmp_path / "out", to="cvat")
    assert not list(tmp_path.iterdir())
    workflow.export_findings(pictures.path, tmp_path / "out", to="cvat")
    with pytest.raises(BadInput, match="does not lie in a findings folder: say with --findings"):
        read_labels(tmp_path / "out")
    with pytest.raises(BadInput, match=r"image 1: the findings hold no '.*png': name the findings"):
        read_labels(tmp_path / "out", numbers.path)
    with pytest.raises(
        BadInput, match=r"annotations\.xml as FiftyOne data set: the file is not JSON"
    ):
        read_labels(tmp_path / "out/annotations.xml", pictures.path, format="fiftyone")
    with pytest.raises(BadInput, match="holds no labels: name a findings folder"):
        read_labels(tmp_path, pictures.path)


def test_an_export_in_the_findings_folder_needs_no_name_of_the_findings(points: Path) -> None:
    workflow.export_findings("found", "found/export", to="jsonl")
    with pytest.raises(BadInput, match="names nothing: label instances in the program"):
        read_labels("found/export")


def test_labels_of_an_export_update_the_model(named_points: Path) -> None:
    exported = workflow.export_findings("found", "tasks", to="label-studio")
    findings, labels = read_labels("tasks/tasks.json", "found")
    assert labels == exported.labels
    updated = workflow.update("model", findings, labels)
    assert sorted(updated.new_classes) == ["down", "up"]
