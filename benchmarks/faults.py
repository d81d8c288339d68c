"""Commands that are killed, run out of space or read damaged files, at every place where they can.

A *point* is one command with one fault. Its process is forked, does its work, and is

- killed at its n-th operation on a file below the folder (open, rename, remove, make, sync),
- killed at its n-th sync, after half of the file was lost,
- told at its n-th operation that the disk is full or broken,
- killed at a random moment, or
- given a file in which a bit was flipped, that was cut short, or whose JSON was changed.

After a kill or an error the folder must hold the state before the command or after it, and the
next command must work. After damage a command must refuse with one line, or do what it would have
done. Whatever else happens is *lost* (state), *stuck* (time) or a *traceback*.

People's answers in the console are tried too: a process that answers without end is killed at a
random moment, and every answer that it acknowledged must be there afterwards.

    OMP_NUM_THREADS=1 python benchmarks/faults.py --points 1000
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cilf import workflow
from cilf.benchmark import RunConfig
from cilf.benchmark.bench import Bench as CellBench
from cilf.benchmark.cell import run_cell
from cilf.benchmark.engines.local import LocalEngine
from cilf.benchmark.grid import GridCell
from cilf.benchmark.provenance import provenance
from cilf.console import updates, window_view
from cilf.console.jobs import Worker
from cilf.console.service import Console
from cilf.console.store import DONE as JOB_DONE
from cilf.console.store import Store
from cilf.console.verbs import VERBS
from cilf.core import notices
from cilf.core.files import make_folder, replace_file
from cilf.core.types import WindowRecord
from cilf.errors import CilfError
from cilf.evaluate import RunFolder
from cilf.learners import load
from cilf.report.run import Run
from cilf.workflow import Findings, ModelFolder

RESULTS = Path(__file__).parent / "results" / "faults.json"
SECONDS = 60  # a command that takes longer is stuck
DONE, REFUSED, BROKEN = 0, 3, 70  # exit codes of a forked command
PLACES = {"left": (-6.0, 0.0), "right": (6.0, 0.0), "up": (0.0, 9.0)}
FOREST = {"contamination": 0.05, "n_estimators": 10}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"})


# ----------------------------------------------------------------- faults


class DiskFull(OSError):
    """The error that a full disk gives."""


@dataclass
class Fault:
    """What happens at the n-th operation on a file below a folder; nothing if n is 0."""

    kind: str  # "kill", "torn" or "full"
    n: int
    folder: Path
    counted: int = 0

    def install(self) -> None:
        """Watch the operations of this process, which ends with them."""
        sys.addaudithook(self._watch)
        sync = os.fsync

        def sync_or_fail(descriptor: int) -> None:
            self._count(descriptor)
            sync(descriptor)

        os.fsync = sync_or_fail

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if (is_write or event in CHANGES) and self.kind != "torn" and self._is_ours(arguments[0]):
            self._count(None)

    def _is_ours(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return Path(os.path.abspath(os.fsdecode(path))).is_relative_to(self.folder)  # noqa: PTH100

    def _count(self, descriptor: int | None) -> None:
        self.counted += 1
        if self.counted != self.n:
            return
        if self.kind == "full":
            raise DiskFull(errno.ENOSPC, "No space left on device")
        if self.kind == "torn" and descriptor is not None:
            size = os.fstat(descriptor).st_size
            with suppress(OSError):  # a folder
                os.ftruncate(descriptor, size // 2)
        os.kill(os.getpid(), signal.SIGKILL)


def run_forked(
    work: Callable[[], Any], fault: Fault | None = None, seconds: float = 0.0
) -> Outcome:
    """Do some work in a process of its own. ``seconds`` is when it is killed, if not 0."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live_and_die(work, fault, writing)
    os.close(writing)
    timer = _kill_later(child, seconds or SECONDS)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    killed = os.WIFSIGNALED(status)
    code = -os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
    is_stuck = killed and not seconds and fault is None
    return Outcome(code, json.loads(answer) if answer else None, is_stuck)


