"""Fit a learner on labelled data and keep it as a version of a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.names import require_distinct
from cilf.core.notices import warn_once
from cilf.core.types import Array
from cilf.data import Dataset, require_dataset
from cilf.errors import BadInput
from cilf.learners import make, require_learner
from cilf.workflow.comparison import Score, score_kept
from cilf.workflow.data_check import DataReport, check_data
from cilf.workflow.input_data import read_labelled
from cilf.workflow.ledger import LabelledInstances
from cilf.workflow.model_log import FIT, Event
from cilf.workflow.prediction import count_labels
from cilf.workflow.row_engines import HERE, EngineChoice
from cilf.workflow.versions import ModelFolder


@dataclass(frozen=True)
class FitResult:
    """The outcome of a fit.

    Attributes:
        event: the log entry of the new version.
        n_labels: the number of training instances.
        accuracy: for each class, the score on its instances in the test split.
        held_out: for each class, the score on the training instances that the model holds out. An
            update starts from these scores.
        confusion: class -> predicted class -> number of test instances; zeros are left out.
    """

    event: Event
    n_labels: int
    accuracy: dict[str, Score]
    held_out: dict[str, Score]
    confusion: dict[str, dict[str, int]]

    @property
    def mean_accuracy(self) -> float:
        """The mean of the classes' accuracies in the test split."""
        return float(np.mean([score.after for score in self.accuracy.values()]))


def fit(
    data: str,
    out: str | Path,
    *,
    learner: str = "cilf",
    parameters: Mapping[str, Any] | None = None,
    loading: Mapping[str, Any] | None = None,
    again: bool = False,
    note: str | None = None,
    engine: EngineChoice = HERE,
) -> FitResult:
    """Fit a learner on labelled data and keep it as the first version of a model.

    Args:
        data: a data set name or a path, as :func:`cilf.data.load_dataset` takes it.
        out: the model folder.
        learner: the name of the learner in ``LEARNERS``.
        parameters: the parameters of the learner.
        loading: the options of :func:`cilf.data.load_dataset`.
        again: if ``out`` holds a model, add the next version to it instead of refusing.
        note: a text that the log keeps.
        engine: where images are decoded and a frozen network sees instances. Training is here.
    """
    model = ModelFolder(out)
    _require_new(model, again)
    require_learner(learner)
    require_dataset(data, **(loading or {}))
    made = make(learner, **(parameters or {}))
    with engine.open() as place:
        with place.decoding():
            dataset = read_labelled(data, loading or {})
        report = _check(data, dataset)
        made.fit(place.distribute(dataset.train.X), dataset.train.y)
        predicted = made.predict(place.distribute(dataset.test.X))
    accuracy = _score_classes(dataset.test.y, predicted)
    held_out = {change.label: change.held_out for change in score_kept(made)}
    about = {
        "data": str(data),
        "loading": dict(loading or {}),
        "learner": made.name,
        "n_labels": len(dataset.train),
        "labels": count_labels(dataset.train.y.tolist()),
        "new_classes": made.classes_.tolist(),
        "test": {label: score.to_json() for label, score in accuracy.items()},
        "held_out": {label: score.to_json() for label, score in held_out.items()},
        "near_duplicates": report.n_near_duplicates,
        "near_duplicates_across": report.n_across,
        "problems": report.problems,
        "columns": list(dataset.columns),
        "note": note,
    }
    with model.lock():
        _require_new(model, again)
        event = model.add(made, FIT, about, label_training_data(dataset))
    confusion = _count_confusion(dataset.test.y, predicted)
    return FitResult(event, len(dataset.train), accuracy, held_out, confusion)


def label_training_data(dataset: Dataset) -> LabelledInstances:
    """The training instances of a data set with their labels."""
    ids = [str(identity) for identity in dataset.train.ids.tolist()]
    return LabelledInstances(dataset.train.X, ids, dataset.train.y.tolist())


def _check(data: str, dataset: Dataset) -> DataReport:
    """Refuse names that people could not tell apart, and log what is wrong with labelled data."""
    if dataset.train.y.dtype.kind == "U":
        require_distinct(dataset.train.y.tolist())
    report = check_data(dataset)
    for problem in report.problems:
        warn_once(f"{data}: {problem}")
    return report


def _require_new(model: ModelFolder, again: bool) -> None:
    model.require_room()
    if not model.exists():
        return
    model.events()  # refuses another format, and a damaged log
    if not again:
        raise BadInput(
            f"{model.path} holds a model already (version {model.current}): name another folder, "
            "or make this its next version (--again)."
        )


def _count_confusion(truth: Array, predicted: Array) -> dict[str, dict[str, int]]:
    """Class -> predicted class -> number of instances.

    >>> _count_confusion(np.array(["a", "a", "b"]), np.array(["a", "b", "b"]))
    {'a': {'a': 1, 'b': 1}, 'b': {'b': 1}}
    """
    return {
        str(label): dict(sorted(Counter(predicted[truth == label].tolist()).items()))
        for label in np.unique(truth)
    }


def _score_classes(truth: Array, predicted: Array) -> dict[str, Score]:
    return {
        str(label): Score(int(of.sum()), math.nan, float((predicted[of] == label).mean()))
        for label in np.unique(truth)
        for of in [truth == label]
    }
