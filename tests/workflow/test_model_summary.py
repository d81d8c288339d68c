from __future__ import annotations

from pathlib import Path

from cilf import workflow


def test_classes_sizes_and_history(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    about = workflow.describe("model")
    assert {c.label: (c.since, c.n_labels, c.n_kept) for c in about.classes} == {
        "left": (1, 48, 48), "right": (1, 48, 48), "up": (2, 30, 30), "down": (2, 30, 30),
    }  # fmt: skip
    assert (about.learner, about.shape, about.current) == ("iforest", (2,), 2)
    assert about.sizes.keys() == {1, 2}
    assert about.to_json()["history"][1]["labels"] == {"up": 30, "down": 30}
