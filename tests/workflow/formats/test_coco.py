from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cilf.errors import BadInput
from cilf.workflow import Findings, export_findings, read_labels

pytest.importorskip("PIL")


@pytest.fixture
def exported(pictures: Findings, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    export_findings(pictures.path, tmp_path / "out", to="coco")
    file = tmp_path / "out/annotations.json"
    return file, json.loads(file.read_text(encoding="utf-8"))


def test_the_document_keeps_the_schema(exported: tuple[Path, dict[str, Any]]) -> None:
    """What the API of COCO needs: unique numbers, references that hold, boxes in their images."""
    file, document = exported
    ids = {key: [each["id"] for each in document[key]] for key in ("images", "categories")}
    assert all(len(set(numbers)) == len(numbers) for numbers in ids.values())
    images = {image["id"]: image for image in document["images"]}
    for annotation in document["annotations"]:
        image = images[annotation["image_id"]]
        assert annotation["category_id"] in ids["categories"]
        assert annotation["bbox"] == [0, 0, image["width"], image["height"]]
        assert annotation["area"] == image["width"] * image["height"]
    assert all((file.parent / image["file_name"]).is_file() for image in images.values())
    assert document["images"][2]["width"] == 30
    sources = [annotation["attributes"]["source"] for annotation in document["annotations"]]
    assert (sources.count("person"), sources.count("model")) == (7, 4)


def test_a_tool_that_keeps_only_what_the_schema_names(
    exported: tuple[Path, dict[str, Any]], pictures: Findings, tmp_path: Path
) -> None:
    """Then file names say which instances labels are about, and all labels are of people."""
    _, document = exported
    for image in document["images"]:
        for key in ("identity", "cluster", "novelty", "embedding"):
            image.pop(key)
    document["annotations"] = [
        annotation
        for annotation in document["annotations"]
        if annotation.pop("attributes")["source"] == "person"
    ]
    (tmp_path / "edited.json").write_text(json.dumps(document))
    expected = read_labels(pictures.path)[1]
    assert read_labels(tmp_path / "edited.json", pictures.path)[1] == expected
    document["annotations"][0]["category_id"] = 99
    (tmp_path / "edited.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match="annotation 1 names 99, which categories do not hold"):
        read_labels(tmp_path / "edited.json", pictures.path)