def _kill_later(child: int, seconds: float) -> Any:
    import threading

    timer = threading.Timer(seconds, partial(os.kill, child, signal.SIGKILL))
    timer.start()
    return timer


def _live_and_die(work: Callable[[], Any], fault: Fault | None, writing: int) -> None:
    """Work, write the answer as JSON, and exit. It never returns."""
    code, answer = BROKEN, None
    try:
        with (
            Path(os.devnull).open("w") as nothing,
            redirect_stdout(nothing),
            redirect_stderr(nothing),
        ):
            notices.LOGGER.disabled = True
            if fault is not None:
                fault.install()
            answer, code = work(), DONE
    except (CilfError, DiskFull) as error:  # a command says both in one line
        answer, code = str(error), REFUSED
    except BaseException:  # noqa: BLE001 - the outcome of a point
        answer = traceback.format_exc()
    if code == DONE and fault is not None:
        answer = fault.counted
    os.write(writing, json.dumps(answer).encode()[-60_000:])
    os._exit(code)


@dataclass(frozen=True)
class Outcome:
    """How a forked process ended, and what it said."""

    code: int
    answer: Any
    is_stuck: bool


# ----------------------------------------------------------------- commands


def write_points(path: Path, sizes: dict[str, int], seed: int, *, labelled: bool) -> None:
    """Write points around the place of each class, whose identities begin with the class."""
    rng = np.random.default_rng(seed)
    lines = ["id,x,y,label" if labelled else "id,x,y"]
    for name, n in sizes.items():
        for i, (x, y) in enumerate(rng.normal(PLACES[name], 0.5, size=(n, 2))):
            lines.append(f"{name}-{i},{x:.4f},{y:.4f}" + (f",{name}" if labelled else ""))
    path.write_text("\n".join(lines) + "\n")


def write_data(folder: Path) -> None:
    write_points(folder / "known.csv", {"left": 30, "right": 30}, 0, labelled=True)
    write_points(folder / "new.csv", {"left": 20, "right": 20, "up": 20}, 1, labelled=False)


def fit() -> None:
    workflow.fit("known.csv", "model", learner="iforest", parameters=FOREST)


def detect(out: str = "found", *, overwrite: bool = False) -> None:
    workflow.detect("model", "new.csv", out, overwrite=overwrite)


def update() -> None:
    findings = Findings.open("found")
    ids = findings.assignments.ids.tolist()
    labels = {identity: "up" for identity in ids if identity.startswith("up")}
    workflow.update("model", findings, labels)


def rollback() -> None:
    ModelFolder.open("model").rollback(1)


def rename() -> None:
    workflow.rename("model", "left", "west")


def merge() -> None:
    workflow.merge("model", "left", "up")


def forget() -> None:
    workflow.forget("model", "up")


def rebuild() -> None:
    workflow.rebuild("model")


def split() -> None:
    workflow.split_cluster("found", 1)


def merge_clusters() -> None:
    workflow.merge_clusters("found", [1, 2])


def predict() -> None:
    workflow.predict("model", "new.csv").write(Path("labels.csv"))


def write_old_labels() -> None:
    Path("labels.csv").write_text("identity,label\n")


def configure(seed: int) -> RunConfig:
    return RunConfig.of(
        learner="iforest", data="digits", scenario="multiple", seed=seed, parameters=FOREST,
        stream={"n_windows": 2},
    )  # fmt: skip


def run() -> None:
    list(run_cell(configure(0), "run", resume=True))


def bench() -> None:
    """Run two cells with one worker process."""
    opened = CellBench.of_cells([GridCell.of(configure(seed)) for seed in (0, 1)], "bench")
    list(opened.run(LocalEngine(1)))


