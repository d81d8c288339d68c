"""Predict the known class of each instance with a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cilf.core.files import explain_write_errors, make_folder, replace_file
from cilf.core.types import Array, Floats
from cilf.data.spreadsheets import format_csv
from cilf.workflow.findings import MODEL, PERSON
from cilf.workflow.input_data import read_new
from cilf.workflow.versions import load_model


@dataclass(frozen=True)
class Predictions:
    """The class of each instance."""

    ids: Array  # (n,)
    labels: Array  # (n,)
    novelty_p: Floats  # (n,) small if the instance is unlike every known class
    source: Array  # (n,) "person" if a person gave the label, else "model"

    @property
    def counts(self) -> dict[str, int]:
        """The number of instances of each class, the most frequent class first."""
        return count_labels(self.labels.tolist())

    def to_csv(self) -> bytes:
        """A table with the columns identity, label, novelty_p and source."""
        p = [f"{value:.4g}" for value in self.novelty_p.tolist()]
        rows = zip(self.ids.tolist(), self.labels.tolist(), p, self.source.tolist(), strict=True)
        return format_csv(("identity", "label", "novelty_p", "source"), rows)

    def write(self, path: Path) -> None:
        """Write the table."""
        make_folder(path.parent)
        with explain_write_errors(path):
            replace_file(path, self.to_csv())


def predict(
    model: str | Path, data: str | Path, *, column: str | None = None, skip_bad: bool = False
) -> Predictions:
    """Predict the known class of each instance, whether or not it is novel.

    An instance whose label a person has given gets that label, and 1 as ``novelty_p``.

    Args:
        model: a model folder.
        data: a folder of images or a table.
        column: the column that holds the text or the image; found by its content if None.
        skip_bad: leave out instances that cannot be read instead of refusing the data.
    """
    loaded = load_model(model)
    instances = read_new(data, loaded, column=column, skip_bad=skip_bad)
    predicted = loaded.learner.predict(instances.X).astype(str).tolist()
    answers = loaded.ledger.match(instances.ids, instances.X)
    labels = [
        label if answer is None else answer
        for label, answer in zip(predicted, answers, strict=True)
    ]
    novelty_p = settle_novelty(loaded.learner.novelty_p(instances.X), answers)
    return Predictions(instances.ids, np.array(labels), novelty_p, name_sources(answers))


def name_sources(answers: Sequence[str | None]) -> Array:
    """Who gave the label of each instance: a person if there is an answer, else the model."""
    return np.array([MODEL if answer is None else PERSON for answer in answers], dtype=str)


def settle_novelty(novelty_p: Floats, answers: Sequence[str | None]) -> Floats:
    """The p-values, with 1 for instances that are known because a person labelled them."""
    is_answered = [answer is not None for answer in answers]
    return np.where(is_answered, np.float32(1), novelty_p).astype(np.float32)


def count_labels(labels: Iterable[str]) -> dict[str, int]:
    """The number of instances of each label, the most frequent label first."""
    return dict(Counter(labels).most_common())
