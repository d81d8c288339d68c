"""Cancelling jobs, and what is put in order when a job does not reach its end.

A job that waits ends at once. A job that runs ends when it reports its progress the next time.
"""

from __future__ import annotations

from cilf.console.label_import import remove_import
from cilf.console.service import Conflict, Console
from cilf.console.store import CANCELLED, FAILED, QUEUED, RUNNING, Job, Store

DETECT = "detect"  # a kind of jobs
CANCELLED_PROBLEM = "it was cancelled."


class JobCancelled(BaseException):
    """Somebody has cancelled the job. Code that goes on after errors does not catch it."""


def cancel_job(console: Console, number: int) -> int:
    """Cancel a job that waits or runs. Returns its number."""
    job, store = console.job(number), console.store
    if job.status not in (QUEUED, RUNNING):
        raise Conflict(f"job {number} has ended already ({job.status}): it cannot be cancelled.")
    store.log(f"cancel {job.kind}", job.window, {"job": number})
    store.request_cancel(number)
    if store.withdraw_job(number, CANCELLED_PROBLEM):
        put_in_order(store, job, CANCELLED_PROBLEM)
    return number


def end_job(store: Store, job: Job, problem: str, *, cancelled: bool = False) -> None:
    """End a job that did not do what it should."""
    put_in_order(store, job, problem)
    store.change_job(job.id, status=CANCELLED if cancelled else FAILED, problem=problem)


def put_in_order(store: Store, job: Job, problem: str) -> None:
    """Leave nothing that waits for the job."""
    is_first = job.kind == DETECT and not job.about.get("again")
    if is_first and job.window is not None:
        store.change_window(job.window, status=FAILED, facts={"problem": problem})
    if job.about.get("update") is not None:  # it was not rolled back
        store.reopen_update(job.about["update"])
    remove_import(store, job)
