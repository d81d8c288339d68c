"""The jobs of the worker: fit, detect, changes of the model, one after another.

The worker is a process of its own. It writes its progress to the store. It ends when the server
that started it is gone, and the next worker does its unfinished job again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cilf import workflow
from cilf.console import class_edits, import_export, uploads
from cilf.console.cancellation import CANCELLED_PROBLEM, JobCancelled, end_job
from cilf.console.classes import Classes
from cilf.console.detections import DETECTION, detection_folder, match_rows
from cilf.console.drift import measure_drift
from cilf.console.gallery import Gallery
from cilf.console.label_import import IMPORT, read_import, remove_import
from cilf.console.log import LOGGER, WORKER, open_log
from cilf.console.page_words import use_page_words
from cilf.console.server import DATABASE
from cilf.console.service import MEMORY, Console
from cilf.console.snapshot import build_gallery, build_known_gallery
from cilf.console.store import (
    CLASSES,
    DONE,
    PENDING,
    Event,
    Job,
    SeqTaken,
    Store,
    Update,
    WindowRow,
    now,
)  # fmt: skip
from cilf.console.store_problems import UNKNOWN, explain_problem
from cilf.console.window_edits import DELETED_PROBLEM, finish_deletions
from cilf.core import notices, validation
from cilf.core.documents import Damage, Document, Text, read_document
from cilf.core.progress import listen, report
from cilf.core.reading import restricted_reading
from cilf.data import DATASETS
from cilf.errors import BadInput, CilfError
from cilf.learners import LEARNERS, Learner
from cilf.learners.persistence import CURRENT
from cilf.nn.backbones import BACKBONES
from cilf.nn.image_models import LITE0, LITE2
from cilf.nn.text_models import MINILM
from cilf.workflow.findings import Findings
from cilf.workflow.ledger import hash_instances
from cilf.workflow.model_log import UPDATE
from cilf.workflow.versions import ModelFolder

LOCK, FINDINGS = "worker.lock", "findings"
NETWORKS = ("auto", *BACKBONES, LITE0, LITE2, MINILM)  # that a request may name
LOADING = "loading the model"  # a stage
UNEXPECTED = f"it failed unexpectedly: {WORKER} in the store says why."
IDLE = 0.2  # seconds between two requests for a job
PROGRESS_EVERY = 0.25  # seconds between two writes of the progress


class Worker:
    """Does the jobs of a store."""

    def __init__(self, store: Store, model: Path, roots: Sequence[Path] | None = None) -> None:
        self.store, self.model, self.roots = store, model, roots
        self._console = Console(store, model)
        self._server = os.getppid()
        self._published: int | None = None  # time of the model's last change
        self._problem = ""  # what is wrong with the model

    def run(self) -> None:
        """Do jobs until the server is gone."""
        self.store.requeue()
        self.publish_choices()
        finish_deletions(self.store)
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
                with listen(self._progress(job)), restricted_reading(self._readable(job)):
                    result = dict(JOBS[job.kind](self, job))
            except JobCancelled:
                end_job(self.store, job, CANCELLED_PROBLEM, cancelled=True)
                return
            except CilfError as error:
                end_job(self.store, job, use_page_words(str(error)))
                return
            except Exception as error:  # noqa: BLE001 - whatever a learner may raise is logged
                LOGGER.exception("job %d (%s) failed", job.id, job.kind)
                end_job(self.store, job, _explain_failure(error))
                return
        remove_import(self.store, job)
        self.publish_model()
        self.store.change_job(job.id, status=DONE, result=result | {"notices": lines})

    def _readable(self, job: Job) -> list[Path] | None:
        """The folders that a job may read instances from. None is all of them."""
        if self.roots is None or job.about.get("data") in DATASETS:
            return None
        return [*self.roots, self.store.folder / uploads.UPLOADS]

    def _progress(self, job: Job) -> Callable[[str, int, int], None]:
        last_stage, written = "", 0.0

        def listen(stage: str, done: int, total: int) -> None:
            nonlocal last_stage, written
            if self._is_orphaned():
                raise SystemExit
            if stage != last_stage or time.monotonic() - written > PROGRESS_EVERY:
                last_stage, written = stage, time.monotonic()
                if self.store.is_cancelled(job.id):
                    raise JobCancelled
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
                "is_editable": about["is_editable"],
                "forgotten": about["forgotten"],
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
        if row is None:
            raise BadInput(DELETED_PROBLEM)
        if job.about.get("again"):
            return self._detect_again(job, row)
        if row.status == DONE:  # a worker was killed before it wrote so: people have named rows
            return {"n": row.facts["n"], "n_clusters": row.facts["n_clusters"]}
        folder = self._folder(job.window)
        self.store.change_window(row.id, status="running")
        started = time.monotonic()
        facts = self._detect(row, folder, started)
        self.store.change_window(row.id, status=DONE, facts=facts)
        return {"n": facts["n"], "n_clusters": facts["n_clusters"]}

    def _detect(self, row: WindowRow, folder: Path, started: float) -> dict[str, Any]:
        """Write a detection of a window to a folder; returns its facts."""
        report(LOADING, 0, 1)
        findings = workflow.detect(
            self.model, row.source, folder / FINDINGS,
            skip_bad=True, overwrite=True, page=False,
        )  # fmt: skip
        learner = ModelFolder.open(self.model).learner(findings.about["version"])
        build_gallery(folder, findings, learner)
        found = findings.assignments
        return {
            "n": len(found.ids),
            "n_novel": found.n_novel,
            "n_clusters": len(found.cluster_sizes),
            "known": found.known_counts,
            "version": findings.about["version"],
            "memory": self._keep_memory(findings, learner),
            "drift": measure_drift(self.model, findings, self._earlier_findings(row.id)),
            "seconds": round(time.monotonic() - started, 1),
        }

    def _detect_again(self, job: Job, row: WindowRow) -> Mapping[str, Any]:
        """Detect again in a window, and show the new detection in place of the former one."""
        shown = [event.patch.get(DETECTION) for event in self.store.events(row.id)]
        if job.id not in shown:  # else a worker was killed after it was shown
            folder = detection_folder(self._folder(row.id), job.id)
            facts = self._detect(row, folder, time.monotonic())
            new = self._list_contents(folder)
            self._console.renew(
                row.id, job.id, facts,
                lambda former: match_rows(self._list_contents(former), new), job.about["person"],
            )  # fmt: skip
        return {"detection": job.id}

    def _list_contents(self, folder: Path) -> list[tuple[str, str]]:
        """The identity of each instance of a detection, and the hash of its content."""
        findings = Findings.open(folder / FINDINGS)
        ids = findings.assignments.ids.tolist()
        contents = hash_instances(findings.instances(np.arange(len(ids))))
        return list(zip(ids, contents, strict=True))

    def _keep_memory(self, findings: Findings, learner: Learner) -> str | None:
        """Write the gallery of what the model keeps, once for each version; give its name."""
        name = f"{findings.about['model_id']}-{findings.about['version']}"
        folder = self.store.folder / MEMORY / name
        if Gallery(folder).exists():
            return name
        return None if build_known_gallery(folder, learner) is None else name

    def update(self, job: Job) -> Mapping[str, Any]:
        assert job.window is not None
        note = f"console, job {job.id}"
        folder = detection_folder(self._folder(job.window), job.about.get("detection"))
        outcome = self._find_finished(note, Findings(folder / FINDINGS).id)
        if outcome is None:
            report(LOADING, 0, 1)
            path = self._folder(job.window) / job.about["labels"]
            try:
                updated = workflow.update(
                    self.model,
                    Findings.open(folder / FINDINGS),
                    _read_labels(path),
                    source=path,
                    force=job.about["force"],
                    note=note,
                    renames=job.about.get("renames"),
                )
            except workflow.WouldForget as refused:
                why = use_page_words(str(refused))
                return refused.result.to_json() | {"refused": True, "why": why}
            except BadInput:  # of the disk, maybe after the version was written
                outcome = self._find_finished(note, Findings(folder / FINDINGS).id)
                if outcome is None:
                    raise
            else:
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

    def merge(self, job: Job) -> Mapping[str, Any]:
        kept, others = job.about["kept"], job.about["others"]
        version = self._find_edit(job)
        if version is None:
            event = workflow.merge(self.model, kept, *others, note=class_edits.note_of(job))
            version = event.version
        self.publish_model()
        class_edits.log_edit(self._console, job, [*others, kept])
        return {"version": version}

    def forget(self, job: Job) -> Mapping[str, Any]:
        version = self._find_edit(job)
        if version is None:
            note = class_edits.note_of(job)
            version = workflow.forget(self.model, *job.about["labels"], note=note).version
        self.publish_model()
        class_edits.log_edit(self._console, job, job.about["labels"])
        class_edits.unname_clusters(self._console, job.about["key"], job.about["person"])
        return {"version": version}

    def _find_edit(self, job: Job) -> int | None:
        """The version that this job made, if a worker was killed after that."""
        made = ModelFolder.open(self.model).events()
        note = class_edits.note_of(job)
        return next((event.version for event in made if event.about.get("note") == note), None)

    def import_labels(self, job: Job) -> Mapping[str, Any]:
        assert job.window is not None
        if self.store.window(job.window) is None:
            raise BadInput(DELETED_PROBLEM)
        report("reading labels", 0, 1)
        labels = import_export.read_labels(read_import(self.store, job), job.about["format"])
        event = self._console.import_labels(job.window, labels, job.about["person"], job=job.id)
        n_labels = 0 if event is None else event.about["n"]
        return {"labels": n_labels, "version": self.store.last_seq(job.window)}

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
                folder = detection_folder(self._folder(row.id), row.facts.get(DETECTION))
                yield Findings(folder / FINDINGS)


JOBS: dict[str, Callable[[Worker, Job], Mapping[str, Any]]] = {
    "fit": Worker.fit,
    "detect": Worker.detect,
    "update": Worker.update,
    "rollback": Worker.rollback,
    "merge": Worker.merge,
    "forget": Worker.forget,
    IMPORT: Worker.import_labels,
}


def _explain_failure(error: Exception) -> str:
    """What a person is told about an error that nobody expected."""
    problem = explain_problem(error)
    return UNEXPECTED if problem == UNKNOWN else problem


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


class LabelsDocument(Document):
    """The schema of the labels that an update learns; its keys are identities."""

    __pydantic_extra__: dict[str, Text]


def _read_labels(path: Path) -> dict[str, str]:
    try:
        return read_document(path, LabelsDocument)
    except Damage as error:
        raise BadInput(
            f"the labels in {path.parent} are damaged ({error}): update again."
        ) from error


def run_worker(folder: Path, model: Path, roots: Sequence[Path] | None) -> None:
    """Do the jobs of a store until the server is gone. ``roots`` are the folders of data."""
    os.nice(10)  # requests come first
    open_log(folder, WORKER)
    with (folder / LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may still be ending
        Worker(Store(folder, os.environ.get(DATABASE)), model, roots).run()
