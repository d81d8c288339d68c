"""The worker: a process of its own that fits, detects and learns, one job after another.

    python -m cilf.console.worker STORE MODEL

It says in the store how far it is. It ends when the server that started it is gone; what it was
doing then is done again by the next one.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cilf import workflow
from cilf.console.classes import TAUGHT, Classes
from cilf.console.drift import drifts
from cilf.console.server import DATABASE
from cilf.console.snapshot import draw_gallery
from cilf.console.store import (
    CLASSES,
    DONE,
    FAILED,
    PENDING,
    Event,
    Job,
    Lesson,
    Store,
    Taken,
    now,
)  # fmt: skip
from cilf.core import notices, validation
from cilf.core.progress import listening
from cilf.errors import CilfError
from cilf.learners import LEARNERS
from cilf.learners.persistence import CURRENT
from cilf.workflow.findings import Findings
from cilf.workflow.versions import UPDATE, ModelFolder

LOCK = "worker.lock"
IDLE = 0.2  # seconds between looks for work
TOLD_EVERY = 0.25  # seconds between progress that is written down
LOGGER = logging.getLogger("cilf.console")


class Worker:
    """Does the jobs of a store."""

    def __init__(self, store: Store, model: Path) -> None:
        self.store, self.model = store, model
        self._server = os.getppid()
        self._seen: int | None = None  # when the model was changed
        self._problem = ""  # what is wrong with it

    def run(self) -> None:
        """Do jobs as they come, until the server is gone."""
        self.store.requeue()
        while not self._alone():
            self._tell_model()
            job = self.store.claim_job()
            if job is None:
                time.sleep(IDLE)
            else:
                self.do(job)

    def do(self, job: Job) -> None:
        """Do one job, and say how it ended."""
        notices.forget()
        with _heard() as said:
            try:
                with listening(self._progress(job)):
                    result = dict(JOBS[job.kind](self, job))
            except CilfError as error:
                self._fail(job, str(error))
                return
            except Exception:
                LOGGER.exception("job %d (%s) failed", job.id, job.kind)
                self._fail(job, "it failed unexpectedly: the server's log says why.")
                return
        self._tell_model()
        self.store.change_job(job.id, status=DONE, result=result | {"notices": said})

    def _fail(self, job: Job, problem: str) -> None:
        if job.kind == "detect" and job.window is not None:
            self.store.change_window(job.window, status=FAILED, facts={"problem": problem})
        if job.about.get("lesson") is not None:  # the model is still what it was taught
            self.store.reopen_lesson(job.about["lesson"])
        self.store.change_job(job.id, status=FAILED, problem=problem)

    def _progress(self, job: Job) -> Callable[[str, int, int], None]:
        said, told = "", 0.0

        def listen(stage: str, done: int, total: int) -> None:
            nonlocal said, told
            if self._alone():
                raise SystemExit
            if stage != said or time.monotonic() - told > TOLD_EVERY:
                said, told = stage, time.monotonic()
                self.store.change_job(job.id, stage=stage, done=done, total=total)

        return listen

    def _alone(self) -> bool:
        return os.getppid() != self._server

    def _tell_model(self) -> None:
        """Say what the model is like, whenever it has changed, here or on the command line."""
        folder = ModelFolder(self.model)
        if not folder.exists():
            return
        changed = (self.model / CURRENT).stat().st_mtime_ns  # set last by whoever changes it
        if changed == self._seen:
            return
        try:
            about = workflow.describe(self.model).to_json()
        except CilfError as error:  # jobs say so too, and somebody may restore it
            self._complain(str(error))
            return
        self.store.put_fact(
            "model",
            {
                "version": about["current"],
                "classes": [known["label"] for known in about["classes"]],
                "sizes": {known["label"]: known for known in about["classes"]},
                "events": about["history"],
                "learner": about["learner"],
                "shape": about["instance_shape"],
            },
        )
        self._seen = changed

    def _complain(self, problem: str) -> None:
        if problem != self._problem:
            LOGGER.error("%s", problem)
        self._problem = problem

    # ------------------------------------------------------------- jobs

    def fit(self, job: Job) -> Mapping[str, Any]:
        # A name only: no file is run because somebody names it over HTTP.
        learner = validation.one_of("learner", job.about["learner"], LEARNERS)
        fitted = workflow.fit(
            job.about["data"],
            self.model,
            learner=learner,
            parameters={"seed": 0},
            note=job.about["note"] or None,
        )
        return {"version": fitted.event.version, "accuracy": fitted.mean_accuracy}

    def detect(self, job: Job) -> Mapping[str, Any]:
        assert job.window is not None
        row = self.store.window(job.window)
        assert row is not None
        if row.status == DONE:  # a worker was killed before it said so: people have named rows
            return {"n": row.facts["n"], "kinds": row.facts["kinds"]}
        folder = self._folder(job.window)
        self.store.change_window(row.id, status="running")
        started = time.monotonic()
        findings = workflow.detect(
            self.model, row.source, folder / "findings", skip_bad=True, overwrite=True
        )
        draw_gallery(folder, findings)
        found = findings.assignments
        facts = {
            "n": len(found.ids),
            "n_novel": found.n_novel,
            "kinds": len(found.cluster_sizes),
            "known": found.known_counts,
            "version": findings.about["version"],
            "drift": drifts(self.model, findings, self._earlier(row.id)),
            "seconds": round(time.monotonic() - started, 1),
        }
        self.store.change_window(row.id, status=DONE, facts=facts)
        return {"n": facts["n"], "kinds": facts["kinds"]}

    def learn(self, job: Job) -> Mapping[str, Any]:
        assert job.window is not None
        note, folder = f"console, job {job.id}", self._folder(job.window)
        outcome = self._learned_before(note, Findings(folder / "findings").id)
        if outcome is None:
            answers = json.loads((folder / job.about["answers"]).read_text(encoding="utf-8"))
            try:
                updated = workflow.update(
                    self.model,
                    Findings.open(folder / "findings"),
                    answers,
                    source=folder / job.about["answers"],
                    force=job.about["force"],
                    note=note,
                    renames=job.about.get("renames"),
                )
            except workflow.WouldForget as refused:
                return refused.result.to_json() | {"refused": True, "why": str(refused)}
            assert updated.event is not None
            outcome = updated.to_json() | {"before": updated.event.before}
        self.store.add_lesson(
            Lesson(job.id, job.window, outcome["version"], outcome["before"], PENDING, outcome)
        )
        self._tell_taught(job.about["keys"], job.about["person"])
        return outcome | {"refused": False}

    def _learned_before(self, note: str, findings: str) -> dict[str, Any] | None:
        """What came of this very job, if a worker was killed before it said so.

        Another store may have taught the same model in a job of the same number.
        """
        for event in ModelFolder.open(self.model).events():
            about = event.about
            job = (about.get("note"), about.get("findings"))
            if event.event == UPDATE and job == (note, findings):
                return {
                    "version": event.version,
                    "before": event.before,
                    "n_labels": about["n_labels"],
                    "new_classes": about["new_classes"],
                    "classes": about["changes"],
                    "loss": None,
                }
        return None

    def _tell_taught(self, keys: Mapping[str, str], person: str) -> None:
        """Say which class the model calls what, where that is not the same."""
        others = {label: key for label, key in keys.items() if label != key}
        while others:
            version = Classes((), self.store.events(CLASSES)).version
            patch = {"taught": others}
            event = Event(CLASSES, version + 1, TAUGHT, {"labels": others}, patch, person, now())
            try:
                self.store.append(event)
                return
            except Taken:
                continue

    def rollback(self, job: Job) -> Mapping[str, Any]:
        model, to = ModelFolder.open(self.model), int(job.about["to"])
        if model.current != to:  # else a worker was killed before it said that it is done
            model.rollback(to, f"console, job {job.id}")
        return {"version": to}

    def _folder(self, window: int) -> Path:
        return self.store.folder / "windows" / str(window)

    def _earlier(self, window: int) -> Iterator[Findings]:
        """What was found in earlier windows, the last one first."""
        for row in reversed(self.store.windows()):
            if row.id < window and row.status == DONE:
                yield Findings(self._folder(row.id) / "findings")


JOBS: dict[str, Callable[[Worker, Job], Mapping[str, Any]]] = {
    "fit": Worker.fit,
    "detect": Worker.detect,
    "learn": Worker.learn,
    "rollback": Worker.rollback,
}


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Lines that a person should read, instead of on standard error."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    listener = Listener(logging.WARNING)
    notices.LOGGER.addHandler(listener)
    try:
        yield said
    finally:
        notices.LOGGER.removeHandler(listener)


def work(folder: Path, model: Path) -> None:
    """Do the jobs of a store until the server is gone."""
    os.nice(10)  # labels come first
    with (folder / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another may still be ending
        Worker(Store(folder, os.environ.get(DATABASE)), model).run()
