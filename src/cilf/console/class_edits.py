"""Merging and forgetting classes of the model: jobs of the worker, which make versions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cilf.console.service import Conflict, Console, OpenWindow, list_lineage
from cilf.console.state import Cluster, Patch
from cilf.console.store import CLASSES, DONE, FAILED, Event, Job, SeqTaken, now
from cilf.console.updates import CHANGES, FORGET, MERGE, UPDATE, require_unchanging
from cilf.core.names import normalize_name
from cilf.core.validation import FEWEST_CLASSES
from cilf.errors import BadInput
from cilf.workflow.model_log import describe_edits

RENAME = "rename"  # an event of the model
UNNAMED = "reopen"  # the verb that clusters lose their names by


def start_merge(
    console: Console, name: str, into: str, *, seen: int | None = None, person: str = ""
) -> int:
    """Queue the merge of a class into another one. Returns the number of the job.

    It is refused if the model is another version than the one that the person has ``seen``.
    """
    gone, kept = _find_label(console, "name", name), _find_label(console, "into", into)
    if gone == kept:
        raise BadInput(f"into: {into!r} is the same class, give another one.")
    return _queue(console, MERGE, seen, kept=kept, others=[gone], person=person)


def start_forget(console: Console, name: str, *, seen: int | None = None, person: str = "") -> int:
    """Queue the removal of a class from the model. Returns the number of the job.

    Clusters that are named by the class lose their names.
    """
    label = _find_label(console, "name", name)
    key = console.classes().key_of_label(label)
    return _queue(console, FORGET, seen, labels=[label], key=key, person=person)


def _find_label(console: Console, argument: str, name: str) -> str:
    """The label of the class of this display name, which the model knows."""
    classes = console.classes()
    key = classes.key(normalize_name(name))
    if key is None or not classes.is_in_model(key):
        raise BadInput(f"{argument}: the model has no class {name!r}, it may have been renamed.")
    return classes.label(key)


def _queue(console: Console, kind: str, seen: int | None, *, person: str, **about: Any) -> int:
    model = console.model()
    if not model.get("is_editable", True):  # the worker of an earlier cilf did not say so
        raise BadInput(
            f"the learner {model['learner']!r} cannot {kind} classes: fit another one, such as "
            "'cilf'."
        )
    if len(model["classes"]) <= FEWEST_CLASSES:
        raise BadInput(
            f"the model has {len(model['classes'])} classes, and needs {FEWEST_CLASSES}: it cannot "
            f"{kind} any."
        )
    with console.lock:
        if seen is not None and model["version"] != seen:
            raise Conflict("the model has changed since: check its classes first.")
        require_unchanging(console)
        return console.store.add_job(kind, person=person, **about, token=uuid.uuid4().hex)


def note_of(job: Job) -> str:
    """The note of a version that a job makes. Jobs of two stores may have one number."""
    return f"console, job {job.id} ({job.about['token'][:8]})"


def log_edit(console: Console, job: Job, names: Sequence[str]) -> None:
    """Log the end of a job, once."""
    while True:
        events = console.store.events(CLASSES)
        if any(event.about.get("token") == job.about["token"] for event in events):
            return
        about = {"classes": list(names), "token": job.about["token"]}
        seq = console.classes().version + 1
        event = Event(CLASSES, seq, job.kind, about, {}, job.about["person"], now())
        try:
            console.store.append(event)
        except SeqTaken:
            continue


def unname_clusters(console: Console, key: str, person: str) -> None:
    """Take the name from all clusters that are named by a class. Each window can undo it."""
    for row in console.store.windows():
        if row.status == DONE:
            console.change(row.id, UNNAMED, partial(_unname, key=key), person)


def _unname(opened: OpenWindow, key: str) -> tuple[dict[str, Any], Patch] | None:
    clusters = opened.state.clusters
    named = [number for number, cluster in clusters.items() if cluster.name == key]
    if not named:
        return None
    about = {"clusters": [number + 1 for number in named]}
    return about, Patch({number: (clusters[number], Cluster()) for number in named})


# ----------------------------------------------------------------- for the page


def is_editable(model: Mapping[str, Any]) -> bool:
    """Whether a class of the model can be merged or forgotten."""
    return bool(model.get("is_editable", True)) and len(model["classes"]) > FEWEST_CLASSES


def find_last_edit(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """The edit that made the current version, if one did: the version before, and a sentence."""
    lineage = list_lineage(model)
    if not lineage or lineage[-1]["event"] not in (MERGE, FORGET, RENAME):
        return None
    last = lineage[-1]
    return {"before": last["before"], "sentence": "; ".join(describe_edits(last))}


def find_problem(console: Console) -> str | None:
    """The problem of the last change of the model that is not an update."""
    jobs = [job for job in console.store.jobs() if job.kind in CHANGES]
    if not jobs or jobs[-1].status != FAILED or jobs[-1].kind == UPDATE:
        return None
    return f"The {jobs[-1].kind} failed: {jobs[-1].problem}"
