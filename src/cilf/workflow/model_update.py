"""Update a model with labels, and refuse an update that costs the known classes too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cilf import learners
from cilf.core import validation
from cilf.core.names import check_names, normalize_name
from cilf.core.notices import warn_once
from cilf.data import Instances
from cilf.errors import BadInput
from cilf.workflow.comparison import (
    ClassChange,
    Loss,
    explain_refusal,
    measure_loss,
    select_losses,
    update_and_compare,
)
from cilf.workflow.corrections import (
    Corrections,
    find_corrections,
    forget_empty_classes,
    take_back,
)
from cilf.workflow.findings import Findings
from cilf.workflow.label_doubts import LabelDoubts, find_label_doubts
from cilf.workflow.ledger import Answer, LabelledInstances, Ledger, hash_instances, select_rows
from cilf.workflow.model_log import CORRECTED, FORGOTTEN, RENAMED, UPDATE, Event
from cilf.workflow.prediction import count_labels
from cilf.workflow.versions import ModelFolder, combine_renames

if TYPE_CHECKING:
    from cilf.learners import Learner

TOLERANCE = 0.05  # accuracy that known classes may lose on average
MOST_LISTED = 3

Labels = Mapping[str, str]  # identity of an instance -> its class


@dataclass(frozen=True)
class UpdateResult:
    """The outcome of an update.

    Attributes:
        event: the log entry of the new version; None if the update was refused.
        n_labels: the number of labels that were learned.
        n_corrected: the number of instances that had another label before.
        new_classes: the classes that the model did not know before.
        changes: what the update does to each class, the known classes first.
        doubts: the classes of which many labels look wrong.
    """

    event: Event | None
    n_labels: int
    new_classes: list[str]
    changes: list[ClassChange]
    n_corrected: int = 0
    doubts: list[LabelDoubts] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """The accuracy that known classes lose on average; NaN if it cannot be measured."""
        return self.paired_loss.mean

    @property
    def paired_loss(self) -> Loss:
        """The loss with its deviation."""
        return measure_loss(self.changes)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.event and self.event.version,
            "n_labels": self.n_labels,
            "n_corrected": self.n_corrected,
            "new_classes": self.new_classes,
            **self.paired_loss.to_json(),
            "doubts": [doubts.to_json() for doubts in self.doubts],
            "classes": [change.to_json() for change in self.changes],
        }


class WouldForget(BadInput):
    """An update costs the known classes too much, or many labels look wrong; see ``result``."""

    def __init__(self, message: str, result: UpdateResult) -> None:
        super().__init__(message)
        self.result = result


def update(
    model: str | Path,
    data: Findings | Instances,
    labels: Labels,
    *,
    source: str | Path = "",
    tolerance: float = TOLERANCE,
    force: bool = False,
    note: str | None = None,
    renames: Mapping[str, str] | None = None,
    devices: int | None = None,
) -> UpdateResult:
    """Update a model with labels; the new version becomes the current one.

    A label replaces an earlier one of the same instance. See :mod:`cilf.workflow.corrections`.

    Args:
        model: a model folder.
        data: findings of this model, or instances of one's own.
        labels: the class of each labelled instance of ``data``, by its identity.
        source: the file or folder that the labels come from; the log keeps it.
        tolerance: the accuracy that known classes may lose on average. A single class may lose
            three times as much. An update is refused if it surely loses more: the lower bound of
            the loss counts.
        force: keep the new version whatever it costs, and however many labels look wrong.
        note: a text that the log keeps.
        renames: new names of known classes, ``{old: new}``.
        devices: the parameter ``training__devices`` of the learner from now on; None keeps it.
    """
    validation.number("tolerance", tolerance, least=0.0, most=1.0)
    folder = ModelFolder.open(model)
    if isinstance(data, Findings):
        _require_same_model(folder, data)
    with folder.lock():
        learner = folder.learner()
        if devices is not None:
            learner.set_params(training__devices=devices)
        given = _rename_classes(learner, renames or {})
        former = combine_renames(folder.former_names(), given)
        names = _use_present_names(_check_labels(labels), former)
        check_names(names.values(), learner.classes_.tolist())
        ledger, named = folder.ledger(), _select(data, names)
        ledger.rename(given)
        _complete_answers(folder, ledger, data, named)
        found = find_corrections(ledger, named, learner)
        _require_news(folder, named, found)
        _settle_classes(learner, ledger, found)
        fresh = select_rows(named, found.fresh)
        result = _learn(learner, named, fresh, found)
        forced = _check_result(folder, result, tolerance, force)
        forgotten = _drop_replaced(learner, ledger, fresh, found)
        about = {
            "source": str(source),
            **_origin(data),
            "n_labels": result.n_labels,
            "labels": count_labels(fresh.labels),
            "n_corrected": found.n_corrected,
            "new_classes": result.new_classes,
            "changes": [change.to_json() for change in result.changes],
            "doubts": [doubt.to_json() for doubt in result.doubts],
            "forced": forced,
            "note": note,
        }
        edits = {RENAMED: given, CORRECTED: found.settled, FORGOTTEN: forgotten}
        about |= {name: edit for name, edit in edits.items() if edit}
        return replace(result, event=folder.add(learner, UPDATE, about, fresh))


def _complete_answers(
    folder: ModelFolder, ledger: Ledger, data: Findings | Instances, named: LabelledInstances
) -> None:
    """Find the instances of these findings that an earlier cilf has learned, by identity."""
    if isinstance(data, Findings):
        own = [event for event in folder.lineage() if event.about.get("findings") == data.id]
        ids = [identity.strip() for identity in named.ids]
        content_of = dict(zip(ids, hash_instances(named.X), strict=True))
        ledger.complete(content_of, [event.version for event in own])


def _require_news(folder: ModelFolder, named: LabelledInstances, found: Corrections) -> None:
    if not found.changes_anything:
        raise BadInput(
            f"{folder.path} has learned all {len(named)} labels already: name more instances, or "
            "go back to an earlier version first (cilf rollback)."
        )
    n_known = len(named) - len(found.fresh) - found.n_corrected
    if n_known > 0:
        warn_once(f"{n_known} labels that the model has learned already are left out")


def _settle_classes(learner: Learner, ledger: Ledger, found: Corrections) -> None:
    """Rename and merge the classes all of whose labels were corrected."""
    for old, new in found.settled.items():
        warn_once(f"all labels of {old!r} are corrected to {new!r}, which takes its place")
    if found.renamed:
        learner.rename(dict(found.renamed.items()))
    if isinstance(learner, learners.EditableLearner):
        for old, new in found.merged.items():
            learner.merge(new, old)
    ledger.rename(found.settled)


def _drop_replaced(
    learner: Learner, ledger: Ledger, fresh: LabelledInstances, found: Corrections
) -> list[str]:
    """Forget the classes that lose their last label; returns them."""
    contents = hash_instances(fresh.X)
    told = zip(fresh.ids, contents, fresh.labels, strict=True)
    ledger.add([Answer(*answer, version=0) for answer in told])
    former = dict.fromkeys(answer.label for _, answer in found.replaced)
    return forget_empty_classes(learner, ledger, list(former))


def _rename_classes(learner: Learner, renames: Mapping[str, str]) -> dict[str, str]:
    """Rename classes of a learner; returns the names as they are kept."""
    others = [label for label in learner.classes_.tolist() if label not in renames]
    names = dict(zip(renames, check_names(renames.values(), others), strict=True))
    if names:
        learner.rename(dict(names.items()))
    return names


def _learn(
    learner: Learner, named: LabelledInstances, fresh: LabelledInstances, found: Corrections
) -> UpdateResult:
    """Take back the labels that are replaced, and learn what is new."""
    if not len(fresh):
        return UpdateResult(None, 0, [], [], found.n_corrected)
    n_known = len(learner.classes_)
    take_back(learner, named.X, found.replaced)
    y = np.array(fresh.labels, dtype=str)
    doubts = find_label_doubts(learner.check_labels(fresh.X, y), y, fresh.ids)
    changes = update_and_compare(learner, fresh.X, y)
    new_classes = learner.classes_.tolist()[n_known:]
    return UpdateResult(None, len(fresh), new_classes, changes, found.n_corrected, doubts)


def _check_result(folder: ModelFolder, result: UpdateResult, tolerance: float, force: bool) -> bool:
    """Whether an update that would be refused is forced; refused if it is not forced."""
    for change in select_losses(result.changes, tolerance):
        warn_once(f"class {change.label!r} loses {change.loss:.3f}: check its new instances")
    refusing = [found for found in result.doubts if found.refuses]
    for found in result.doubts if force or not refusing else ():
        warn_once(str(found))
    problem = _explain_refusal(result, refusing, tolerance)
    if problem and not force:
        raise WouldForget(f"{folder.path} stays as it is: {problem}.", result)
    return problem is not None


def _explain_refusal(
    result: UpdateResult, refusing: Sequence[LabelDoubts], tolerance: float
) -> str | None:
    loss = explain_refusal(result.changes, tolerance)
    if refusing:
        cost = f"; {loss}" if loss else ""
        return (
            f"{'; '.join(map(str, refusing))}{cost}. Look at these instances and correct their "
            "labels, or keep the update anyway (--force; cilf rollback undoes it)"
        )
    if loss:
        return (
            f"{loss}, surely more than {tolerance:g}: look whether a new class is a known one "
            "under another name, name more instances of the known classes, or keep the update "
            "anyway (--force; cilf rollback undoes it)"
        )
    return None


def _require_same_model(folder: ModelFolder, findings: Findings) -> None:
    if findings.about.get("model_id") != folder.id:
        raise BadInput(
            f"the findings in {findings.path} were made with another model than {folder.path}: "
            "name that one, or detect again with this one."
        )


def _check_labels(labels: Labels) -> dict[str, str]:
    if not labels:
        raise BadInput("labels is empty: give the class of at least one instance.")
    names = validation.labels(list(labels.values()), n=len(labels), kind="U", name="labels")
    return dict(zip(labels, map(normalize_name, names.tolist()), strict=True))


def _use_present_names(labels: Labels, former: Mapping[str, str]) -> dict[str, str]:
    """Replace former names of classes by the present ones."""
    for name in sorted(set(labels.values()) & former.keys()):
        warn_once(f"{name!r} is called {former[name]!r} now: its instances are learned as such")
    return {identity: former.get(label, label) for identity, label in labels.items()}


def _select(data: Findings | Instances, labels: Labels) -> LabelledInstances:
    """Select the labelled instances, in the order of the data."""
    ids = data.assignments.ids if isinstance(data, Findings) else data.ids.astype(str)
    row_of = {identity: row for row, identity in enumerate(ids.tolist())}
    unknown = [repr(identity) for identity in labels if identity not in row_of]
    if unknown:
        listed = ", ".join(unknown[:MOST_LISTED])
        raise BadInput(
            f"labels has {len(unknown)} identities that the data do not hold ({listed}): correct "
            "them."
        )
    rows = np.array(sorted(row_of[identity] for identity in labels), dtype=np.int64)
    X = data.instances(rows) if isinstance(data, Findings) else data.X[rows]
    chosen = ids[rows].tolist()
    return LabelledInstances(X, chosen, [labels[identity] for identity in chosen])


def _origin(data: Findings | Instances) -> dict[str, Any]:
    if isinstance(data, Instances):
        return {"findings": None, "data": None, "found_with_version": None}
    about = data.about
    return {
        "findings": data.id,
        "data": about.get("data"),
        "found_with_version": about.get("version"),
    }
