"""Predict the known class of each instance with a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cilf.core.files import explain_write_errors, make_folder, replace_file
from cilf.core.types import Array, Floats
from cilf.data.spreadsheets import format_csv
from cilf.workflow.input_data import read_new
from cilf.workflow.versions import load_model


@dataclass(frozen=True)
class Predictions:
    """The class of each instance."""

    ids: Array  # (n,)
    labels: Array  # (n,)
    novelty_p: Floats  # (n,) small if the instance is unlike every known class

    @property
    def counts(self) -> dict[str, int]:
        """The number of instances of each class, the most frequent class first."""
        return count_labels(self.labels.tolist())

    def to_csv(self) -> bytes:
        """A table with the columns identity, label and novelty_p."""
        p = [f"{value:.4g}" for value in self.novelty_p.tolist()]
        rows = zip(self.ids.tolist(), self.labels.tolist(), p, strict=True)
        return format_csv(("identity", "label", "novelty_p"), rows)

    def write(self, path: Path) -> None:
        """Write the table."""
        make_folder(path.parent)
        with explain_write_errors(path):
            replace_file(path, self.to_csv())


def predict(
    model: str | Path, data: str | Path, *, column: str | None = None, skip_bad: bool = False
) -> Predictions:
    """Predict the known class of each instance, whether or not it is novel.

    Args:
        model: a model folder.
        data: a folder of images or a table.
        column: the column that holds the text or the image; found by its content if None.
        skip_bad: leave out instances that cannot be read instead of refusing the data.
    """
    loaded = load_model(model)
    instances = read_new(data, loaded, column=column, skip_bad=skip_bad)
    labels = loaded.learner.predict(instances.X).astype(str)
    return Predictions(instances.ids, labels, loaded.learner.novelty_p(instances.X))


def count_labels(labels: Iterable[str]) -> dict[str, int]:
    """The number of instances of each label, the most frequent label first."""
    return dict(Counter(labels).most_common())
