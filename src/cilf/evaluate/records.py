"""Run folders: what a run leaves on disk, and how to read it back.

::

    run.json            format version, resolved parameters, seed, the data's row counts,
                        versions, commit, machine
    records.jsonl       one window per line, flushed
    windows/NNN.npz     the ``Snapshot`` of window NNN, for plots
    checkpoint/NNN/     the learner after NNN finished windows, for --resume
    report.html         made from the files above
    tensorboard/        curves of the records, with --track tensorboard
    mlruns/             the same for MLflow, with --track mlflow and no MLFLOW_TRACKING_URI
    log.txt, error.txt  output and traceback of a run of a benchmark
    lock                held by the command that writes to the folder
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, Strict, create_model

from cilf.core import WindowRecord
from cilf.core.documents import (
    ArrayForm,
    Count,
    Damage,
    Document,
    Text,
    digest,
    parse_document,
    read_arrays,
    read_content,
)
from cilf.core.files import PENDING, make_folder, replace_file
from cilf.core.locks import hold_lock
from cilf.core.types import Array, Floats, Ints
from cilf.errors import BadInput

FORMAT = 3
CHECKSUM, CHECKSUM_LENGTH = "checksum", 16
LONGEST_EXCERPT = 200  # characters kept of a text
LOGS, LOCK = ("log.txt", "error.txt"), "lock"  # may exist before the run does
REPORTS = ("records.jsonl", "report.html", "windows.md", "windows.csv", "windows.tex", *LOGS)


@dataclass(frozen=True)
class Snapshot:
    """The instances of a window that are kept for plots: all, or a random sample of a large one."""

    ids: Array  # (n,) identity of each instance
    map: Floats  # (n, 2) where it lies on the 2-D map of the embedding
    truth: Array  # (n,) true class
    novel: Array  # (n,) bool: whether the learner did not know the true class
    label: Array  # (n,) known class it was given, or is nearest to
    cluster: Ints  # (n,) -1 known, else the novel class found
    novelty: Floats  # (n,)
    thumbnails: Array  # (n, h, w[, 3]) uint8; vectors as strips of height 1, texts as (n, 0, 0)
    matched: Array  # (n_found,) as str: the true class each found cluster was matched to, or ""
    sizes: Ints  # (n_found,) instances in each found cluster, in the whole window
    texts: Array  # (n,) str: how each text begins; "" for images and vectors


LABELS = "UiuS"  # kinds of arrays of labels: texts or whole numbers
FORMS = {
    "ids": ArrayForm(LABELS, ndim=1, rows="n"),
    "map": ArrayForm("f", ndim=2, rows="n"),
    "truth": ArrayForm(LABELS, ndim=1, rows="n"),
    "novel": ArrayForm("b", ndim=1, rows="n"),
    "label": ArrayForm(LABELS, ndim=1, rows="n"),
    "cluster": ArrayForm("i", ndim=1, rows="n"),
    "novelty": ArrayForm("f", ndim=1, rows="n"),
    "thumbnails": ArrayForm("u", rows="n"),
    "matched": ArrayForm("U", ndim=1, rows="found"),
    "sizes": ArrayForm("i", ndim=1, rows="found"),
    "texts": ArrayForm("U", ndim=1, rows="n"),
}

Value = Annotated[float, Field(allow_inf_nan=False)] | None  # None where a metric is undefined
Arrival = Annotated[str, Field(pattern=r"^[0-9]{1,6}$")]  # the window in which classes arrive


class PlannedDocument(Document):
    """The schema of a window of a plan."""

    novel: list[Text | int]
    counts: list[Annotated[tuple[Text | int, Count], Strict(False)]]  # lists, in JSON


class PlanDocument(Document):
    """The schema of the plan of a stream."""

    initial: list[Text | int]
    windows: list[PlannedDocument]


class FinishedDocument(Document):
    """The schema of the end of a run."""

    at: str
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RunDocument(Document):
    """The schema of run.json; a key may be missing, but not be of another type."""

    learner: Text = ""
    data: str = ""
    plan: dict[str, Any] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    stream: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, Any] = Field(default_factory=dict)
    machine: dict[str, Any] = Field(default_factory=dict)
    dataset: dict[str, Any] = Field(default_factory=dict)
    changes: list[str] = Field(default_factory=list)
    resumed: list[dict[str, Any]] = Field(default_factory=list)
    finished: FinishedDocument | None = None


class _Counted(Document):
    """The part of a record that is no plain number; there are no other keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    window: Annotated[int, Field(ge=1, le=999_999)]
    n_known: Count
    n_novel_true: Count
    n_novel_planned: Count
    n_novel_found: Count | None
    n_queried: Count
    n_propagated: Count = 0
    holdout_accuracy: dict[Arrival, Value]
    holdout_classes: dict[Arrival, Value]
    named: dict[Text, Text | int]
    extra: dict[Text, Value]
    checksum: str | None = None


_NUMBERS: dict[str, Any] = {
    field.name: (Value, ... if field.default is dataclasses.MISSING else None)
    for field in dataclasses.fields(WindowRecord)
    if field.type == "float"
}
RecordDocument: type[Document] = create_model("RecordDocument", __base__=_Counted, **_NUMBERS)


