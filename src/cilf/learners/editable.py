"""Learners whose classes can be merged and forgotten, and whose labels can be taken back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from cilf.core import Label, validation
from cilf.core.types import Array, Ints
from cilf.core.validation import FEWEST_CLASSES
from cilf.errors import BadInput
from cilf.learners.base import Learner

LEAVES = -1  # the new position of a class that is forgotten


class EditableLearner(Learner):
    """Base of learners that can merge and forget classes, and take labels back.

    What such a learner keeps of a class can be told from what it keeps of the others. No edit
    changes the weights of a network, which keep traces of what was learned.
    """

    @abstractmethod
    def _reassign_classes(self, positions: Ints, n_classes: int) -> None:
        """Give each class a new position. Those of one position are one class, -1 leaves."""

    @abstractmethod
    def _retract(self, X: Array, y: Ints) -> None:
        """Take labelled instances back. They may have left the memory already."""

    def merge(self, kept: Label, *others: Label) -> Self:
        """Merge other classes into a class, which keeps its name and its place.

        >>> from cilf.learners.iforest import IForest
        >>> learner = IForest().fit([[0.0], [1.0], [5.0]], ["ant", "emmet", "bee"])
        >>> learner.merge("ant", "emmet").predict([[1.0]]).tolist(), learner.classes_.tolist()
        (['ant'], ['ant', 'bee'])
        """
        self._require_classes([kept, *others])
        if not others or len({kept, *others}) <= len(others):
            raise BadInput(f"others is {list(others)!r}: give one or more classes beside {kept!r}.")
        left = self._without(others)
        _require_enough("others", others, len(left), len(self._classes))
        position = {label: number for number, label in enumerate(left)}
        positions = [position[kept if label in others else label] for label in self._classes]
        return self._edit("merge", positions, list(others), [kept])

    def forget(self, *labels: Label) -> Self:
        """Remove classes, and the instances of them that the learner keeps.

        >>> from cilf.learners.iforest import IForest
        >>> learner = IForest().fit([[0.0], [1.0], [5.0]], ["ant", "emmet", "bee"])
        >>> learner.forget("emmet").classes_.tolist()
        ['ant', 'bee']
        """
        self._require_classes(list(labels))
        left = self._without(labels)
        if not labels:
            raise BadInput("labels is empty: name one or more classes to forget.")
        _require_enough("labels", labels, len(left), len(self._classes))
        position = {label: number for number, label in enumerate(left)}
        positions = [position.get(label, LEAVES) for label in self._classes]
        return self._edit("forget", positions, list(labels), [])

    def retract(self, X: Any, y: Any) -> Self:
        """Take back labelled instances that the learner has learned with these labels.

        It no longer keeps them, and its statistics are as if it had not seen them. A class stays,
        even if it has no other instances.
        """
        X = self._check_instances(X)
        y = validation.labels(y, n=len(X), kind=self.classes_.dtype.kind)
        self._require_classes(y.tolist())
        positions = np.array([self._classes.index(label) for label in y.tolist()], dtype=np.int64)
        with self._all_or_nothing():
            self._retract(self._extract_features(X), positions)
        event = {"event": "retract", "n_instances": len(X), "new_classes": []}
        self._history = [*self._history, event]
        return self

    def _edit(
        self, kind: str, positions: list[int], former: list[Label], into: list[Label]
    ) -> Self:
        classes = self._without(former)
        with self._all_or_nothing():
            self._reassign_classes(np.array(positions, dtype=np.int64), len(classes))
        self._classes = classes
        event = {"event": kind, "n_instances": 0, "new_classes": into, "old_classes": former}
        self._history = [*self._history, event]
        return self

    def _without(self, labels: Any) -> list[Label]:
        return [label for label in self._classes if label not in labels]

    def _require_classes(self, labels: list[Label]) -> None:
        self._require_fitted()
        if unknown := [label for label in labels if label not in self._classes]:
            raise BadInput(
                f"{unknown[0]!r} is no class of this learner: its classes are "
                f"{', '.join(map(repr, self._classes))}."
            )


def require_editable(learner: Learner, what: str) -> EditableLearner:
    """The learner, if its classes can be edited; ``what`` is what cannot be done if not."""
    if isinstance(learner, EditableLearner):
        return learner
    raise BadInput(
        f"the learner {learner.name!r} cannot {what}: fit another one, such as 'cilf', or fit "
        "again on labels as they should be."
    )


def _require_enough(name: str, labels: Sequence[Label], n_left: int, n_classes: int) -> None:
    if n_left < FEWEST_CLASSES:
        raise BadInput(
            f"{name} is {list(labels)!r}, which leaves {n_left} of {n_classes} classes: leave at "
            f"least {FEWEST_CLASSES}."
        )


def require_some(n_left: int) -> None:
    """Refuse an edit after which nothing is left to learn from."""
    if not n_left:
        raise BadInput("the learner would keep no instance that it was fitted on: fit again.")
