"""Changes of the model: fitting it, updating it from a window, and rolling it back."""

from __future__ import annotations

import json

from cilf.console.bodies import FitOptions
from cilf.console.detections import DETECTION
from cilf.console.service import Conflict, Console, NotFound, list_lineage
from cilf.console.store import KEPT, PENDING, QUEUED, RUNNING, UNDONE, Job
from cilf.core.files import make_folder, replace_file
from cilf.data import DATASETS
from cilf.errors import BadInput

FIT, UPDATE, ROLLBACK = "fit", "update", "rollback"  # kinds of jobs, and events of a model
DETECT = "detect"  # a kind of jobs
MERGE, FORGET = "merge", "forget"
CHANGES = (UPDATE, ROLLBACK, MERGE, FORGET)  # jobs that make another version the current one


def list_choices(console: Console) -> dict[str, list[str]]:
    """The learners and backbones that a model can be fitted with.

    The worker writes them when it has started. Until then there are the defaults.
    """
    defaults = {"learners": ["cilf"], "backbones": ["auto"]}
    return defaults | (console.store.fact("choices") or {})


def start_fit(
    console: Console, data: str, options: FitOptions | None = None, *, is_upload: bool = False
) -> int:
    """Queue the fit of a model on labelled data, a path or the name of a data set.

    Returns the number of the job.
    """
    if console.roots is not None and data not in DATASETS and not is_upload:
        console.require_readable("data", data)
    chosen = (options or FitOptions()).model_dump(exclude={"data"})
    with console.lock:
        require_no_model(console)
        return console.store.add_job(FIT, data=data, **chosen)


def require_no_model(console: Console) -> None:
    """Refuse to fit a model where there is one, or will be one."""
    if console.model()["version"] is not None:
        raise BadInput("there is a model already: update it from windows.")
    _require_idle(console, FIT)


def require_unchanging(console: Console) -> None:
    """Refuse a change of the model while another one is queued or running."""
    _require_idle(console, *CHANGES)


def _require_idle(console: Console, *kinds: str) -> None:
    if any(job.kind in kinds for job in console.store.jobs(statuses=[QUEUED, RUNNING])):
        raise BadInput("the model is being changed already: wait until that is done.")


def start_update(console: Console, window: int, *, force: bool = False, person: str = "") -> int:
    """Queue an update of the model with the labels of a window and the names of its classes.

    Returns the number of the job.
    """
    opened, classes = console.open(window), console.classes()
    with opened.lock:
        labels, version = opened.labels, opened.state.version
        ids, detection = opened.gallery.ids, console.window(window).facts.get(DETECTION)
    if not labels:
        raise BadInput("no cluster has a name yet: name some first.")
    renames = classes.renames
    keys = {classes.display(key): classes.present_key(key) for key in set(labels.values())}
    keys |= {name: classes.key_of_label(label) for label, name in renames.items()}
    labels_of = {ids[row]: classes.display(key) for row, key in labels.items()}
    path = console.folder(window) / _labels_file(version)
    with console.lock:
        require_unchanging(console)
        make_folder(path.parent)
        replace_file(path, json.dumps(labels_of, ensure_ascii=False).encode())
        return console.store.add_job(
            UPDATE, window, labels=path.name, keys=keys, renames=renames, force=force,
            person=person, detection=detection,
        )  # fmt: skip


def is_current(console: Console, job: Job) -> bool:
    """Whether the window has not changed since an update was queued."""
    assert job.window is not None
    return bool(job.about["labels"] == _labels_file(console.open(job.window).state.version))


def decide(console: Console, job: int, keep: bool) -> int | None:
    """Keep an update, or queue its rollback. Returns the number of the rollback's job."""
    update = console.store.update(job)
    if update is None:
        raise NotFound(f"job {job} has not updated the model.")
    conflict = Conflict("that was decided already: check the decision.")
    if update.decision != PENDING:
        raise conflict
    if not keep and console.model()["version"] != update.version:
        raise Conflict("the model has changed since: roll back to a version instead.")
    if not is_in_model(console, update.version):
        raise Conflict("the model was rolled back since: update it again instead.")
    with console.lock:
        if not keep:
            require_unchanging(console)
        if not console.store.decide(job, KEPT if keep else UNDONE):  # the first one decides
            raise conflict
        if keep:
            return None
        return console.store.add_job(ROLLBACK, update.window, to=update.before, update=job)


def is_in_model(console: Console, version: int) -> bool:
    """Whether the current model is a version, or derives from it."""
    return any(event["version"] == version for event in list_lineage(console.model()))


def start_rollback(console: Console, version: int) -> int:
    """Queue a rollback to an earlier version. Returns the number of the job."""
    known = {event["version"] for event in console.model()["events"]}
    if version not in known or version == console.model()["version"]:
        raise BadInput(f"version {version} is not an earlier version: choose another.")
    with console.lock:
        require_unchanging(console)
        return console.store.add_job(ROLLBACK, to=version)


def _labels_file(version: int) -> str:
    """The file of a window's labels at a version."""
    return f"labels-{version}.json"
