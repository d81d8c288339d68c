"""Fit a model, teach it names, predict with it: what each changes, and what it costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core import validation
from cilf.core.files import make_folder, replace_file, writing
from cilf.core.notices import notice
from cilf.core.spelling import check_spelling
from cilf.core.types import Array
from cilf.errors import BadInput
from cilf.learners import make
from cilf.workflow.comparison import ClassChange, Score, hurt, mean_loss, taught, too_much
from cilf.workflow.findings import Findings
from cilf.workflow.labels import Answers, read_answers
from cilf.workflow.models import FIT, UPDATE, Event, ModelFolder, Taught, load_model, renamed
from cilf.workflow.reading import describe_reading, read_labelled, read_new
from cilf.workflow.spreadsheets import table_bytes

TOLERANCE = 0.05  # of accuracy that old classes may lose on average


@dataclass(frozen=True)
class Updated:
    """What came of an update.

    Attributes:
        event: the new version's; None if the update was refused.
        n_labels: instances that were taught.
        new_classes: names that the model did not know.
        changes: of every class, the old ones first.
    """

    event: Event | None
    n_labels: int
    new_classes: list[str]
    changes: list[ClassChange]

    @property
    def loss(self) -> float:
        """What old classes lose on average; NaN if nothing is known about that."""
        return mean_loss(self.changes)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.event and self.event.version,
            "n_labels": self.n_labels,
            "new_classes": self.new_classes,
            "loss": None if math.isnan(self.loss) else self.loss,
            "classes": [change.to_json() for change in self.changes],
        }


class WouldForget(BadInput):
    """An update that costs the old classes more than is tolerated; ``outcome`` says how much."""

    def __init__(self, message: str, outcome: Updated) -> None:
        super().__init__(message)
        self.outcome = outcome


# ----------------------------------------------------------------- fit


@dataclass(frozen=True)
class Fitted:
    """What came of a fit: the version, and how well held-out instances are recognised."""

    event: Event
    n_labels: int
    accuracy: dict[str, Score]  # class -> on the part of it that was held out; before is NaN

    @property
    def mean_accuracy(self) -> float:
        return float(np.mean([score.after for score in self.accuracy.values()]))


def fit(
    data: str,
    out: str | Path,
    *,
    learner: str = "cilf",
    parameters: Mapping[str, Any] | None = None,
    loading: Mapping[str, Any] | None = None,
    again: bool = False,
    note: str | None = None,
) -> Fitted:
    """Fit a learner on labelled data, and keep it as the first version of a model.

    Args:
        data: as :func:`cilf.data.load_dataset` takes it.
        out: the model folder.
        learner: its name in ``LEARNERS``.
        parameters: of the learner.
        loading: options of :func:`cilf.data.load_dataset`.
        again: let ``out`` hold a model; this becomes its next version.
        note: kept in the log.
    """
    model = ModelFolder(out)
    _require_new(model, again)
    made = make(learner, **(parameters or {}))
    dataset = read_labelled(data, loading or {})
    made.fit(*dataset.train)
    accuracy = _accuracy(dataset.test.y, made.predict(dataset.test.X))
    about = {
        "data": str(data),
        "learner": made.name,
        "n_labels": len(dataset.train),
        "labels": _counts(dataset.train.y),
        "new_classes": made.classes_.tolist(),
        "held_out": {label: score.to_json() for label, score in accuracy.items()},
        "reading": describe_reading(dataset),
        "note": note,
    }
    with model.changing():
        _require_new(model, again)
        event = model.add(made, FIT, about, Taught(dataset.train.ids, dataset.train.y))
    return Fitted(event, len(dataset.train), accuracy)


def _require_new(model: ModelFolder, again: bool) -> None:
    model.require_room()
    if model.exists() and not again:
        raise BadInput(
            f"{model.path} holds a model already (version {model.current}): name another folder, "
            "or make this its next version (--again)."
        )


def _accuracy(truth: Array, predicted: Array) -> dict[str, Score]:
    return {
        str(label): Score(int(of.sum()), math.nan, float((predicted[of] == label).mean()))
        for label in np.unique(truth)
        for of in [truth == label]
    }


# ----------------------------------------------------------------- update


def update(
    model: str | Path,
    labels: str | Path,
    *,
    findings: str | Path | None = None,
    tolerance: float = TOLERANCE,
    force: bool = False,
    note: str | None = None,
    renames: Mapping[str, str] | None = None,
) -> Updated:
    """Teach a model the names that somebody gave; its next version is the current one then.

    Args:
        model: a model folder.
        labels: a findings folder or a table, see :mod:`cilf.workflow.labels`.
        findings: the folder that the table is about, if it does not lie there.
        tolerance: accuracy that old classes may lose on average, and one of them three times that.
        force: keep the new version whatever it costs.
        note: kept in the log.
        renames: classes that the new version calls otherwise, ``{old: new}``.
    """
    validation.number("tolerance", tolerance, least=0.0, most=1.0)
    folder = ModelFolder.open(model)
    with folder.changing():
        about, answers = read_answers(labels, findings)
        _require_same_model(folder, about)
        learner = folder.learner()
        if renames:
            learner.rename(dict(renames.items()))
        former = renamed(folder.former_names(), renames or {})
        answers = _as_called_now(answers, former)
        old = learner.classes_.tolist()
        check_spelling(answers.labels.tolist(), old)
        answers = _untaught(folder, about, answers, former)
        changes = taught(learner, about.instances(answers.rows), answers.labels)
        arrived = learner.classes_.tolist()[len(old) :]
        outcome = Updated(None, len(answers.labels), arrived, changes)
        problem = too_much(changes, tolerance)
        for change in hurt(changes, tolerance):
            notice(f"class {change.label!r} loses {change.loss:.3f}: look at its new instances")
        if problem and not force:
            raise WouldForget(
                f"{model} stays as it is: {problem}, more than {tolerance:g} allows: look for "
                "wrong labels, name more instances, or keep it anyway (--force).",
                outcome,
            )
        origin = _origin(about, answers, outcome, problem is not None, note)
        origin |= {"renamed": dict(renames)} if renames else {}
        lesson = Taught(about.found.ids[answers.rows], answers.labels)
        return replace(outcome, event=folder.add(learner, UPDATE, origin, lesson))


def _require_same_model(folder: ModelFolder, about: Findings) -> None:
    if about.about.get("model_id") != folder.id:
        raise BadInput(
            f"the findings in {about.path} were made with another model than {folder.path}: name "
            "that one, or detect again with this one."
        )


def _as_called_now(answers: Answers, former: Mapping[str, str]) -> Answers:
    """The answers with the present names of classes that have got another one."""
    for name in sorted(set(answers.labels.tolist()) & former.keys()):
        notice(f"{name!r} is called {former[name]!r} now: that is what is learned")
    labels = [former.get(label, label) for label in answers.labels.tolist()]
    return replace(answers, labels=np.array(labels, dtype=str))


def _untaught(
    folder: ModelFolder, about: Findings, answers: Answers, former: Mapping[str, str]
) -> Answers:
    """The answers without those that the model has learned already."""
    known: dict[str, str] = {}
    for event in folder.lineage():
        if event.about.get("findings") == about.id:
            past = folder.taught(event.version)
            labels = (former.get(label, label) for label in past.labels.tolist())
            known |= zip(past.ids.tolist(), labels, strict=True)
    ids = about.found.ids[answers.rows].tolist()
    pairs = zip(ids, answers.labels.tolist(), strict=True)
    fresh = np.array([known.get(identity.strip()) != label for identity, label in pairs])
    if not fresh.any():
        raise BadInput(
            f"{folder.path} has learned all {len(ids)} labels in {answers.source} already: name "
            "more, or go back to an earlier version first (cilf rollback)."
        )
    if not fresh.all():
        notice(f"{int((~fresh).sum())} labels that the model has learned already are left out")
    return Answers(answers.rows[fresh], answers.labels[fresh], answers.source)


def _origin(
    about: Findings, answers: Answers, outcome: Updated, forced: bool, note: str | None
) -> dict[str, Any]:
    """Where the labels of a version come from."""
    return {
        "source": str(answers.source),
        "findings": about.id,
        "data": about.about.get("data"),
        "found_with_version": about.about.get("version"),
        "n_labels": outcome.n_labels,
        "labels": _counts(answers.labels),
        "new_classes": outcome.new_classes,
        "changes": [change.to_json() for change in outcome.changes],
        "forced": forced,
        "note": note,
    }


# ----------------------------------------------------------------- predict


@dataclass(frozen=True)
class Predictions:
    """The class of each instance."""

    ids: Array  # (n,)
    labels: Array  # (n,)

    @property
    def counts(self) -> dict[str, int]:
        """Class -> how many instances, the most frequent first."""
        return _counts(self.labels)

    def to_csv(self) -> bytes:
        """A table: identity, label."""
        rows = zip(self.ids.tolist(), self.labels.tolist(), strict=True)
        return table_bytes(("identity", "label"), rows)

    def write(self, path: Path) -> None:
        """Write the table."""
        make_folder(path.parent)
        with writing(path):
            replace_file(path, self.to_csv())


def predict(
    model: str | Path, data: str | Path, *, column: str | None = None, skip_bad: bool = False
) -> Predictions:
    """The known class of each instance, be it new or not; the options are those of ``detect``."""
    loaded = load_model(model)
    instances = read_new(data, loaded, column=column, skip_bad=skip_bad)
    return Predictions(instances.ids, loaded.learner.predict(instances.X).astype(str))


def _counts(labels: Array) -> dict[str, int]:
    return {str(label): count for label, count in Counter(labels.tolist()).most_common()}
