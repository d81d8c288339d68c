from __future__ import annotations

import numpy as np

from cilf.core import Window
from cilf.evaluate.made_up_names import match_names, use_true_names
from cilf.query.query_policy import LabelledRows

WINDOW = Window(1, np.zeros((5, 1)), np.array(list("abbba")), ("b",), ("a",))


def test_a_name_is_the_class_of_most_of_its_instances() -> None:
    labels = np.array(["novel-2", "novel-2", "novel-2", "novel-1"])
    labelled = LabelledRows(np.array([0, 1, 2, 4]), labels, np.empty(0, np.int64))
    assert match_names(labelled, WINDOW) == {"novel-2": "b", "novel-1": "a"}


def test_other_labels_stay() -> None:
    labels = np.array(["a", "novel-1"])
    assert use_true_names(labels, {"novel-1": "a longer one"}).tolist() == ["a", "a longer one"]
    assert use_true_names(labels, {}) is labels
