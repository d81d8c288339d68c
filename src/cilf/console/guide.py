"""What to do next: one sentence for each state of the model and of a window."""

from __future__ import annotations

from cilf.console import updates
from cilf.console.service import Console
from cilf.console.state import OPEN
from cilf.console.store import DONE, FAILED, PENDING, QUEUED, RUNNING, UNDONE


def find_first_step(console: Console) -> str:
    """The next step on the page of all windows."""
    active = [job.kind for job in console.store.jobs(statuses=[QUEUED, RUNNING])]
    if console.model()["version"] is None:
        if updates.FIT in active:
            return "wait until the model is fitted."
        return "fit a model on labelled data, or start the sample project."
    if updates.DETECT in active:
        return "wait until novel classes are detected."
    rows = console.store.windows()
    ready = [row for row in rows if row.status == DONE]
    for row in reversed(ready):
        n_named, n_clusters = console.count_named(row.id)
        if n_named < n_clusters:
            return f"open window {row.id} ({row.name}) and name its clusters."
    if rows and rows[-1].status == FAILED:
        return "read why the detection failed, and add the window again."
    return "add a window of new data." if not ready else "add the next window of new data."


def find_next_step(console: Console, window: int) -> str:
    """The next step on the page of a window."""
    jobs = [job for job in console.store.jobs(window=window) if job.kind == updates.UPDATE]
    job = jobs[-1] if jobs else None
    if job is not None and job.status in (QUEUED, RUNNING):
        return "wait until the model is updated. You can go on naming."
    if job is not None and job.status == DONE:
        update = console.store.update(job.id)
        if update is not None and update.decision == PENDING:
            return "compare the accuracy of each class, and accept the version or roll it back."
        stands = update is not None and update.decision != UNDONE
        if stands and updates.is_current(console, job):
            return "the model knows these names. Add the next window of new data."
    opened = console.open(window)
    with opened.lock:
        clusters = list(opened.state.clusters.values())
    n_unnamed = sum(one.name is None and one.status == OPEN for one in clusters)
    if n_unnamed:
        some = "the cluster" if n_unnamed == 1 else f"the {n_unnamed} clusters without a name"
        return (
            f"look at {some}, and name it (N) or reject it (R)."
            if n_unnamed == 1
            else (f"look at {some}, and name (N) or reject (R) each of them.")
        )
    if opened.labels:
        return "update the model with the names (L)."
    return "there is nothing to name here. Add the next window of new data."