@dataclass(frozen=True)
class RunFolder:
    """A run on disk."""

    path: Path

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The run in this folder; a folder without one is refused."""
        folder = cls(Path(path))
        if not folder.exists():
            raise BadInput(f"{path} is not a run folder: it has no run.json.")
        version = folder.read_run().get("format")
        if version != FORMAT:
            raise BadInput(
                f"{path} has run format {version!r} and this cilf reads {FORMAT}: run it again, or "
                "read it with the cilf that wrote it."
            )
        return folder

    def exists(self) -> bool:
        return (self.path / "run.json").is_file()

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def mlflow(self) -> Path:
        return self.path / "mlruns"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def error(self) -> Path:
        return self.path / "error.txt"

    def lock(self) -> AbstractContextManager[None]:
        """Keep other commands from writing to the folder inside the block."""
        return hold_lock(self.path / LOCK, self.path)

    def finished(self) -> dict[str, Any] | None:
        """When the run ended and the seconds it took; None if it has not, or there is none."""
        ended = self.read_run().get("finished") if self.exists() else None
        return dict(ended) if isinstance(ended, dict) else None

    def read_run(self) -> dict[str, Any]:
        """The content of run.json."""
        try:
            content = read_content(self.path / "run.json")
            run = parse_document(content, "run.json", Document)
            if run.get("format") == FORMAT:
                parse_document(content, "run.json", RunDocument)
            _require_checksum(run, "run.json")
            return run
        except Damage as error:
            raise BadInput(
                f"{self.path / 'run.json'} cannot be read ({error}): restore it from a copy, or "
                "run it again."
            ) from error

    def write_run(self, run: dict[str, Any]) -> None:
        make_folder(self.path)
        text = json.dumps(_add_checksum({"format": FORMAT, **run}), indent=1)
        replace_file(self.path / "run.json", text.encode())

    def read_records(self) -> list[WindowRecord]:
        """Every whole line of records.jsonl; a line cut short by a kill is left out."""
        path = self.path / "records.jsonl"
        if not path.exists():
            return []
        try:
            *whole, _ = read_content(path).split(b"\n")
        except Damage as error:
            raise BadInput(f"{path.parent}: {error}; restore it, or run it again.") from error
        records = [_record(line, f"{path}:{number}") for number, line in enumerate(whole, start=1)]
        windows = [record.window for record in records]
        if windows != sorted(set(windows)):
            raise BadInput(f"{path} has its windows in another order: restore it, or run it again.")
        return records

    def write_records(self, records: Iterable[WindowRecord]) -> None:
        """Replace records.jsonl by these."""
        self.path.mkdir(parents=True, exist_ok=True)
        text = "".join(_line(record) for record in records)
        replace_file(self.path / "records.jsonl", text.encode())

    def append_record(self, record: WindowRecord) -> None:
        with (self.path / "records.jsonl").open("a", encoding="utf-8") as file:
            file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())

    def write_snapshot(self, window: int, snapshot: Snapshot) -> None:
        path = self._snapshot(window)
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = io.BytesIO()
        np.savez_compressed(packed, **dataclasses.asdict(snapshot))
        replace_file(path, packed.getvalue())

    def read_snapshot(self, window: int) -> Snapshot | None:
        """The snapshot of a window; None if the run kept none."""
        path = self._snapshot(window)
        if not path.exists():
            return None
        try:
            arrays = read_arrays(path, FORMS)
            return Snapshot(**{name: arrays[name] for name in FORMS})
        except Damage as error:
            raise BadInput(
                f"{path} is damaged ({error}): run that window again, or remove it."
            ) from error

    def clear(self) -> None:
        """Remove the files of the run and its reports.

        run.json is removed last, so that an interrupted call can be repeated.
        """
        for folder in (self.checkpoint, self.tensorboard, self.mlflow, self.path / "windows"):
            if folder.exists():
                shutil.rmtree(folder)
        for name in (*REPORTS, "run.json"):
            (self.path / name).unlink(missing_ok=True)

    def list_other_files(self) -> list[str]:
        """The sorted names of what a folder without a run holds."""
        if self.exists() or not self.path.exists():
            return []
        inside = [self.path.name] if self.path.is_file() else [p.name for p in self.path.iterdir()]
        return sorted(name for name in inside if name not in (*LOGS, LOCK, f"run.json{PENDING}"))

    def _snapshot(self, window: int) -> Path:
        return self.path / "windows" / f"{window:03d}.npz"


def find_runs(folder: str | Path) -> list[RunFolder]:
    """The run in this folder, or else every run below it, in order of path."""
    path = Path(folder)
    if RunFolder(path).exists():
        return [RunFolder.open(path)]
    found = [RunFolder.open(p.parent) for p in sorted(path.rglob("run.json"))]
    if not found:
        raise BadInput(f"{folder} holds no run: name a folder that 'cilf run' wrote.")
    return found


def _record(line: bytes, place: str) -> WindowRecord:
    try:
        plain = parse_document(line, "the line", RecordDocument)
        _require_checksum(plain, "the line")
        return WindowRecord.from_json(plain)
    except Damage as error:
        raise BadInput(
            f"{place} is not a record of a window ({error}): restore it, or run it again."
        ) from error


def _line(record: WindowRecord) -> str:
    return json.dumps(_add_checksum(record.to_json()), allow_nan=False) + "\n"


def _add_checksum(plain: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with the digest of its content, as this file holds it."""
    return plain | {CHECKSUM: _compute_checksum(plain)}


def _require_checksum(plain: dict[str, Any], name: str) -> None:
    """Take the digest out of a JSON object and compare it. An earlier cilf wrote none."""
    stated = plain.pop(CHECKSUM, None)
    if stated is not None and stated != _compute_checksum(plain):
        raise Damage(f"{name} is not what was written")


def _compute_checksum(plain: dict[str, Any]) -> str:
    written = json.loads(json.dumps(plain))  # keys are texts
    return digest(json.dumps(written, sort_keys=True).encode())[:CHECKSUM_LENGTH]
