"""What a server has seen since it started: windows, their novel share, the drift of classes."""

from __future__ import annotations

import math
import threading
from collections import deque

import numpy as np

from cilf.console.drift import MAX_INSTANCES, MIN_INSTANCES, shift
from cilf.console.metrics import COUNTER, Metric, Sample, describe_windows
from cilf.core.types import Array, Floats
from cilf.learners import Learner
from cilf.serving.live_model import LiveModel

LEAST_P = 0.05  # of an instance that counts as one of its class


class WindowMetrics:
    """The numbers behind ``/metrics``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_windows = self._n_instances = 0
        self._novel_share = math.nan
        self._n_novel: int | None = None
        self._version: int | None = None
        self._recent: dict[str, deque[Floats]] = {}
        self._reference: dict[str, Floats] = {}

    def add_window(self, n_instances: int, n_unlike: int, n_novel: int) -> None:
        """Count a window. ``n_unlike`` of its instances are in novel clusters."""
        with self._lock:
            self._n_windows += 1
            self._n_instances += n_instances
            self._novel_share, self._n_novel = n_unlike / n_instances, n_novel

    def add_known(
        self, learner: Learner, version: int | None, X: Array, labels: Array, novelty_p: Floats
    ) -> None:
        """Remember where some instances of known classes lie. Drift is that of one version."""
        usual = np.flatnonzero(novelty_p >= LEAST_P)[-MAX_INSTANCES:]
        if not len(usual):
            return
        points = learner.embed(X[usual])
        with self._lock:
            if version != self._version or not self._reference:
                self._version, self._recent = version, {}
                self._reference = _locate_classes(learner)
            for label, point in zip(labels[usual].tolist(), points, strict=True):
                self._recent.setdefault(str(label), deque(maxlen=MAX_INSTANCES)).append(point)

    def measure_drift(self) -> dict[str, float]:
        """Class -> distance of its latest instances from what the model keeps of it."""
        with self._lock:
            pairs = {
                name: (self._reference[name], np.stack(list(points)))
                for name, points in self._recent.items()
                if len(points) >= MIN_INSTANCES and name in self._reference
            }
        return {name: round(shift(*both), 3) for name, both in pairs.items()}

    def collect(self, model: LiveModel) -> list[Metric]:
        """All numbers, with those of the model."""
        drift = self.measure_drift()
        with self._lock:
            described = describe_windows(
                n_windows=self._n_windows,
                n_instances=self._n_instances,
                novel_share=self._novel_share,
                n_novel=self._n_novel,
                drift=drift,
                version=model.loaded.version,
                queue=model.n_waiting,
            )
        failed = "Versions of the model that could not be loaded."
        return [
            *described,
            Metric("cilf_failed_reloads_total", COUNTER, failed, [Sample(model.n_failed)]),
        ]


def _locate_classes(learner: Learner) -> dict[str, Floats]:
    """The places of instances that the learner keeps of each class; held-out ones if it has some.

    Training draws the instances that it saw closer together than fresh ones are.
    """
    kept = learner.remembered()
    if kept is None:
        return {}
    points, places = learner.embed_remembered(kept), {}
    for label in np.unique(kept.y).tolist():
        own = kept.y == label
        held_out = own & kept.held_out
        rows = held_out if held_out.sum() >= MIN_INSTANCES else own
        if rows.sum() >= MIN_INSTANCES:
            places[str(label)] = points[rows]
    return places
