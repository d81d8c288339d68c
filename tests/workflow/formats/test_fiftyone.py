from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cilf.workflow import Findings, export_findings, read_labels

from ..exported import IDS

pytest.importorskip("PIL")


def test_samples_name_their_fields(pictures: Findings, tmp_path: Path) -> None:
    export_findings(pictures.path, tmp_path / "out", to="fiftyone")
    about = json.loads((tmp_path / "out/metadata.json").read_text(encoding="utf-8"))
    assert (about["name"], about["media_type"]) == ("out", "image")
    samples = json.loads((tmp_path / "out/samples.json").read_text(encoding="utf-8"))["samples"]
    assert tuple(sample["identity"] for sample in samples) == IDS
    assert all((tmp_path / "out" / sample["filepath"]).is_file() for sample in samples)
    assert samples[0]["ground_truth"] == {"_cls": "Classification", "label": "=cow"}
    assert samples[4]["predictions"] == {"_cls": "Classification", "label": "cat"}
    assert samples[4]["ground_truth"] is samples[0]["predictions"] is None
    assert samples[2]["metadata"] == {"_cls": "ImageMetadata", "width": 30, "height": 40}
    embedding = np.array([sample["embedding"] for sample in samples], dtype=np.float32)
    np.testing.assert_array_equal(embedding, pictures.embedding)


def test_samples_without_identities(pictures: Findings, tmp_path: Path) -> None:
    """A sample of another field set is found by its file."""
    export_findings(pictures.path, tmp_path / "out", to="fiftyone")
    file = tmp_path / "out/samples.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    for sample in document["samples"]:
        del sample["identity"]
        sample["filepath"] = f"/elsewhere/{sample['filepath']}"
    document["samples"][6]["ground_truth"] = {"_cls": "Classification", "label": "mouse"}
    file.write_text(json.dumps(document))
    labels = read_labels(file, pictures.path)[1]
    assert labels == read_labels(pictures.path)[1] | {"sub/pic 5.png": "mouse"}


def test_fiftyone_opens_the_folder(pictures: Findings, tmp_path: Path) -> None:
    """Its importer makes samples without its data base."""
    importers = pytest.importorskip("fiftyone.utils.data.importers")
    exported = export_findings(pictures.path, tmp_path / "out", to="fiftyone")
    importer = importers.LegacyFiftyOneDatasetImporter(str(tmp_path / "out"))
    importer.setup()
    samples = list(importer)
    labels = {s.identity: s.ground_truth.label for s in samples if s.ground_truth is not None}
    assert labels == exported.labels
    assert all(Path(sample.filepath).is_file() for sample in samples)
    np.testing.assert_allclose([sample.embedding for sample in samples], pictures.embedding)


def test_fiftyone_reads_cvat_and_coco(pictures: Findings, tmp_path: Path) -> None:
    cvat = pytest.importorskip("fiftyone.utils.cvat")
    coco = pytest.importorskip("fiftyone.utils.coco")
    export_findings(pictures.path, tmp_path / "cvat", to="cvat")
    images = cvat.load_cvat_image_annotations(str(tmp_path / "cvat/annotations.xml"))[2]
    tags = [[tag.label for tag in image.tags] for image in images]
    assert (tags[0], tags[4], tags[6]) == (["=cow"], ["cat"], [])
    export_findings(pictures.path, tmp_path / "coco", to="coco")
    read = coco.load_coco_detection_annotations(str(tmp_path / "coco/annotations.json"))
    _, classes, _, images_by_number, annotations = read
    assert classes[annotations[1][0].category_id] == "=cow"
    assert images_by_number[1]["identity"] == "=1+1"
