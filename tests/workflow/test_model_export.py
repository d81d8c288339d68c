"""Export of a model folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.errors import BadConfig, BadInput

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def test_the_file_predicts_as_the_model_and_names_its_classes(points: Path) -> None:
    workflow.fit(
        "known.csv", points / "net", parameters={"epochs": 3, "width": 16, "memory_size": 60}
    )
    exported = workflow.export("net", points / "edge" / "points.onnx")
    session = onnxruntime.InferenceSession(exported.path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    classes = json.loads(about["classes"])
    assert sorted(classes) == ["left", "right"]
    assert tuple(classes) == exported.classes
    assert (json.loads(about["instance_shape"]), about["model_version"]) == ([2], "1")
    assert about["model_id"] == workflow.ModelFolder.open("net").id
    rows = np.genfromtxt("new.csv", delimiter=",", skip_header=1, usecols=(1, 2), dtype=np.float32)
    label, novelty_p = session.run(["label", "novelty_p"], {"instances": rows})
    said = workflow.predict("net", "new.csv")
    assert [classes[i] for i in label] == said.labels.tolist()
    np.testing.assert_allclose(novelty_p, said.novelty_p, atol=1e-4)


def test_refusals(points: Path) -> None:
    with pytest.raises(BadConfig, match="unknown format 'onxn': did you mean 'onnx'"):
        workflow.export("model", "a.onnx", to="onxn")
    with pytest.raises(BadInput, match="IForest has no network that could be exported"):
        workflow.export("model", "a.onnx")
    Path("b.onnx").write_bytes(b"mine")
    with pytest.raises(BadInput, match="is there already"):
        workflow.export("model", "b.onnx")
    assert Path("b.onnx").read_bytes() == b"mine"