@contextmanager
def open_console() -> Iterator[tuple[Console, Worker]]:
    """A console and its worker in this process."""
    make_folder(Path("store"))
    store, model = Store(Path("store")), Path("model")
    worker = Worker(store, model)
    worker.publish_model()
    try:
        yield Console(store, model), worker
    finally:
        store.close()


def work_off(console: Console, worker: Worker) -> None:
    """Do the jobs that wait, as a worker that is started again."""
    console.store.requeue()
    while (job := console.store.claim_job()) is not None:
        worker.do(job)


def queue_window() -> None:
    with open_console() as (console, _):
        console.add_window("new.csv")


def queue_update() -> None:
    work()
    with open_console() as (console, _):
        members = console.open(1).state.clusters
        body = VERBS["name"].body(clusters=[number + 1 for number in members], name="up")
        console.act(1, "name", body)
        updates.start_update(console, 1, force=True)


def work() -> None:
    with open_console() as (console, worker):
        work_off(console, worker)


def look_at_window() -> Any:
    """What the console shows of its window, once its jobs are done. A failed one is repeated."""
    with open_console() as (console, worker):
        work_off(console, worker)
        if console.window(1).status != JOB_DONE:
            console.detect_again(1)
            work_off(console, worker)
        return window_view.list_clusters(console, 1)


def look_at_updates() -> Any:
    """The model of the console, once its jobs are done. A failed update is repeated."""
    with open_console() as (console, worker):
        work_off(console, worker)
        if not console.store.updates():
            updates.start_update(console, 1, force=True)
            work_off(console, worker)
        n_updates = len(console.store.updates())
    return [look_at_model(), n_updates]


def look_at_model() -> Any:
    """The current version, its classes and what it predicts; None if there is no model."""
    if not ModelFolder("model").exists():
        return None
    model = ModelFolder.open("model")
    model.verify()
    predicted = workflow.predict("model", "new.csv")
    return [model.current, model.learner().classes_.tolist(), predicted.labels.tolist()]


def look_at_findings(out: str = "found") -> Any:
    if not Path(out).exists():
        return None
    return Findings.open(out).assignments.cluster.tolist()


def look_at_labels() -> Any:
    path = Path("labels.csv")
    return path.read_text() if path.exists() else None


def look_at_bench() -> Any:
    """The records of the finished cells, whatever happened before they were resumed."""
    bench()
    folders = sorted(Path("bench/cells").iterdir())
    return [[_untimed(r) for r in RunFolder.open(folder).read_records()] for folder in folders]


def look_at_run() -> Any:
    """The records of the finished run, whatever happened before it was resumed."""
    run()
    return [_untimed(record) for record in RunFolder.open("run").read_records()]


def _untimed(record: WindowRecord) -> dict[str, Any]:
    return {k: v for k, v in record.to_json().items() if not k.startswith("seconds")}


@dataclass(frozen=True)
class Command:
    """A command, what it changes, and the commands before it."""

    work: Callable[[], None]
    look: Callable[[], Any]
    before: tuple[Callable[[], None], ...] = ()
    next: Callable[[], Any] | None = None  # a command that must work whatever the state is
    finishes: bool = False  # whether ``look`` does what the command did not
    share: float = 1.0  # of the points; less for a command that takes long


