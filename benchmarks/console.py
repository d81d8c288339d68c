"""The console under load: kills, labels per second during a detection, a window of 10,000 images.

    python benchmarks/console.py --rounds 50 --before ../earlier/src --database postgresql://...

1. Kills: a client labels, the server is killed (SIGKILL) at a random moment and started again;
   every label that was acknowledged has to be there.
2. Rate: four clients label single instances of a window of 10,000 images while the worker detects
   novel classes in another one.
3. Clients: 1 to 200 clients label single instances of that window while nothing else is done. The
   code in the folder ``--before`` is measured in turns with this one, on windows of its own. With
   ``--database``, both are measured on PostgreSQL as well.
4. Opening: that window's page in a browser (if there is a chromium), cold, until its pictures are
   there; and the page alone, without a browser.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from label_clients import measure_labels

from cilf import workflow
from cilf.benchmark.provenance import provenance
from cilf.console import window_view
from cilf.console.gallery import write_gallery
from cilf.console.service import Console
from cilf.console.store import DONE, Store

RESULT = Path(__file__).parent / "results" / "console.json"
N_IMAGES, SIDE, N_CLASSES, N_KNOWN = 10_000, 28, 8, 5
N_CLIENTS, SECONDS = 4, 20.0
CLIENTS, TURNS, TURN_SECONDS = (1, 4, 16, 64, 200), 3, 3.0
TARGET_RATE, TARGET_OPEN = 100.0, 1.0  # labels a second, seconds
TARGET_CLIENTS, TARGET_TOGETHER, TARGET_P99 = 16, 1000.0, 100.0  # labels a second, milliseconds
SHOWN = """() => [...document.images].every((image) => image.complete
    || image.getBoundingClientRect().top > innerHeight)"""  # every picture in the viewport
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def make_images(n: int, classes: range, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make noisy copies of one random picture for each class."""
    pictures = np.random.default_rng(0).uniform(0, 255, (N_CLASSES, SIDE, SIDE))
    rng = np.random.default_rng(seed)
    y = rng.choice(list(classes), n)
    X = pictures[y] + rng.normal(0, 50, (n, SIDE, SIDE))
    return X.clip(0, 255).astype(np.uint8), y


