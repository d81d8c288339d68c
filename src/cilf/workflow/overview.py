"""What there is to know about a model: its classes, their sizes, its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cilf.learners import Learner
from cilf.workflow.models import Event, ModelFolder


@dataclass(frozen=True)
class KnownClass:
    """A class of a model.

    Attributes:
        label: its name.
        since: the version that it came with.
        n_labels: instances that were taught under this name.
        n_kept: instances of it that the model keeps.
    """

    label: str
    since: int
    n_labels: int
    n_kept: int


@dataclass(frozen=True)
class ModelSummary:
    """What there is to know about a model."""

    path: Path
    learner: str
    shape: tuple[int, ...]
    current: int
    classes: list[KnownClass]
    events: list[Event]
    sizes: dict[int, int]  # version -> bytes

    def to_json(self) -> dict[str, Any]:
        return {
            "model": str(self.path),
            "learner": self.learner,
            "instance_shape": list(self.shape),
            "current": self.current,
            "classes": [asdict(known) for known in self.classes],
            "history": [event.to_json() for event in self.events],
            "bytes": self.sizes,
        }


def describe(model: str | Path) -> ModelSummary:
    """The classes, sizes and history of a model."""
    folder = ModelFolder.open(model)
    events = folder.events()
    current = events[-1].version  # whatever others make of the model meanwhile
    learner, lineage = folder.learner(current), folder.lineage(current)
    versions = [event.version for event in events if event.makes_version]
    return ModelSummary(
        path=folder.path,
        learner=learner.name,
        shape=learner.instance_shape,
        current=current,
        classes=_known_classes(learner, lineage),
        events=events,
        sizes={number: folder.size(number) for number in versions},
    )


def _known_classes(learner: Learner, lineage: Sequence[Event]) -> list[KnownClass]:
    kept = learner.remembered()
    n_kept = Counter() if kept is None else Counter(kept.y.tolist())
    taught: Counter[str] = Counter()
    since: dict[str, int] = {}
    for event in lineage:
        names = event.about.get("renamed", {})
        taught = Counter({names.get(label, label): n for label, n in taught.items()})
        since = {names.get(label, label): version for label, version in since.items()}
        taught.update(event.about.get("labels", {}))
        since |= dict.fromkeys(event.about.get("new_classes", ()), event.version)
    return [
        KnownClass(label, since.get(label, lineage[0].version), taught[label], n_kept[label])
        for label in learner.classes_.tolist()
    ]