COMMANDS = {
    "fit": Command(fit, look_at_model),
    "detect": Command(detect, look_at_findings, (fit,)),
    "detect --overwrite": Command(
        partial(detect, overwrite=True), look_at_findings, (fit, detect),
        next=partial(detect, overwrite=True),
    ),
    "update": Command(update, look_at_model, (fit, detect)),
    "rollback": Command(rollback, look_at_model, (fit, detect, update)),
    "rename": Command(rename, look_at_model, (fit, detect, update)),
    "merge": Command(merge, look_at_model, (fit, detect, update)),
    "forget": Command(forget, look_at_model, (fit, detect, update)),
    "rebuild": Command(rebuild, look_at_model, (fit, detect, update), next=rebuild),
    "split": Command(split, look_at_findings, (fit, detect), next=split),
    "merge-clusters": Command(merge_clusters, look_at_findings, (fit, detect, split)),
    "predict --out": Command(predict, look_at_labels, (fit,)),
    "predict --overwrite": Command(predict, look_at_labels, (fit, write_old_labels)),
    "run": Command(run, look_at_run, finishes=True),
    "bench": Command(bench, look_at_bench, finishes=True, share=0.15),
    "worker, detect": Command(work, look_at_window, (fit, queue_window), finishes=True),
    "worker, update": Command(
        work, look_at_updates, (fit, queue_window, queue_update), finishes=True
    ),
}  # fmt: skip


# ----------------------------------------------------------------- points


@dataclass
class Tally:
    """What became of the points of a command."""

    points: int = 0
    lost: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)

    def add(self, name: str, fault: str, problem: str, outcome: Outcome | None = None) -> None:
        said = "" if outcome is None else str(outcome.answer)[-600:]
        where = {"lost": self.lost, "stuck": self.stuck, "traceback": self.tracebacks}[problem]
        where.append(f"{name}, {fault}: {said}")
        print(f"{problem}: {name}, {fault}", file=sys.stderr, flush=True)


