"""The summary of a model: its classes, their sizes and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cilf.workflow.versions import Event, ModelFolder

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
        classes=_summarize_classes(learner, lineage),
        events=events,
        sizes={number: folder.size(number) for number in versions},
        frozen_network=learner.frozen_network,
        compared_backbones=learner.compared_backbones,
    )


def _summarize_classes(learner: Learner, lineage: Sequence[Event]) -> list[KnownClass]:
    kept = learner.remembered()
    n_kept = Counter() if kept is None else Counter(kept.y.tolist())
    n_labels: Counter[str] = Counter()
    since: dict[str, int] = {}
    for event in lineage:
        names = event.about.get("renamed", {})
        n_labels = Counter({names.get(label, label): n for label, n in n_labels.items()})
        since = {names.get(label, label): version for label, version in since.items()}
        n_labels.update(event.about.get("labels", {}))
        since |= dict.fromkeys(event.about.get("new_classes", ()), event.version)
    return [
        KnownClass(label, since.get(label, lineage[0].version), n_labels[label], n_kept[label])
        for label in learner.classes_.tolist()
    ]
