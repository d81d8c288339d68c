"""Predict the known class of each instance with a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.files import explain_write_errors, make_folder, replace_file
from cilf.core.types import Array, Floats
from cilf.data.spreadsheets import format_csv
from cilf.errors import BadInput
from cilf.workflow.findings import MODEL, PERSON
from cilf.workflow.input_data import read_with
from cilf.workflow.row_engines import HERE, AnyInstances, EngineChoice
from cilf.workflow.versions import LoadedModel, load_model


@dataclass(frozen=True)
class Predictions:
    """The class of each instance.

    Attributes:
        ids: the identity of each instance.
        labels: the class of each instance, the same as ``detect`` gives to known instances.
        novelty_p: the p-value of each instance; small if it is unlike every known class.
        confidence: the probability of the class, if the instance is of a known class; None if the
            learner gives no probabilities.
        second: the second most likely class; None likewise.
    """

    ids: Array  # (n,)
    labels: Array  # (n,)
    novelty_p: Floats  # (n,)
    source: Array  # (n,)
    confidence: Floats | None = None  # (n,)
    second: Array | None = None  # (n,)

    @property
    def counts(self) -> dict[str, int]:
        """The number of instances of each class, the most frequent class first."""
        return count_labels(self.labels.tolist())

    def columns(self) -> dict[str, list[Any]]:
        """The values by column; confidence and second are left out if there are none."""
        columns = {"identity": [str(i) for i in self.ids.tolist()], "label": self.labels.tolist()}
        if self.confidence is not None and self.second is not None:
            columns["confidence"] = self.confidence.tolist()
            columns["second"] = self.second.tolist()
        columns |= {"novelty_p": self.novelty_p.tolist(), "source": self.source.tolist()}
        return columns

    def to_csv(self) -> bytes:
        """A table with the columns."""
        columns = self.columns()
        return format_csv(tuple(columns), zip(*map(_format, columns.values()), strict=True))

    def write(self, path: Path) -> None:
        """Write the table."""
        make_folder(path.parent)
        with explain_write_errors(path):
            replace_file(path, self.to_csv())


def _format(values: list[Any]) -> list[str]:
    return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]


def predict(
    model: str | Path,
    data: str | Path,
    *,
    column: str | None = None,
    skip_bad: bool = False,
    engine: EngineChoice = HERE,
) -> Predictions:
    """Predict the known class of each instance, whether or not it is novel.

    An instance whose label a person has given gets that label, and 1 as ``novelty_p``.

    Args:
        model: a model folder.
        data: a folder of images or a table.
        column: the column that holds the text or the image; found by its content if None.
        skip_bad: leave out instances that cannot be read instead of refusing the data.
        engine: where the instances are read and predicted.
    """
    loaded = load_model(model)
    with engine.open() as place:
        instances = read_with(place.read, data, loaded, column=column, skip_bad=skip_bad)
        return predict_instances(loaded, instances)


def predict_instances(loaded: LoadedModel, instances: AnyInstances) -> Predictions:
    """Predict the known class of instances that were read before."""
    learner = loaded.learner
    probabilities, classes = learner.class_probabilities(instances.X), learner.classes_.astype(str)
    if probabilities is None:
        labels = learner.predict(instances.X).astype(str)
    else:  # predict takes the most likely class
        labels = classes[probabilities.argmax(axis=1)]
    answers = loaded.ledger.match(instances.ids, instances.X)
    is_answered = np.array([answer is not None for answer in answers], dtype=bool)
    final = np.where(is_answered, np.array([answer or "" for answer in answers]), labels)
    p = settle_novelty(learner.novelty_p(instances.X), answers)
    source = name_sources(answers)
    if probabilities is None:
        return Predictions(instances.ids, final, p, source)
    confidence, second = _compare_classes(labels, classes, probabilities)
    second = np.where(is_answered & (final != labels), labels, second)
    confidence = np.where(is_answered, np.float32(1), confidence)
    return Predictions(instances.ids, final, p, source, confidence, second)


def name_sources(answers: Sequence[str | None]) -> Array:
    """Who gave the label of each instance: a person if there is an answer, else the model."""
    return np.array([MODEL if answer is None else PERSON for answer in answers], dtype=str)


def settle_novelty(novelty_p: Floats, answers: Sequence[str | None]) -> Floats:
    """The p-values, with 1 for instances that are known because a person labelled them."""
    is_answered = [answer is not None for answer in answers]
    return np.where(is_answered, np.float32(1), novelty_p).astype(np.float32)


def _compare_classes(labels: Array, classes: Array, probabilities: Floats) -> tuple[Floats, Array]:
    """The probability of each label, and the most likely class but it."""
    is_label = labels[:, None] == classes
    confidence = probabilities[is_label]
    others = np.where(is_label, -1.0, probabilities)
    return confidence, classes[others.argmax(axis=1)]


def require_free(out: Path, overwrite: bool) -> None:
    """Refuse to write over a file, unless told to."""
    if out.is_dir():
        raise BadInput(f"{out} is a folder: name a file.")
    if out.exists() and not overwrite:
        raise BadInput(f"{out} is there already: name another file, or replace it (--overwrite).")


def count_labels(labels: Iterable[str]) -> dict[str, int]:
    """The number of instances of each label, the most frequent label first."""
    return dict(Counter(labels).most_common())