class Bench:
    """Folders with the state before each command, of which every point gets a copy."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.rng = root, random.Random(seed)  # nosec B311  # no secret
        self.tally = Tally()
        self.n_answers = 0  # that were acknowledged

    def prepare(self, command: Command) -> Path:
        """A new folder in the state before the command."""
        folder = Path(tempfile.mkdtemp(dir=self.root))
        write_data(folder)
        for earlier in command.before:
            self._do(folder, earlier)
        return folder

    def _do(self, folder: Path, work: Callable[[], Any]) -> Any:
        outcome = self.try_out(folder, work)
        if outcome.code != DONE:
            raise RuntimeError(f"the command fails without a fault: {outcome.answer}")
        return outcome.answer

    def try_out(
        self, folder: Path, work: Callable[[], Any], fault: Fault | None = None, seconds: float = 0
    ) -> Outcome:
        def inside() -> Any:
            os.chdir(folder)
            return work()

        return run_forked(inside, fault, seconds)

    def break_off(self, name: str, command: Command, n_points: int) -> None:
        """Kill a command, or tell it that the disk is full, at places spread over all of them."""
        start = self.prepare(command)
        before = None if command.finishes else self._do(start, command.look)
        whole = self.copy(start)
        began = time.monotonic()
        self._do(whole, command.work)
        took, after = time.monotonic() - began, self._do(whole, command.look)
        for fault in self._choose_faults(start, command, n_points, took):
            folder = self.copy(start)
            placed = None if isinstance(fault, float) else Fault(fault[0], fault[1], folder)
            outcome = self.try_out(
                folder, command.work, placed, seconds=fault if isinstance(fault, float) else 0
            )
            title = f"{fault:.3f} s" if isinstance(fault, float) else f"{fault[0]} {fault[1]}"
            self._judge(name, title, command, folder, outcome, (before, after))
            shutil.rmtree(folder)
        shutil.rmtree(start)
        shutil.rmtree(whole)

    def _choose_faults(
        self, start: Path, command: Command, n_points: int, took: float
    ) -> Iterator[tuple[str, int] | float]:
        """A quarter of the points of each kind, and random moments for all that is left."""
        share, n_left = n_points // 4, n_points
        for kind in ("kill", "torn", "full"):
            counting = self.copy(start)
            n = int(self.try_out(counting, command.work, Fault(kind, 0, counting)).answer)
            shutil.rmtree(counting)
            chosen = range(1, n + 1) if n <= share else self.rng.sample(range(1, n + 1), share)
            n_left -= len(chosen)
            yield from ((kind, number) for number in sorted(chosen))
        yield from (self.rng.uniform(0.01, took) for _ in range(n_left))

    def _judge(
        self, name: str, title: str, command: Command, folder: Path, outcome: Outcome,
        states: tuple[Any, Any],
    ) -> None:  # fmt: skip
        self.tally.points += 1
        if outcome.code == BROKEN:
            self.tally.add(name, title, "traceback", outcome)
        looked = self.try_out(folder, command.look)
        if looked.is_stuck:
            self.tally.add(name, title, "stuck", looked)
        elif looked.code == BROKEN:
            self.tally.add(name, title, "traceback", looked)
        elif looked.code != DONE or looked.answer not in states:
            self.tally.add(name, title, "lost", looked)
        elif command.finishes:
            if looked.answer != states[1]:
                self.tally.add(name, title, "lost", looked)
        elif looked.answer != states[1] or command.next is not None:
            again = self.try_out(folder, command.next or command.work)
            if again.code != DONE:
                self.tally.add(name, title, "stuck", again)

    def copy(self, folder: Path) -> Path:
        target = Path(tempfile.mkdtemp(dir=self.root))
        shutil.copytree(folder, target, dirs_exist_ok=True)
        return target

    # ------------------------------------------------------------- answers

    def lose_no_answers(self, n_points: int) -> None:
        """Kill a process that answers at random moments, and compare what it acknowledged."""
        start = self.prepare(Command(work, look_at_answers, (fit, queue_window, work)))
        for number in range(n_points):
            folder = self.copy(start)
            reading, writing = os.pipe()
            seconds = self.rng.uniform(0.05, 0.6)
            endless = partial(answer_without_end, writing, number)
            self.try_out(folder, endless, seconds=seconds)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                told = [line.split() for line in pipe.read().decode().splitlines()]
            self._judge_answers(f"killed after {seconds:.3f} s", folder, told)
            shutil.rmtree(folder)
        shutil.rmtree(start)

    def _judge_answers(self, title: str, folder: Path, told: list[list[str]]) -> None:
        self.tally.points += 1
        self.n_answers += len(told)
        looked = self.try_out(folder, look_at_answers)
        if looked.code == BROKEN:
            self.tally.add("answers", title, "traceback", looked)
        elif looked.code != DONE:
            self.tally.add("answers", title, "stuck" if looked.is_stuck else "lost", looked)
        else:
            kept = [[str(seq), verb] for seq, verb in looked.answer[0]]
            if kept[: len(told)] != told or len(kept) > len(told) + 1:
                self.tally.add("answers", title, "lost", looked)

    # ------------------------------------------------------------- damage

    def damage(self, n_points: int) -> None:
        """Change files of a model, of findings, of a run and of a window, and use them."""
        start = self.prepare(Command(fit, look_at_model, DAMAGED))
        expected = {name: self._do(start, reader) for name, reader in READERS.items()}
        files = [
            path.relative_to(start)
            for name in READERS
            for path in sorted((start / name).rglob("*"))
            if path.is_file() and path.name not in UNREAD
        ]
        for _ in range(n_points):
            folder, file = self.copy(start), self.rng.choice(files)
            how = self._change(folder / file)
            name = next(name for name in READERS if file.is_relative_to(name))
            outcome = self.try_out(folder, READERS[name])
            self.tally.points += 1
            title = f"{file} {how}"
            if outcome.is_stuck:
                self.tally.add("damage", title, "stuck", outcome)
            elif outcome.code == BROKEN:
                self.tally.add("damage", title, "traceback", outcome)
            elif outcome.code == DONE and outcome.answer != expected[name] and is_covered(file):
                self.tally.add("damage", title, "lost", outcome)
            shutil.rmtree(folder)
        shutil.rmtree(start)

    def _change(self, file: Path) -> str:
        """Change a file in one of many ways; returns what was done."""
        content = bytearray(file.read_bytes())
        ways = ["flip", "cut", "remove", "zeros"] + ["json"] * (3 * (file.suffix in JSON_FILES))
        how = self.rng.choice(ways)
        if how == "json":
            return change_json(file, self.rng)
        if how == "remove" or not content:
            file.unlink()
            return "removed"
        place = self.rng.randrange(len(content))
        if how == "flip":
            content[place] ^= 1 << self.rng.randrange(8)
        elif how == "zeros":
            content[place : place + 64] = bytes(len(content[place : place + 64]))
        else:
            del content[place:]
        file.write_bytes(content)
        return f"{how} at {place}"


JSON_FILES = (".json", ".jsonl")
ODD_VALUES: tuple[Any, ...] = (
    None, 0, -1, 10**30, 1e300, "", "../../x", "/dev/zero", [], {}, True, "\ud800", [[]],
)  # fmt: skip


def change_json(file: Path, rng: random.Random) -> str:
    """Replace, remove or add a value somewhere in a JSON document."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines() if file.suffix == ".jsonl" else [text]
    row = rng.randrange(len(lines))
    document = json.loads(lines[row])
    places = list(_walk(document))
    holder, key = rng.choice(places)
    value = rng.choice(ODD_VALUES)
    what = rng.choice(("replace", "remove", "rename"))
    if what == "replace":
        holder[key] = value
    else:
        kept = holder.pop(key)
        if what == "rename" and isinstance(holder, dict):
            holder[f"{key}x"] = kept
    lines[row] = json.dumps(document)
    file.write_text("\n".join(lines) + ("\n" if file.suffix == ".jsonl" else ""), encoding="utf-8")
    return f"{what} {key!r} by {value!r}"


