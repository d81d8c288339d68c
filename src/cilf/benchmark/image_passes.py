"""The work of a run before it is made: how many images pass through its network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cilf.clustering.evidence import counts_to_try
from cilf.stream import Stream

FORWARD_SHARE = 1 / 3  # of the time of a pass in training, which also goes backwards


class WindowSize(NamedTuple):
    """The number of instances of a window, and of those that belong to its novel classes."""

    n: int
    n_novel: int


@dataclass(frozen=True)
class StreamSizes:
    """The numbers of instances in the parts of a stream."""

    initial: int
    windows: tuple[WindowSize, ...]
    holdout: int

    @classmethod
    def of(cls, stream: Stream) -> StreamSizes:
        windows = []
        for index, planned in enumerate(stream.plan.windows, start=1):
            counts = stream.counts(index)
            n_novel = sum(counts[label] for label in planned.novel)
            windows.append(WindowSize(sum(counts.values()), n_novel))
        return cls(len(stream.initial.y), tuple(windows), len(stream.holdout.y))


def count_passes(
    sizes: StreamSizes,
    parameters: Mapping[str, Any],
    *,
    keeps_everything: bool = False,
    detects: bool = True,
) -> float:
    """Count the images that a run passes through its network, forwards and backwards.

    A pass forwards alone counts a third. Counted are the initial training, the detection and the
    update of each window, and the predictions of the hold-out. Every instance of a novel class is
    taken to be found and labelled.

    Parameters
    ----------
    sizes : StreamSizes
        Sizes of the stream.
    parameters : mapping
        Parameters of the learner. It does without those that are missing.
    keeps_everything : bool, default=False
        Whether each update trains on all instances so far; without ``warm_start``, for as many
        epochs as an incremental learner has trained by then.
    detects : bool, default=True
        Whether novel classes are detected, which may train on the window.

    >>> sizes = StreamSizes(initial=100, windows=(WindowSize(60, 20),), holdout=30)
    >>> count_passes(sizes, {"epochs": 10, "update_epochs": 5, "memory_size": 40})
    1330.0
    """
    epochs, update_epochs = (int(parameters.get(n, 0)) for n in ("epochs", "update_epochs"))
    memory = parameters.get("memory_size", 0) if parameters.get("replay", True) else 0
    trained, forwards = sizes.initial * epochs, 0
    labelled = everything = sizes.initial
    for number, window in enumerate(sizes.windows, start=1):
        forwards += window.n + sizes.holdout
        trained += count_tuned_images(parameters, window.n) if detects else 0
        everything += window.n
        if keeps_everything:
            anew = 0 if parameters.get("warm_start") else epochs + (number - 1) * update_epochs
            trained += everything * (anew + update_epochs)
        else:
            trained += (window.n_novel + min(memory, labelled)) * update_epochs
        labelled += window.n_novel
    return trained + FORWARD_SHARE * forwards


def count_tuned_images(parameters: Mapping[str, Any], n_instances: int) -> int:
    """Images that a learner trains on in a window of this size to detect novel classes.

    >>> count_tuned_images({"tuning__warmup_epochs": 5, "tuning__sharpen_epochs": 10}, 200)
    3000
    """
    names = ("tuning__warmup_epochs", "tuning__sharpen_epochs")
    once = n_instances * sum(int(parameters.get(name, 0)) for name in names)
    if "detector__epochs" not in parameters:  # no detector, or one that trains nothing
        return once
    detector, batch_size = parameters["detector"], int(parameters["training__batch_size"])
    n_counts = len(counts_to_try(detector.k_max, n_instances))
    n_batches = n_counts * detector.epochs * detector.count_steps(n_instances, batch_size)
    return once + int(n_batches * (batch_size + detector.replay_size))
