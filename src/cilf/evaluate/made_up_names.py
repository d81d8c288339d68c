"""The true classes behind names that were made up for clusters; only scores use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from cilf.core import Label, Window, WindowRecord
from cilf.core.types import Array
from cilf.query.query_policy import LabelledRows


def match_names(labelled: LabelledRows, window: Window) -> dict[str, Label]:
    """Each made-up name -> the true class of most of the instances that got it."""
    truth = window.y[labelled.rows]
    return {
        name: Counter(truth[labelled.labels == name].tolist()).most_common(1)[0][0]
        for name in dict.fromkeys(labelled.labels.tolist())
    }


def collect_names(records: Iterable[WindowRecord]) -> dict[str, Label]:
    """Each name that was made up in these windows -> its true class."""
    return {name: label for record in records for name, label in record.named.items()}


def use_true_names(labels: Array, named: Mapping[str, Label]) -> Array:
    """The labels with true classes in place of made-up names."""
    if not named:
        return labels
    return np.array([named.get(label, label) for label in labels.tolist()], dtype=str)
