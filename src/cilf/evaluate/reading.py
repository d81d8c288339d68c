"""The two readings of known and novel: by the learner, and by the plan of the stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cilf.core import Detection, Label, Window
from cilf.core.types import Array, Ints
from cilf.evaluate import metrics
from cilf.evaluate.metric_table import METRICS, Outcome


@dataclass(frozen=True)
class Reading:
    """A window and its detection, with one reading of which classes are known and novel."""

    window: Window
    detection: Detection
    label: Array  # (n,) the detection's, with true classes for made-up names
    known: Sequence[Label]
    novel: Sequence[Label]  # all other classes in the window

    @property
    def classes(self) -> list[Label]:
        return [*self.known, *self.novel]

    def outcome(self) -> Outcome:
        """The truth and what the learner made of it, as codes."""
        truth, believed = self._encode(self.window.y), self._encode(self.label)
        cluster, n_known = self.detection.cluster, len(self.known)
        matching = metrics.match_clusters(cluster, truth, n_known)
        predicted = metrics.resolve(believed, cluster, matching)
        return Outcome(truth, predicted, cluster, self.detection.novelty, n_known)

    def matched(self) -> dict[int, Label]:
        """The novel class that each found cluster is matched to."""
        truth = self._encode(self.window.y)
        matching = metrics.match_clusters(self.detection.cluster, truth, len(self.known))
        return {cluster: self.classes[position] for cluster, position in matching.items()}

    def _encode(self, labels: Array) -> Ints:
        code = {label: position for position, label in enumerate(self.classes)}
        return np.array([code[label] for label in labels.tolist()], dtype=np.int64)


def read_twice(by_learner: Reading) -> tuple[Outcome, Outcome]:
    """The outcome of a window by the learner, and by the plan.

    By the plan a class is novel in the window in which it starts. A class that the learner missed
    is known afterwards, and a class that it was told too early is still novel.
    """
    planned = by_learner.window.novel
    others = [label for label in by_learner.classes if label not in planned]
    by_plan = replace(by_learner, known=others, novel=planned)
    return by_learner.outcome(), by_plan.outcome()


def undefined_scores() -> dict[str, float]:
    """Every metric of a window as NaN, where nothing was detected."""
    return {name: math.nan for name, metric in METRICS.items() if metric.of_window is not None}