def _walk(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _walk(value[key])


def read_everything() -> Any:
    """What the commands that read a model say of it."""
    ModelFolder.open("model").verify()
    about = workflow.describe("model").to_json()
    del about["bytes"]  # which people's own files beside ours may change
    predicted = workflow.predict("model", "new.csv")
    labels = {str(n): ModelFolder.open("model").labels(n) for n in (1, 2)}
    return [about, predicted.labels.tolist(), predicted.novelty_p.tolist(), labels]


def read_findings() -> Any:
    """What an update would read from findings."""
    findings = Findings.open("found")
    found = findings.assignments
    ids = found.ids.tolist()
    labels = {identity: "up" for identity in ids if identity.startswith("up")}
    (Path("table.csv")).write_text("identity,label\n" + "".join(f"{i},up\n" for i in labels))
    _, read = workflow.read_labels("table.csv", "found")
    X = findings.instances(np.arange(len(ids)))
    return [ids, found.cluster.tolist(), X.tolist(), read, findings.about]


def read_run() -> Any:
    """What a report would read of a run."""
    run = Run.read(RunFolder.open("run"))
    for record in run.records:
        run.snapshot(record.window)
    for checkpoint in run.folder.checkpoint.iterdir():
        load(checkpoint)
    return [run.about, [str(_untimed(record)) for record in run.records]]


def read_window() -> Any:
    """What the console shows of a window."""
    with open_console() as (console, _):
        gallery = console.open(1).gallery
        shown = window_view.describe_instances(console, 1, list(range(len(gallery.ids))))
        thumbs = [len(gallery.thumb(row)) for row in range(len(gallery.ids))]
        return [str(shown), gallery.embedding.sum().item(), gallery.places.tolist(), thumbs]


DAMAGED = (fit, detect, update, run, queue_window, work)  # what makes the files to be changed
READERS = {
    "model": read_everything, "found": read_findings, "run": read_run,
    "store/windows/1": read_window,
}  # fmt: skip
UNREAD = frozenset({"lock", "log.txt", "index.html"})  # nothing reads these but people
UNCOVERED = frozenset({"embedding.npy", "thumbs.bin", "thumbs.npy", "view.npz", "form.json"})


def is_covered(file: Path) -> bool:
    """Whether a change of a file must not change an answer. A console's window has no checksums."""
    return file.name not in UNCOVERED


# ----------------------------------------------------------------- answers in the console


def answer_without_end(writing: int, seed: int) -> None:
    """Use verbs on the window, and write the number of each event once it is acknowledged."""
    rng = random.Random(seed)  # nosec B311  # no secret
    with open_console() as (console, _):
        while True:
            rows = rng.sample(range(len(console.open(1).gallery.ids)), 3)
            name = rng.choice(("one", "two", "three"))
            verb, body = "label", {"rows": rows, "name": name}
            if rng.random() < 0.2:
                verb, body = "undo", {}
            try:
                done = (
                    console.undo(1)
                    if verb == "undo"
                    else console.act(1, verb, VERBS[verb].body(**body))
                )
            except CilfError:  # nothing to undo
                continue
            os.write(writing, f"{done.seq} {done.verb}\n".encode())


def look_at_answers() -> Any:
    """The events of the window, and the labels that they lead to in a new console."""
    with open_console() as (console, _):
        opened = console.open(1)
        labels = {str(row): key for row, key in sorted(opened.labels.items())}
        return [[[event.seq, event.verb] for event in opened.events], labels]


# ----------------------------------------------------------------- all of it


def measure(n_kills: int, n_changes: int, seed: int, names: Collection[str] = ()) -> dict[str, Any]:
    """Try the commands of these names, or all. Returns the counts and what went wrong."""
    chosen = {name: command for name, command in COMMANDS.items() if name in (names or COMMANDS)}
    shares = sum(command.share for command in chosen.values()) + 1  # one for the answers
    with tempfile.TemporaryDirectory() as root, logging_disabled():
        bench = Bench(Path(root), seed)
        warm_up(Path(root))
        counts: Counter[str] = Counter()
        for name, command in chosen.items():
            already = bench.tally.points
            bench.break_off(name, command, round(n_kills * command.share / shares))
            counts[name] = bench.tally.points - already
            print(f"{name}: {counts[name]} points", file=sys.stderr, flush=True)
        counts["answers in the console"] = round(n_kills / shares)
        bench.lose_no_answers(counts["answers in the console"])
        bench.damage(n_changes)
        counts["damaged files"] = n_changes
    tally = bench.tally
    return {
        "points": dict(counts), "acknowledged_answers": bench.n_answers, "lost": tally.lost,
        "stuck": tally.stuck, "tracebacks": tally.tracebacks, "seed": seed,
    }  # fmt: skip


@contextmanager
def logging_disabled() -> Iterator[None]:
    """Keep the notices of commands from the terminal."""
    before, notices.LOGGER.disabled = notices.LOGGER.disabled, True
    try:
        yield
    finally:
        notices.LOGGER.disabled = before


def warm_up(root: Path) -> None:
    """Import in this process what commands import, so that each fork need not do it again."""
    folder, here = Path(tempfile.mkdtemp(dir=root)), Path.cwd()
    write_data(folder)
    os.chdir(folder)
    try:
        for command in DAMAGED:
            command()
        for reader in READERS.values():
            reader()
    finally:
        os.chdir(here)
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--only", action="append", default=[], choices=COMMANDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    began = time.monotonic()
    result = measure(options.points, options.changes, options.seed, options.only) | provenance()
    result["seconds"] = round(time.monotonic() - began)
    replace_file(options.out, (json.dumps(result, indent=1) + "\n").encode())
    for problem in ("lost", "stuck", "tracebacks"):
        print(f"{problem}: {len(result[problem])}")
        print("".join(f"  {line}\n" for line in result[problem][:5]), end="")
    return int(any(result[problem] for problem in ("lost", "stuck", "tracebacks")))


if __name__ == "__main__":
    sys.exit(main())