@contextlib.contextmanager
def serve(
    store: Path, source: Path | None = None, database: str | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start ``cilf console`` on a store; give its address and its process.

    ``source`` is the folder of its code; None is this one.
    """
    command = [sys.executable, "-m", "cilf", "console", "--store", str(store), "--port", "0"]
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    if database is not None:
        environment["CILF_DATABASE"] = database
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield "http://" + line.split("http://")[1].split("/")[0], process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait()
        process.stdout.close()


def prepare(folder: Path) -> None:
    """Make a store with a model of five classes, and two windows of 10,000 images."""
    X, y = make_images(60 * N_KNOWN, range(N_KNOWN), seed=1)
    np.savez(folder / "known.npz", x=X, y=y.astype(str))
    for name, seed in (("first", 2), ("second", 3)):
        X, _ = make_images(N_IMAGES, range(N_CLASSES), seed)
        np.savez(folder / f"{name}.npz", x=X)
    workflow.fit(str(folder / "known.npz"), folder / "store" / "model")


def wait_for(client: httpx.Client, window: int) -> dict[str, Any]:
    while (told := client.get(f"/api/windows/{window}").json())["status"] in ("queued", "running"):
        time.sleep(0.5)
    assert told["status"] == "done", told
    return dict(told)


# ----------------------------------------------------------------- kills


def kill_repeatedly(store: Path, window: int, rounds: int) -> dict[str, int]:
    rng = random.Random(0)  # nosec B311  # no secret
    n_acknowledged = n_lost = 0
    expected: dict[int, str] = {}  # of all rounds
    for number in range(rounds):
        acknowledged: dict[int, str] = {}
        with serve(store) as (url, process), httpx.Client(base_url=url, timeout=60) as client:
            killer = threading.Timer(rng.uniform(0.05, 1.0), process.kill)
            client.get(f"/api/windows/{window}/clusters")
            killer.start()
            with contextlib.suppress(httpx.TransportError):
                while True:
                    row, name = rng.randrange(N_IMAGES), f"class {rng.randrange(40)}"
                    pending = (row, name)
                    body = {"rows": [row], "name": name}
                    answer = client.post(f"/api/windows/{window}/label", json=body)
                    if answer.status_code == 200:
                        acknowledged[row] = expected[row] = name
            killer.join()
        kept = Store(store)
        labelled = window_view.list_labels(Console(kept, store / "model"), window, "")
        kept.close()
        # The last request may have been written and killed before it was acknowledged.
        found = {row: labelled[row].label for row in expected}
        if found.get(pending[0]) == pending[1]:
            expected[pending[0]] = pending[1]
        lost = [row for row, name in expected.items() if found[row] != name]
        n_acknowledged, n_lost = n_acknowledged + len(acknowledged), n_lost + len(lost)
        print(f"round {number + 1}: {len(acknowledged)} acknowledged, {len(lost)} lost", flush=True)
    return {"rounds": rounds, "acknowledged": n_acknowledged, "lost": n_lost}


# ----------------------------------------------------------------- labels per second


def measure_rate(url: str, window: int, busy: threading.Event) -> dict[str, float]:
    """Count the labels of several clients per second while the worker is busy, for 20 s at most."""
    seconds: list[float] = []
    refused: list[int] = []

    def label(seed: int) -> None:
        rng = random.Random(seed)  # nosec B311  # no secret
        with httpx.Client(base_url=url, timeout=60) as client:
            while busy.is_set():
                body = {"rows": [rng.randrange(N_IMAGES)], "name": f"class {rng.randrange(9)}"}
                started = time.perf_counter()
                answer = client.post(f"/api/windows/{window}/label", json=body)
                seconds.append(time.perf_counter() - started)
                if answer.status_code != 200:
                    refused.append(answer.status_code)

    people = [threading.Thread(target=label, args=(seed,)) for seed in range(N_CLIENTS)]
    started = time.perf_counter()
    for person in people:
        person.start()
    for person in people:
        person.join()
    took = time.perf_counter() - started
    seconds.sort()
    return {
        "labels": len(seconds) - len(refused),
        "seconds": round(took, 2),
        "labels_per_second": round((len(seconds) - len(refused)) / took, 1),
        "median_ms": round(1000 * statistics.median(seconds), 1),
        "p99_ms": round(1000 * seconds[int(0.99 * len(seconds))], 1),
    }


def measure_rate_while_detecting(client: httpx.Client, url: str, data: Path) -> dict[str, float]:
    window = client.post("/api/windows", json={"path": str(data)}).json()["id"]
    while client.get(f"/api/windows/{window}").json()["status"] != "running":
        time.sleep(0.1)
    busy = threading.Event()
    busy.set()

    def watch() -> None:
        end = time.monotonic() + SECONDS
        with httpx.Client(base_url=url) as watcher:
            while time.monotonic() < end:
                if watcher.get(f"/api/windows/{window}").json()["status"] != "running":
                    break
                time.sleep(0.2)
        busy.clear()

    watcher = threading.Thread(target=watch)
    watcher.start()
    measured = measure_rate(url, 1, busy)
    watcher.join()
    wait_for(client, window)
    return measured


# ----------------------------------------------------------------- many clients


def make_window(store: Path) -> None:
    """Make window 1 without a model: 10,000 rows, of which four clusters have a tenth each."""
    rng = np.random.default_rng(0)
    made = Store(store)
    fit = {"event": "fit", "version": 1, "before": None}
    made.put_fact("model", {"version": 1, "classes": ["a", "b"], "sizes": {}, "events": [fit]})
    number = made.add_window("made", "nowhere", budget=50)
    row = np.arange(N_IMAGES)
    write_gallery(
        Console(made, store / "model").folder(number),
        ids=row.astype(str), label=np.where(row % 2, "a", "b"), form="vectors",
        novelty=rng.random(N_IMAGES).astype(np.float32),
        cluster=np.where(row % 10 < 4, row % 10, -1),
        embedding=rng.random((N_IMAGES, 16)).astype(np.float32),
        places=rng.random((N_IMAGES, 2)).astype(np.float32), thumbs=[], stack=row,
    )  # fmt: skip
    facts = {"n": N_IMAGES, "n_clusters": 4, "known": {}, "version": 1, "memory": None}
    made.change_window(number, status=DONE, facts=facts)
    made.close()


def copy_window(store: Path, database: str | None, n: int) -> list[int]:
    """Add windows with the detection of window 1 to a store. Returns their numbers."""
    original, target = Store(store), Store(store, database)
    row = original.window(1)
    assert row is not None
    target.put_fact("model", original.fact("model"))
    numbers = []
    for _ in range(n):
        numbers.append(target.add_window(row.name, row.source, row.budget))
        target.change_window(numbers[-1], status=DONE, facts=row.facts)
        folder = store / "windows" / str(numbers[-1])
        if not folder.exists():
            folder.symlink_to(store / "windows" / "1", target_is_directory=True)
    original.close()
    target.close()
    return numbers


def measure_clients(
    store: Path, sides: dict[str, Path | None], database: str | None = None
) -> list[dict[str, Any]]:
    """Measure each number of clients with each side in turns; keep the median turn."""
    results = []
    with contextlib.ExitStack() as stack:
        urls, windows = {}, {}
        for side, source in sides.items():
            own = store.with_name(f"store-{side}-{'sqlite' if database is None else 'postgres'}")
            shutil.copytree(store, own)
            windows[side] = iter(copy_window(own, database, len(CLIENTS) * TURNS))
            urls[side], _ = stack.enter_context(serve(own, source, database))
        for n_clients in CLIENTS:
            turns: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
            for _ in range(TURNS):
                for side, url in urls.items():
                    window = next(windows[side])
                    httpx.get(f"{url}/api/windows/{window}/clusters", timeout=60)
                    turns[side].append(
                        measure_labels(url, window, N_IMAGES, n_clients, TURN_SECONDS)
                    )
            for side, measured in turns.items():
                measured.sort(key=lambda turn: float(turn["labels_per_second"]))
                results.append({"side": side, **measured[TURNS // 2]})
                print(f"{(database and 'postgresql') or 'sqlite'}: {results[-1]}", flush=True)
    return results


DATABASES = ("sqlite", "postgresql")


def meets_target(results: list[dict[str, Any]]) -> bool:
    (found,) = (r for r in results if (r["side"], r["clients"]) == ("now", TARGET_CLIENTS))
    fast = float(found["labels_per_second"]) >= TARGET_TOGETHER
    return fast and float(found["p99_ms"]) <= TARGET_P99


# ----------------------------------------------------------------- opening


def measure_opening(url: str, window: int) -> dict[str, float]:
    with httpx.Client(base_url=url, timeout=60) as client:
        started = time.perf_counter()
        client.get(f"/windows/{window}").raise_for_status()
        measured = {"page_seconds": round(time.perf_counter() - started, 3)}
        started = time.perf_counter()
        client.get(f"/api/windows/{window}/map").raise_for_status()
        measured["map_seconds"] = round(time.perf_counter() - started, 3)
    if shutil.which("chromium") is None:
        return measured
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started_playwright:
        browser = started_playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url)
        started = time.perf_counter()
        page.goto(f"{url}/windows/{window}", wait_until="load")
        page.wait_for_function(SHOWN)
        measured["browser_seconds"] = round(time.perf_counter() - started, 3)
        browser.close()
    return measured


def measure_work(folder: Path, store: Path, rounds: int) -> dict[str, Any]:
    """Measure parts 1, 2 and 4, on a model and windows of their own."""
    prepare(folder)
    with serve(store) as (url, _), httpx.Client(base_url=url, timeout=60) as client:
        while client.get("/api/model").json()["version"] is None:
            time.sleep(0.2)
        client.post("/api/windows", json={"path": str(folder / "first.npz")})
        first = wait_for(client, 1)
        print(f"first window: {json.dumps(first['facts'])}", flush=True)
    with serve(store) as (url, _), httpx.Client(base_url=url, timeout=60) as client:
        opened = measure_opening(url, 1)  # by a server that has never opened it
        print(f"opening: {opened}", flush=True)
        labels = measure_rate_while_detecting(client, url, folder / "second.npz")
        print(f"labels while detecting: {labels}", flush=True)
    kills = kill_repeatedly(store, 1, rounds)
    return {
        "kills": kills, "labels": labels, "opening": opened, "cores": os.cpu_count(),
        "load_average": os.getloadavg(), **provenance(),
    }  # fmt: skip


def measure_together(store: Path, before: Path | None, database: str | None) -> dict[str, Any]:
    """Measure part 3 on each database."""
    sides: dict[str, Path | None] = {} if before is None else {"before": before}
    sides |= {"now": None}
    measured: dict[str, Any] = {"sqlite": measure_clients(store, sides)}
    if database is not None:
        measured["postgresql"] = measure_clients(store, sides, database)
    return measured | {"load_average": os.getloadavg(), **provenance()}


def is_good(result: dict[str, Any]) -> bool:
    good = result["kills"]["lost"] == 0 and result["labels"]["labels_per_second"] >= TARGET_RATE
    good = good and max(result["opening"].values()) < TARGET_OPEN
    clients = result["clients"]
    return good and all(meets_target(clients[name]) for name in DATABASES if name in clients)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--before", type=Path, help="The folder 'src' of an earlier version.")
    parser.add_argument("--database", help="The URL of an empty PostgreSQL database.")
    parser.add_argument(
        "--only-clients", action="store_true", help="Measure part 3; keep the rest of the record."
    )
    parser.add_argument("--no-write", action="store_true", help="Do not keep the result.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cilf-console-") as name:
        folder = Path(name)
        store = folder / "store"
        store.mkdir()
        if arguments.only_clients:
            make_window(store)
            result = json.loads(RESULT.read_text())
        else:
            result = measure_work(folder, store, arguments.rounds)
        result["clients"] = measure_together(store, arguments.before, arguments.database)
    verdict = "all targets met" if is_good(result) else "TARGETS MISSED"
    print(json.dumps(result, indent=1), verdict, sep="\n")
    if not arguments.no_write:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
