"""Corrections: answers that replace earlier ones about the same instances.

If all answers of a class are replaced by one new name, the class is renamed, or merged into the
class that has this name. So a corrected typo makes no second class. Any other label that is
replaced is taken back from the learner, which then learns the new one. A class that no answer names
any more is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cilf import learners
from cilf.core.notices import warn_once
from cilf.core.types import Array, Ints
from cilf.core.validation import FEWEST_CLASSES
from cilf.workflow.ledger import Answer, LabelledInstances, Ledger, hash_instances

if TYPE_CHECKING:
    from cilf.learners import Learner


@dataclass(frozen=True)
class Corrections:
    """What new answers change about earlier ones.

    Attributes:
        fresh: the rows to learn, because nobody has labelled them so far, or otherwise.
        renamed: classes that get a new name.
        merged: classes that become part of another class.
        replaced: the earlier answers that are taken back, each with the row that replaces it.
        n_corrected: the number of instances whose label changes.
    """

    fresh: Ints
    renamed: Mapping[str, str] = field(default_factory=dict)
    merged: Mapping[str, str] = field(default_factory=dict)
    replaced: Sequence[tuple[int, Answer]] = ()
    n_corrected: int = 0

    @property
    def settled(self) -> dict[str, str]:
        """The present name of each class that is renamed or merged."""
        return {**self.renamed, **self.merged}

    @property
    def changes_anything(self) -> bool:
        return bool(len(self.fresh) or self.settled)


def find_corrections(ledger: Ledger, named: LabelledInstances, learner: Learner) -> Corrections:
    """Compare new answers with those that stand."""
    contents = hash_instances(named.X)
    known = [ledger.find(*pair) for pair in zip(named.ids, contents, strict=True)]
    changed = [
        row for row, (old, new) in enumerate(zip(known, named.labels, strict=True)) if old != new
    ]
    whole = _find_whole_classes(ledger, changed, contents, named.labels)
    classes = learner.classes_.tolist()
    renamed, merged = _settle_classes(whole, classes, isinstance(learner, learners.EditableLearner))
    settled = renamed | merged
    fresh = [
        row
        for row in changed
        if known[row] is None or settled.get(str(known[row])) != named.labels[row]
    ]
    replaced = [
        (row, answer)
        for row in _first_of_each([(contents[row], row) for row in fresh])
        for answer in ledger.of_content(contents[row])
    ]
    n_corrected = sum(known[row] is not None for row in changed)
    return Corrections(np.array(fresh, dtype=np.int64), renamed, merged, replaced, n_corrected)


def take_back(learner: Learner, X: Array, replaced: Sequence[tuple[int, Answer]]) -> None:
    """Take replaced answers back from the learner, if it can."""
    if not replaced:
        return
    if not isinstance(learner, learners.EditableLearner):
        warn_once(
            f"the learner {learner.name!r} cannot take labels back: {len(replaced)} corrected "
            "labels are learned beside the earlier ones ('cilf rebuild' learns the new ones only)"
        )
        return
    learner.retract(X[[row for row, _ in replaced]], [answer.label for _, answer in replaced])


def forget_empty_classes(learner: Learner, ledger: Ledger, former: Sequence[str]) -> list[str]:
    """Forget those of some classes that no answer names any more; returns them."""
    counts = ledger.counts
    empty = [label for label in former if not counts.get(label)]
    n_left = len(learner.classes_) - len(empty)
    if not empty or not isinstance(learner, learners.EditableLearner) or n_left < FEWEST_CLASSES:
        return []
    learner.forget(*empty)
    return empty


def _find_whole_classes(
    ledger: Ledger, changed: Sequence[int], contents: Sequence[str], labels: Sequence[str]
) -> dict[str, str]:
    """The classes all of whose answers are replaced by one other name, and this name."""
    to = {contents[row]: labels[row] for row in changed}
    moves: dict[str, Counter[str]] = {}
    for answer in ledger:
        if (name := to.get(answer.content)) is not None:
            moves.setdefault(answer.label, Counter())[name] += 1
    counts = ledger.counts
    return {
        label: next(iter(names))
        for label, names in moves.items()
        if len(names) == 1 and names.total() == counts[label] and label not in names
    }


def _settle_classes(
    whole: Mapping[str, str], classes: Sequence[str], can_merge: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """The classes to rename, and those to merge into another class."""
    renamed: dict[str, str] = {}
    merged: dict[str, str] = {}
    for old, new in whole.items():
        if new in whole or old in whole.values():
            continue  # classes change places: their instances are learned again
        if new not in classes and new not in renamed.values():
            renamed[old] = new
        elif can_merge:
            merged[old] = new
    return renamed, merged


def _first_of_each(pairs: Sequence[tuple[str, int]]) -> list[int]:
    """The first row of each content."""
    first: dict[str, int] = {}
    for content, row in pairs:
        first.setdefault(content, row)
    return list(first.values())
