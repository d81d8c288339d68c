from __future__ import annotations

from pathlib import Path

import numpy as np

from cilf import workflow
from cilf.workflow import Predictions


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
