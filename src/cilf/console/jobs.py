"""The jobs of the worker: fit, detect, update and rollback, one after another.

The worker is a process of its own. It writes its progress to the store. It ends when the server
that started it is gone, and the next worker does its unfinished job again.
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
from cilf.console.classes import Classes
from cilf.console.drift import measure_drift
from cilf.console.gallery import Gallery
from cilf.console.page_words import use_page_words
from cilf.console.server import DATABASE
from cilf.console.service import MEMORY
from cilf.console.snapshot import build_gallery, build_known_gallery
from cilf.console.store import (
    CLASSES,
    DONE,
    FAILED,
    PENDING,
    Event,
    Job,
    SeqTaken,
    Store,
    Update,
    now,
)  # fmt: skip
from cilf.core import notices, validation
from cilf.core.progress import listen, report
from cilf.errors import CilfError
from cilf.learners import LEARNERS, Learner
from cilf.learners.persistence import CURRENT
from cilf.nn.backbones import BACKBONES
from cilf.nn.image_models import LITE0, LITE2
from cilf.nn.text_models import MINILM
from cilf.workflow.findings import Findings
from cilf.workflow.versions import UPDATE, ModelFolder

LOCK = "worker.lock"
NETWORKS = ("auto", *BACKBONES, LITE0, LITE2, MINILM)  # that a request may name
LOADING = "loading the model"  # a stage
IDLE = 0.2  # seconds between two requests for a job
PROGRESS_EVERY = 0.25  # seconds between two writes of the progress
LOGGER = logging.getLogger("cilf.console")


class Worker:
    """Does the jobs of a store."""

    def __init__(self, store: Store, model: Path) -> None:
        self.store, self.model = store, model
        self._server = os.getppid()
        self._published: int | None = None  # time of the model's last change
        self._problem = ""  # what is wrong with the model

    def run(self) -> None:
        """Do jobs until the server is gone."""
        self.store.requeue()
        self.publish_choices()
        while not self._is_orphaned():
            self.publish_model()
            job = self.store.claim_job()
            if job is None:
                time.sleep(IDLE)
            else:
                self.do(job)

    def do(self, job: Job) -> None:
        """Do one job and write its result."""
        notices.forget()
        with _collect_notices() as lines:
            try:
                with listen(self._progress(job)):
                    result = dict(JOBS[job.kind](self, job))
            except CilfError as error:
                self._fail(job, use_page_words(str(error)))
                return
            except Exception:
                LOGGER.exception("job %d (%s) failed", job.id, job.kind)
                self._fail(job, "it failed unexpectedly: the server's log says why.")
                return
        self.publish_model()
        self.store.change_job(job.id, status=DONE, result=result | {"notices": lines})

    def _fail(self, job: Job, problem: str) -> None:
        if job.kind == "detect" and job.window is not None:
            self.store.change_window(job.window, status=FAILED, facts={"problem": problem})
        if job.about.get("update") is not None:  # it was not rolled back
            self.store.reopen_update(job.about["update"])
        self.store.change_job(job.id, status=FAILED, problem=problem)

    def _progress(self, job: Job) -> Callable[[str, int, int], None]:
        last_stage, written = "", 0.0

        def listen(stage: str, done: int, total: int) -> None:
            nonlocal last_stage, written
            if self._is_orphaned():
                raise SystemExit
            if stage != last_stage or time.monotonic() - written > PROGRESS_EVERY:
                last_stage, written = stage, time.monotonic()
                self.store.change_job(job.id, stage=stage, done=done, total=total)

        return listen

    def _is_orphaned(self) -> bool:
        return os.getppid() != self._server

    def publish_model(self) -> None:
        """Write a description of the model to the store if the model has changed."""
        folder = ModelFolder(self.model)
        if not folder.exists():
            return
        changed = (self.model / CURRENT).stat().st_mtime_ns  # written last by every change
        if changed == self._published:
            return
        try:
            about = workflow.describe(self.model).to_json()
        except CilfError as error:  # jobs report it too, and somebody may restore the model
            self._log_problem(str(error))
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
        self._published = changed

    def publish_choices(self) -> None:
        """Write the learners and networks that a model can be fitted with to the store."""
        self.store.put_fact("choices", {"learners": list(LEARNERS), "backbones": list(NETWORKS)})

    def _log_problem(self, problem: str) -> None:
        if problem != self._problem:
            LOGGER.error("%s", problem)
        self._problem = problem

    # ------------------------------------------------------------- jobs

    def fit(self, job: Job) -> Mapping[str, Any]:
        report(LOADING, 0, 1)
        about = job.about
        # Names only: a request must not run a file, or load a network from elsewhere.
        learner = validation.one_of("learner", about["learner"], LEARNERS)
        parameters: dict[str, Any] = {"seed": about["seed"]}
        if about["backbone"]:
            parameters["backbone"] = validation.one_of("backbone", about["backbone"], NETWORKS)
        loading = {name: about[name] for name in ("label", "column", "skip_bad") if about[name]}
        fitted = workflow.fit(
            about["data"],
            self.model,
            learner=learner,
            parameters=parameters,
            loading=loading,
            note=about["note"] or None,
        )
        scores = {label: score.to_json() for label, score in fitted.accuracy.items()}
        return {
            "version": fitted.event.version,
            "accuracy": fitted.mean_accuracy,
            "classes": {
                label: {"n": one["n"], "accuracy": one["after"]} for label, one in scores.items()
            },
            "confusion": fitted.confusion,
        }

    def detect(self, job: Job) -> Mapping[str, Any]:
        assert job.window is not None
        row = self.store.window(job.window)
        assert row is not None
        if row.status == DONE:  # a worker was killed before it wrote so: people have named rows
            return {"n": row.facts["n"], "n_clusters": row.facts["n_clusters"]}
        folder = self._folder(job.window)
        self.store.change_window(row.id, status="running")
        started = time.monotonic()
        report(LOADING, 0, 1)
        findings = workflow.detect(
            self.model, row.source, folder / "findings", skip_bad=True, overwrite=True
        )
        learner = ModelFolder.open(self.model).learner(findings.about["version"])
        build_gallery(folder, findings, learner)
        found = findings.assignments
        facts = {
            "n": len(found.ids),
            "n_novel": found.n_novel,
            "n_clusters": len(found.cluster_sizes),
            "known": found.known_counts,
            "version": findings.about["version"],
            "memory": self._keep_memory(findings, learner),
            "drift": measure_drift(self.model, findings, self._earlier_findings(row.id)),
            "seconds": round(time.monotonic() - started, 1),
        }
        self.store.change_window(row.id, status=DONE, facts=facts)
        return {"n": facts["n"], "n_clusters": facts["n_clusters"]}

    def _keep_memory(self, findings: Findings, learner: Learner) -> str | None:
        """Write the gallery of what the model keeps, once for each version; give its name."""
        name = f"{findings.about['model_id']}-{findings.about['version']}"
        folder = self.store.folder / MEMORY / name
        if Gallery(folder).exists():
            return name
        return None if build_known_gallery(folder, learner) is None else name

    def update(self, job: Job) -> Mapping[str, Any]:
        assert job.window is not None
        note, folder = f"console, job {job.id}", self._folder(job.window)
        outcome = self._find_finished(note, Findings(folder / "findings").id)
        if outcome is None:
            report(LOADING, 0, 1)
            path = folder / job.about["labels"]
            try:
                updated = workflow.update(
                    self.model,
                    Findings.open(folder / "findings"),
                    json.loads(path.read_text(encoding="utf-8")),
                    source=path,
                    force=job.about["force"],
                    note=note,
                    renames=job.about.get("renames"),
                )
            except workflow.WouldForget as refused:
                return refused.result.to_json() | {
                    "refused": True,
                    "why": use_page_words(str(refused)),
                }
            assert updated.event is not None
            outcome = updated.to_json() | {"before": updated.event.before}
        self.store.add_update(
            Update(job.id, job.window, outcome["version"], outcome["before"], PENDING, outcome)
        )
        self._append_keys(job.about["keys"], job.about["person"])
        return outcome | {"refused": False}

    def _find_finished(self, note: str, findings: str) -> dict[str, Any] | None:
        """The outcome of this job, if a worker was killed after the update.

        The findings tell jobs of the same number in two stores apart.
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

    def _append_keys(self, keys: Mapping[str, str], person: str) -> None:
        """Log the labels of the model that differ from the keys of their classes."""
        others = {label: key for label, key in keys.items() if label != key}
        while others:
            version = Classes((), self.store.events(CLASSES)).version
            patch = {"keys": others}
            event = Event(CLASSES, version + 1, UPDATE, {"labels": others}, patch, person, now())
            try:
                self.store.append(event)
                return
            except SeqTaken:
                continue

    def rollback(self, job: Job) -> Mapping[str, Any]:
        model, to = ModelFolder.open(self.model), int(job.about["to"])
        if model.current != to:  # else a worker was killed after the rollback
            model.rollback(to, f"console, job {job.id}")
        return {"version": to}

    def _folder(self, window: int) -> Path:
        return self.store.folder / "windows" / str(window)

    def _earlier_findings(self, window: int) -> Iterator[Findings]:
        """The findings of earlier windows, the last one first."""
        for row in reversed(self.store.windows()):
            if row.id < window and row.status == DONE:
                yield Findings(self._folder(row.id) / "findings")


JOBS: dict[str, Callable[[Worker, Job], Mapping[str, Any]]] = {
    "fit": Worker.fit,
    "detect": Worker.detect,
    "update": Worker.update,
    "rollback": Worker.rollback,
}


@contextmanager
def _collect_notices() -> Iterator[list[str]]:
    """Collect notices instead of writing them to standard error."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    listener = Listener(logging.WARNING)
    notices.LOGGER.addHandler(listener)
    try:
        yield lines
    finally:
        notices.LOGGER.removeHandler(listener)


def run_worker(folder: Path, model: Path) -> None:
    """Do the jobs of a store until the server is gone."""
    os.nice(10)  # requests come first
    with (folder / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may still be ending
        Worker(Store(folder, os.environ.get(DATABASE)), model).run()
