"""A console in use for half an hour: people label, windows come, the model learns and forgets, and
the server and its worker are killed.

    OMP_NUM_THREADS=1 python benchmarks/soak.py --minutes 30

In the first third of the time the server or its worker is killed (SIGKILL) every 10 to 30 s, and
started again. In the rest nothing is killed, so that what grows can be seen. At the end the labels,
windows and versions that were acknowledged are compared with what the store and the model hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from cilf import workflow
from cilf.benchmark.provenance import provenance
from cilf.console import window_view
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.workflow.versions import ModelFolder

RESULT = Path(__file__).parent / "results" / "soak.json"
N_PEOPLE, PAUSE = 4, 0.1  # seconds between two labels of a person
N_KNOWN, N_FEATURES, SIZE = 4, 16, 60  # instances of a class
SAMPLE = 5.0  # seconds between two looks at the processes
GROWTH = 0.1  # of the memory at the end of the kills: more is not flat
HANDLES = 10  # more open files than that at the end are a leak
QUEUED, DONE = ("queued", "running"), "done"
GIVEN_UP = "the worker was killed several times"


@dataclass
class Soak:
    """What was acknowledged, and what was seen of the processes."""

    folder: Path
    until: float
    seed: int = 0
    url: str = ""
    server: subprocess.Popen[str] | None = None
    labels: dict[tuple[int, int], set[str]] = field(default_factory=dict)  # what a row may be
    windows: set[int] = field(default_factory=set)
    ready: list[int] = field(default_factory=list)  # windows that people label
    versions: int = 1
    kills: dict[str, int] = field(default_factory=lambda: {"server": 0, "worker": 0})
    n_labels: int = 0
    unanswered: int = 0
    given_up: int = 0
    problems: list[str] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def is_over(self) -> bool:
        return time.monotonic() >= self.until or bool(self.problems)

    def send(self, method: str, path: str, **content: Any) -> httpx.Response | None:
        """The answer, or None if the server was killed before it came."""
        try:
            answer = httpx.request(method, self.url + path, timeout=60, **content)
        except httpx.TransportError:
            with self.lock:
                self.unanswered += 1
            time.sleep(0.5)
            return None
        if answer.status_code >= 500 and answer.status_code != 503:
            self.problems.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer


# ----------------------------------------------------------------- the server


def find_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def start(soak: Soak, port: int) -> None:
    command = [sys.executable, "-m", "cilf", "console", "--store", str(soak.store)]
    soak.server = subprocess.Popen(
        [*command, "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert soak.server.stdout is not None
    line = soak.server.stdout.readline()
    if "http://" not in line:
        soak.problems.append(f"the server did not start again: {line}")
    soak.url = f"http://127.0.0.1:{port}"


def find_worker(soak: Soak) -> int | None:
    """The process of the worker; None while it starts."""
    assert soak.server is not None
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{soak.server.pid}/task").iterdir():
            children = (task / "children").read_text().split()
            if children:
                return int(children[0])
    return None


def kill_at_random(soak: Soak, port: int, until: float) -> None:
    rng = random.Random(soak.seed)  # nosec B311  # when, and what
    while time.monotonic() < until and not soak.is_over():
        time.sleep(rng.uniform(10, 30))
        worker = find_worker(soak)
        if rng.random() < 0.5 and worker is not None:
            os.kill(worker, signal.SIGKILL)
            soak.kills["worker"] += 1
            continue
        assert soak.server is not None
        soak.server.kill()
        soak.server.wait()
        soak.kills["server"] += 1
        start(soak, port)


def look(soak: Soak, started: float) -> None:
    """Add the memory and the open files of both processes to the samples."""
    assert soak.server is not None
    found: dict[str, float] = {"second": round(time.monotonic() - started)}
    for name, process in (("server", soak.server.pid), ("worker", find_worker(soak))):
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
            handles = len(list(Path(f"/proc/{process}/fd").iterdir()))
        except OSError:  # it was killed
            return
        found[f"{name}_mb"] = round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
        found[f"{name}_handles"] = handles
    soak.samples.append(found)


# ----------------------------------------------------------------- what people do


def label(soak: Soak, person: int) -> None:
    """Label rows of earlier windows; each person has rows of their own."""
    rng = random.Random(100 + person)  # nosec B311  # which rows
    while not soak.is_over():
        time.sleep(PAUSE)
        if not soak.ready:
            continue
        window = soak.ready[-1]
        row = rng.randrange(SIZE // N_PEOPLE) * N_PEOPLE + person
        name, key = f"thing {rng.randrange(12)}", (window, row)
        body = {"rows": [row], "name": name, "person": f"person {person}"}
        answer = soak.send("POST", f"/api/windows/{window}/label", json=body)
        if answer is None or answer.status_code == 503:  # it may be written, or not
            soak.labels[key] = soak.labels.get(key, {""}) | {name}
        elif answer.status_code == 200:
            soak.labels[key] = {name}
            with soak.lock:
                soak.n_labels += 1
        elif answer.status_code == 400 and name in soak.labels.get(key, ()):
            soak.labels[key] = {name}  # "it has this label already"
        else:
            soak.problems.append(f"label: {answer.status_code} {answer.text[:200]}")


def make_instances(classes: list[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    centres = np.random.default_rng(0).normal(0, 4, (100, N_FEATURES))
    y = np.repeat(classes, SIZE)
    X = centres[y % 100] + np.random.default_rng(seed).normal(size=(len(y), N_FEATURES))
    return X.astype(np.float32), y


def wait_for(soak: Soak, path: str) -> dict[str, Any] | None:
    """What the API tells of a job or a window that is done.

    None if the console gave it up, which it does after several kills and says so.
    """
    while not soak.is_over():
        answer = soak.send("GET", path)
        if answer is not None and answer.status_code == 200:
            told: dict[str, Any] = answer.json()
            if told["status"] not in QUEUED:
                if told["status"] == DONE:
                    return told
                if GIVEN_UP not in json.dumps(told):
                    soak.problems.append(f"{path}: {json.dumps(told)[:500]}")
                soak.given_up += 1
                return None
        time.sleep(0.5)
    return None


def ask_until_known(soak: Soak, post: Callable[[], httpx.Response | None]) -> Any | None:
    """Ask again until the server answers; a request without an answer may have been done."""
    while not soak.is_over():
        answer = post()
        if answer is not None and answer.status_code < 300:
            return answer.json()
        if answer is not None and answer.status_code not in (409, 503):
            soak.problems.append(f"{answer.request.url}: {answer.status_code} {answer.text[:200]}")
        time.sleep(0.5)
    return None


def detect(soak: Soak, cycle: int) -> int | None:
    """Let a window with a novel class come."""
    X, _ = make_instances([*range(N_KNOWN), N_KNOWN + cycle % 50], seed=cycle + 1)
    order = np.random.default_rng(cycle).permutation(len(X))
    path = soak.folder / f"window{cycle}.npz"
    np.savez(path, x=X[order])
    body = {"path": str(path)}
    made = ask_until_known(soak, lambda: soak.send("POST", "/api/windows", json=body))
    if made is None:
        return None
    soak.windows.add(made["id"])
    told = wait_for(soak, f"/api/windows/{made['id']}")
    return None if told is None else int(made["id"])


def learn(soak: Soak, window: int, name: str) -> bool:
    """Name all clusters of a window alike, and learn them."""
    shown = ask_until_known(soak, lambda: soak.send("GET", f"/api/windows/{window}/clusters"))
    if shown is None or not shown["clusters"]:
        return False
    numbers = [cluster["cluster"] for cluster in shown["clusters"]]
    body = {"clusters": numbers, "name": name}
    answer = soak.send("POST", f"/api/windows/{window}/name", json=body)
    if answer is None:
        return False
    return change_model(soak, f"/api/windows/{window}/update", {"force": True})


def change_model(soak: Soak, path: str, body: dict[str, Any]) -> bool:
    answer = soak.send("POST", path, json=body)
    if answer is None or answer.status_code >= 300:
        return False
    told = wait_for(soak, f"/api/jobs/{answer.json()['job']}")
    if told is None:
        return False
    soak.versions += 1
    return True


def work(soak: Soak) -> None:
    """Windows come, a class is learned, and forgotten again."""
    for cycle in range(10**6):
        if soak.is_over():
            return
        window = detect(soak, cycle)
        if window is None:
            continue
        if learn(soak, window, f"class {cycle}"):
            change_model(soak, "/api/classes/forget", {"name": f"class {cycle}"})
        soak.ready.append(window)


# ----------------------------------------------------------------- what came of it


def compare(soak: Soak) -> list[str]:
    """What the store and the model hold against what was acknowledged."""
    store, problems = Store(soak.store), []
    console = Console(store, soak.store / "model")
    there = {row.id for row in store.windows()}
    ready = [row.id for row in store.windows() if row.status == DONE]
    problems += [f"window {window} is lost" for window in sorted(soak.windows - there)]
    for window in sorted({window for window, _ in soak.labels} & set(ready)):
        kept = window_view.list_labels(console, window)
        for (number, row), allowed in soak.labels.items():
            if number == window and kept[row].label not in allowed:
                problems.append(f"window {window}, row {row}: {kept[row].label!r}, not {allowed}")
    acknowledged = soak.n_labels
    written = sum(
        event.verb == "label" for window in ready for event in console.open(window).events
    )
    if not acknowledged <= written <= acknowledged + soak.unanswered:
        problems.append(f"{written} labels are written, {acknowledged} were acknowledged")
    store.close()
    current = ModelFolder.open(soak.store / "model").current
    if current < soak.versions:
        problems.append(f"the model has version {current}, {soak.versions} were acknowledged")
    return problems


def judge_growth(soak: Soak, calm: float) -> dict[str, Any]:
    """Memory and open files since the last kill: the first minute after it is left out."""
    samples = [sample for sample in soak.samples if sample["second"] > calm + 60]
    if not samples:  # it ended before, with a problem
        return {}
    fifth = max(1, len(samples) // 5)
    found: dict[str, Any] = {}
    for name in ("server", "worker"):
        for unit in ("mb", "handles"):
            values = [sample[f"{name}_{unit}"] for sample in samples]
            found[f"{name}_{unit}"] = [
                round(float(np.median(part)), 1) for part in (values[:fifth], values[-fifth:])
            ]
    return found


def is_flat(growth: dict[str, list[float]]) -> bool:
    return all(
        last <= first * (1 + GROWTH) if name.endswith("mb") else last <= first + HANDLES
        for name, (first, last) in growth.items()
    )


def run(folder: Path, minutes: float, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    soak = Soak(folder, until=started + 60 * minutes, seed=seed)
    X, y = make_instances(list(range(N_KNOWN)), seed=0)
    np.savez(folder / "known.npz", x=X, y=y.astype(str))
    soak.store.mkdir()
    workflow.fit(str(folder / "known.npz"), soak.store / "model")
    port = find_port()
    start(soak, port)
    while httpx.get(f"{soak.url}/api/model").json()["version"] is None:  # the worker still starts
        time.sleep(0.5)
    calm = 60 * minutes / 3
    threads = [
        threading.Thread(target=kill_at_random, args=(soak, port, started + calm)),
        threading.Thread(target=work, args=(soak,)),
        *(threading.Thread(target=label, args=(soak, person)) for person in range(N_PEOPLE)),
    ]
    for thread in threads:
        thread.start()
    while not soak.is_over():
        time.sleep(SAMPLE)
        look(soak, started)
    for thread in threads:
        thread.join()
    assert soak.server is not None
    soak.server.send_signal(signal.SIGINT)
    soak.server.wait()
    growth = judge_growth(soak, calm)
    print(json.dumps(growth), flush=True)
    soak.problems += compare(soak)
    return {
        "minutes": minutes, "kills": soak.kills, "windows": len(soak.windows),
        "model_version": soak.versions, "labels": soak.n_labels, "unanswered": soak.unanswered,
        "given_up": soak.given_up,
        "problems": soak.problems, "first and last fifth after the kills": growth,
        "flat": is_flat(growth), "seed": seed, **provenance(), "samples": soak.samples[::12],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cilf-soak-") as name:
        result = run(Path(name), options.minutes, options.seed)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    shown = {name: value for name, value in result.items() if name != "samples"}
    print(json.dumps(shown, indent=1))
    return 0 if result["flat"] and not result["problems"] else 1


if __name__ == "__main__":
    sys.exit(main())
