from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow import Predictions, require_free


def test_each_instance_gets_a_known_class(points: Path) -> None:
    predicted = workflow.predict("model", "new.csv")
    assert len(predicted.ids) == sum(predicted.counts.values()) == 100
    assert set(predicted.counts) == {"left", "right"}


def test_predictions_are_written_as_a_table(tmp_path: Path) -> None:
    p = np.array([0.5, 0.01, 1.0], dtype=np.float32)
    predicted = Predictions(
        np.array(["a", "b", "c"]),
        np.array(["x", "y", "y"]),
        p,
        np.array(["model", "person", "model"]),
    )
    assert predicted.counts == {"y": 2, "x": 1}
    predicted.write(tmp_path / "new" / "labels.csv")
    content = (tmp_path / "new" / "labels.csv").read_bytes()
    table = b"identity,label,novelty_p,source\na,x,0.5,model\nb,y,0.01,person\nc,y,1,model\n"
    assert content == predicted.to_csv() == table


def test_confidence_and_the_second_class_are_columns(tmp_path: Path) -> None:
    predicted = Predictions(
        ids=np.array(["a", "=b"]),
        labels=np.array(["x", "y"]),
        novelty_p=np.array([0.5, 0.25], dtype=np.float32),
        source=np.array(["model", "person"]),
        confidence=np.array([0.875, 0.5], dtype=np.float32),
        second=np.array(["y", "z"]),
    )
    assert predicted.to_csv().decode().splitlines() == [
        "identity,label,confidence,second,novelty_p,source",
        "a,x,0.875,y,0.5,model", "'=b,y,0.5,z,0.25,person",
    ]  # fmt: skip


@pytest.fixture
def net(points: Path) -> Path:
    """The same folder, with a model that holds instances out."""
    parameters = {"epochs": 3, "backbone": "mlp"}
    workflow.fit("known.csv", "net", parameters=parameters)
    return points


def test_predictions_are_as_sure_as_the_learner(net: Path) -> None:
    predicted = workflow.predict("net", "new.csv")
    learner = workflow.load_model("net").learner
    X = np.loadtxt("new.csv", delimiter=",", skiprows=1, usecols=(1, 2), dtype=np.float32)
    probabilities = learner.class_probabilities(X)
    assert probabilities is not None
    assert predicted.confidence is not None
    assert predicted.confidence.tolist() == probabilities.max(axis=1).tolist()
    assert predicted.second is not None
    others = {"left": "right", "right": "left"}
    assert predicted.second.tolist() == [others[label] for label in predicted.labels.tolist()]


def test_predict_and_detect_agree(net: Path) -> None:
    found = workflow.detect("net", "new.csv", "seen").assignments
    predicted = workflow.predict("net", "new.csv")
    assert predicted.ids.tolist() == found.ids.tolist()
    assert predicted.labels.tolist() == found.label.tolist()
    assert predicted.novelty_p == pytest.approx(found.novelty_p)


def test_a_file_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    require_free(out, overwrite=False)
    out.write_text("mine")
    with pytest.raises(BadInput, match=r"is there already: name another file, or replace it"):
        require_free(out, overwrite=False)
    require_free(out, overwrite=True)
    with pytest.raises(BadInput, match="is a folder"):
        require_free(tmp_path, overwrite=True)
