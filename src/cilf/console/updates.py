"""The model's share of a console: what it is fitted on, what it learns, and going back."""

from __future__ import annotations

import json

from cilf.console.service import Conflict, Console, NotThere
from cilf.console.store import KEPT, PENDING, QUEUED, RUNNING, UNDONE, Job
from cilf.core.files import make_folder, replace_file
from cilf.data import DATASETS
from cilf.errors import BadInput

FIT, ROLLBACK = "fit", "rollback"  # what happens to a model, see service.models


def fit(console: Console, data: str, learner: str = "cilf", note: str = "") -> int:
    """Have a model fitted on labelled data, a path or a data set by name; the job."""
    if console.roots is not None and data not in DATASETS:
        console.readable("data", data)
    with console.lock:
        if console.model()["version"] is not None:
            raise BadInput("there is a model already: it learns from windows now.")
        _require_idle(console, "fit")
        return console.store.add_job("fit", data=data, learner=learner, note=note)


def _require_idle(console: Console, *kinds: str) -> None:
    if any(job.kind in kinds for job in console.store.jobs(statuses=[QUEUED, RUNNING])):
        raise BadInput("the model is being changed already: wait until that is done.")


def learn(console: Console, window: int, *, force: bool = False, person: str = "") -> int:
    """Have the model learn the names of a window, and those of its classes, as they are now.

    Returns the job.
    """
    opened, classes = console.opened(window), console.classes()
    with opened.lock:
        labels, version = opened.taught, opened.state.version
    if not labels:
        raise BadInput("nothing has a name yet: name some groups first.")
    renames = classes.renames
    keys = {classes.display(key): key for key in set(labels.values())}
    keys |= {name: classes.key_of_label(label) for label, name in renames.items()}
    ids = opened.gallery.ids
    answers = {ids[row]: classes.display(key) for row, key in labels.items()}
    path = console.folder(window) / _answers(version)
    with console.lock:
        _require_idle(console, "learn", "rollback")
        make_folder(path.parent)
        replace_file(path, json.dumps(answers, ensure_ascii=False).encode())
        return console.store.add_job(
            "learn", window, answers=path.name, keys=keys, renames=renames, force=force,
            person=person,
        )  # fmt: skip


def is_taught(console: Console, job: Job) -> bool:
    """Whether a job to learn was about its window as it is now."""
    assert job.window is not None
    return bool(job.about["answers"] == _answers(console.opened(job.window).state.version))


def decide(console: Console, job: int, keep: bool) -> int | None:
    """Keep what was learned, or have the model go back; the job, if there is one."""
    lesson = next(iter(console.store.lessons(job=job)), None)
    if lesson is None:
        raise NotThere(f"job {job} has taught nothing.")
    decided = Conflict("that was decided already: look at it again.", 0, [])
    if lesson.decision != PENDING:
        raise decided
    if not keep and console.model()["version"] != lesson.version:
        raise Conflict("the model has changed since: go back to a version instead.", 0, [])
    if not is_part(console, lesson.version):
        raise Conflict("the model has gone back since: learn it again instead.", 0, [])
    with console.lock:
        if not keep:
            _require_idle(console, "learn", "rollback")
        if not console.store.decide(job, KEPT if keep else UNDONE):  # the first one decides
            raise decided
        if keep:
            return None
        return console.store.add_job("rollback", lesson.window, to=lesson.before, lesson=job)


def is_part(console: Console, version: int) -> bool:
    """Whether the model as it is now comes from a version, or is it."""
    model = console.model()
    made = {event["version"]: event for event in model["events"] if event["event"] != ROLLBACK}
    at = model["version"]
    while at is not None and at != version:
        at = None if made[at]["event"] == FIT else made[at]["before"]
    return bool(at == version)


def rollback(console: Console, version: int) -> int:
    """Have the model go back to an earlier version; the job."""
    known = {event["version"] for event in console.model()["events"]}
    if version not in known or version == console.model()["version"]:
        raise BadInput(f"version {version} is not an earlier one: choose another.")
    with console.lock:
        _require_idle(console, "learn", "rollback")
        return console.store.add_job("rollback", to=version)


def _answers(version: int) -> str:
    """The file with what is taught of a window, as it was at a version."""
    return f"answers-{version}.json"
