from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cilf.workflow import Findings, export_findings, read_labels


def read(out: Path) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    return tasks


def test_tasks_of_pictures_are_local_files(pictures: Findings, tmp_path: Path) -> None:
    out = tmp_path / "my export"
    export_findings(pictures.path, out, to="label-studio")
    tasks = read(out)
    for row, task in enumerate(tasks):
        address, _, path = task["data"]["image"].partition("?d=")
        assert address == "/data/local-files/"
        assert path.startswith("my%20export/images/")
        assert path.endswith(f"-{row:06d}.png")
        assert (tmp_path / path.replace("%20", " ")).is_file()
    assert tasks[4]["predictions"][0]["result"][0]["value"] == {"choices": ["cat"]}
    assert tasks[0]["data"]["cluster"] == 1


def test_annotations_that_people_made_there(texts: Findings, tmp_path: Path) -> None:
    """Tasks come back with more annotations and more keys."""
    export_findings(texts.path, tmp_path / "out", to="label-studio")
    tasks = read(tmp_path / "out")
    made = {"from_name": "label", "to_name": "item", "type": "choices", "id": "x"}
    chosen = {**made, "value": {"choices": ["mouse"]}}
    tasks[6] |= {
        "id": 17,
        "annotations": [
            {"id": 1, "was_cancelled": False, "result": [chosen]},
            {"id": 2, "was_cancelled": True, "result": [{**made, "value": {"choices": ["no"]}}]},
        ],
    }
    (tmp_path / "project-1.json").write_text(json.dumps(tasks))
    labels = read_labels(tmp_path / "project-1.json", texts.path)[1]
    assert (labels["sub/pic 5.png"], labels["=1+1"]) == ("mouse", "=cow")


@pytest.mark.parametrize("form", ["pictures", "texts", "numbers"])
def test_the_sdk_takes_tasks_and_configuration(
    form: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Its interface validates each task; its converter gives the labels of people."""
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    converter = pytest.importorskip("label_studio_sdk.converter")
    findings: Findings = request.getfixturevalue(form)
    out = tmp_path / "out"
    exported = export_findings(findings.path, out, to="label-studio")
    config = (out / "config.xml").read_text(encoding="utf-8")
    checked = interface.LabelInterface(config)
    tasks = read(out)
    for task in tasks:
        assert checked.validate_task({"data": task["data"]})
        for made in task.get("predictions", []):
            assert checked.validate_prediction(made)
        for made in task.get("annotations", []):
            assert checked.validate_annotation(made)
    for number, task in enumerate(tasks, start=1):
        task |= {"id": number}
        for made in task.get("annotations", ()):
            made |= {"id": number, "completed_by": {"id": 1}, "was_cancelled": False}
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported/1.json").write_text(json.dumps(tasks))
    reader = converter.Converter(config, str(tmp_path), download_resources=False)
    reader.convert_to_json_min(str(tmp_path / "exported"), str(tmp_path / "min"))
    [written] = (tmp_path / "min").iterdir()
    said = {
        row["identity"]: row["label"] for row in json.loads(written.read_text()) if "label" in row
    }
    assert said == exported.labels
