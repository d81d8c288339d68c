"""The summary of a model: its classes, their sizes and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cilf import learners
from cilf.workflow.ledger import Ledger
from cilf.workflow.model_log import FORGET, Event, find_first_versions
from cilf.workflow.versions import ModelFolder

if TYPE_CHECKING:
    from cilf.learners import Learner


@dataclass(frozen=True)
class KnownClass:
    """A class of a model.

    Attributes:
        label: the name of the class.
        since: the version that learned the class first.
        n_labels: the number of labels of this class that the model has learned.
        n_kept: the number of instances of this class that the model keeps.
    """

    label: str
    since: int
    n_labels: int
    n_kept: int


@dataclass(frozen=True)
class ForgottenClass:
    """A class that a version has forgotten, and earlier ones still hold.

    Attributes:
        label: its name when it was forgotten.
        version: the version that forgot it.
        held_by: the earlier versions that hold it, maybe under a former name.
    """

    label: str
    version: int
    held_by: list[int]


@dataclass(frozen=True)
class ModelSummary:
    """The classes, sizes and history of a model."""

    path: Path
    learner: str
    shape: tuple[int, ...]
    current: int
    classes: list[KnownClass]
    events: list[Event]
    sizes: dict[int, int]  # version -> bytes
    frozen_network: str | None
    compared_backbones: dict[str, float]  # H on hidden classes
    forgotten: list[ForgottenClass]
    is_editable: bool  # whether its classes can be merged and forgotten

    def to_json(self) -> dict[str, Any]:
        return {
            "model": str(self.path),
            "learner": self.learner,
            "instance_shape": list(self.shape),
            "current": self.current,
            "classes": [asdict(known) for known in self.classes],
            "history": [event.to_json() for event in self.events],
            "bytes": self.sizes,
            "frozen_network": self.frozen_network,
            "compared_backbones": self.compared_backbones,
            "is_editable": self.is_editable,
            "forgotten": [asdict(forgotten) for forgotten in self.forgotten],
        }


def describe(model: str | Path) -> ModelSummary:
    """Summarize a model."""
    folder = ModelFolder.open(model)
    events = folder.events()
    current = events[-1].version  # of this history, even if another command changes the model now
    learner, lineage = folder.learner(current), folder.lineage(current)
    versions = [event.version for event in events if event.makes_version]
    return ModelSummary(
        path=folder.path,
        learner=learner.name,
        shape=learner.instance_shape,
        current=current,
        classes=_summarize_classes(learner, lineage, folder.ledger(current)),
        events=events,
        sizes={number: folder.size(number) for number in versions},
        frozen_network=learner.frozen_network,
        compared_backbones=learner.compared_backbones,
        forgotten=_find_forgotten(folder, lineage),
        is_editable=isinstance(learner, learners.EditableLearner),
    )


def _summarize_classes(
    learner: Learner, lineage: Sequence[Event], ledger: Ledger
) -> list[KnownClass]:
    kept = learner.remembered()
    n_kept = Counter() if kept is None else Counter(kept.y.tolist())
    n_labels, since = ledger.counts, find_first_versions(lineage)
    return [
        KnownClass(
            label, since.get(label, lineage[0].version), n_labels.get(label, 0), n_kept[label]
        )
        for label in learner.classes_.tolist()
    ]


def _find_forgotten(folder: ModelFolder, lineage: Sequence[Event]) -> list[ForgottenClass]:
    return [
        ForgottenClass(label, event.version, _find_holders(folder, event.before, label))
        for event in lineage
        if event.event == FORGET
        for label in event.forgotten
    ]


def _find_holders(folder: ModelFolder, number: int | None, label: str) -> list[int]:
    """The version that had a class last, and those before it that have the class."""
    holders, names = [], {label}
    for event in reversed(folder.lineage(number)):
        names &= set(folder.classes(event.version))
        if not names:
            break
        holders.append(event.version)
        names |= {old for old, new in event.present_names.items() if new in names}
    return holders[::-1]
