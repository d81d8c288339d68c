"""Rebuild a model from its labels, as if all of them had been right from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cilf.core.types import Array
from cilf.core.validation import FEWEST_CLASSES
from cilf.data import Dataset
from cilf.errors import BadInput
from cilf.workflow.input_data import read_labelled
from cilf.workflow.ledger import Answer, Ledger, hash_instances
from cilf.workflow.model_log import REBUILD, UPDATE, Event
from cilf.workflow.versions import ModelFolder

if TYPE_CHECKING:
    from cilf.learners import Learner

MOST_LISTED = 3


class Batch(NamedTuple):
    """Instances that were learned together."""

    X: Array
    labels: list[str]


@dataclass(frozen=True)
class RebuildResult:
    """The outcome of a rebuild.

    Attributes:
        event: the log entry of the new version.
        n_labels: the number of labels that it has learned.
        classes: its classes.
    """

    event: Event
    n_labels: int
    classes: list[str]


def rebuild(
    model: str | Path, *, data: str | None = None, note: str | None = None
) -> RebuildResult:
    """Fit the learner of a model again, and update it with all answers that stand.

    The fit and the updates are repeated in their order, with the learner, the parameters and the
    seed of the fit. A label that was corrected is learned as it is now, and a class that was
    forgotten is not learned. If nothing was corrected, merged or forgotten, the result equals the
    current version.

    Args:
        model: a model folder. It keeps the instances of its updates.
        data: the data that the model was fitted on; read from where they were if None.
        note: a text that the log keeps.
    """
    folder = ModelFolder.open(model)
    with folder.lock():
        ledger, (first, *later) = folder.ledger(), folder.lineage()
        learner = folder.learner(first.version)
        fitted = _read_fit(folder, first, ledger, data)
        updates = [_read_update(folder, event, ledger) for event in later if event.event == UPDATE]
        _learn_again(learner, [fitted, *updates])
        classes = learner.classes_.tolist()
        about = {"n_labels": len(ledger), "classes": classes, "note": note}
        event = folder.add(learner, REBUILD, about)
        return RebuildResult(event, len(ledger), classes)


def _learn_again(learner: Learner, batches: Sequence[Batch]) -> None:
    """Fit on the first batches that have two classes between them, and update with the others."""
    left = [batch for batch in batches if batch.labels]
    n_first = next(
        (n for n in range(1, len(left)) if len(_classes_of(left[:n])) >= FEWEST_CLASSES), len(left)
    )
    first = left[:n_first]
    X = np.concatenate([batch.X for batch in first])
    learner.fit(X, [label for batch in first for label in batch.labels])
    for batch in left[n_first:]:
        learner.update(batch.X, batch.labels)


def _classes_of(batches: Sequence[Batch]) -> set[str]:
    return {label for batch in batches for label in batch.labels}


def _read_fit(folder: ModelFolder, event: Event, ledger: Ledger, data: str | None) -> Batch:
    """The instances of the fit whose labels stand, read from the data again."""
    source = str(event.about["data"]) if data is None else data
    standing = _find_standing(ledger, event)
    if any(not answer.content for answer in standing):
        raise BadInput(
            f"version {event.version} of {folder.path} is from an earlier cilf, which kept no "
            "hashes of instances: fit again (cilf fit --again)."
        )
    there = _index_content(read_labelled(source, event.about.get("loading", {})))
    missing = [answer.identity for answer in standing if answer.content not in there]
    if missing:
        listed = ", ".join(missing[:MOST_LISTED])
        raise BadInput(
            f"{source} lacks {len(missing)} of {len(standing)} instances that {folder.path} was "
            f"fitted on ({listed}): put them back, or say where the data are now (--data)."
        )
    X = _stack([there[answer.content] for answer in standing])
    return Batch(X, [answer.label for answer in standing])


def _index_content(dataset: Dataset) -> dict[str, Any]:
    """The instances by their hashes. The split may be another one than it was."""
    return {
        content: instance
        for part in (dataset.train, dataset.test)
        for content, instance in zip(hash_instances(part.X), part.X, strict=True)
    }


def _read_update(folder: ModelFolder, event: Event, ledger: Ledger) -> Batch:
    """The instances of an update whose labels stand, as the version keeps them."""
    standing = _find_standing(ledger, event)
    X = folder.instances(event.version)
    if X is None:
        raise BadInput(
            f"version {event.version} of {folder.path} is from an earlier cilf, which kept no "
            "instances: update again with its labels."
        )
    pairs = [(answer.identity, answer.content) for answer in folder.answers(event.version)]
    row_of = {pair: row for row, pair in enumerate(pairs)}
    rows = np.array([row_of[answer.identity, answer.content] for answer in standing], dtype=int)
    return Batch(X[rows], [answer.label for answer in standing])


def _stack(instances: Sequence[Any]) -> Array:
    """Instances in one array; texts are an array of objects."""
    if instances and not isinstance(instances[0], str):
        return np.stack(instances)
    texts = np.empty(len(instances), dtype=object)
    texts[:] = instances
    return texts


def _find_standing(ledger: Ledger, event: Event) -> list[Answer]:
    """The answers that an event brought and that nothing has replaced."""
    return [answer for answer in ledger if answer.version == event.version]
