"""The console under load: kills, labels per second during a detection, a window of 10,000 images.

    python benchmarks/console.py --rounds 50

1. Kills: a client labels, the server is killed (SIGKILL) at a random moment and started again;
   every label that was acknowledged has to be there.
2. Rate: four clients label single instances of a window of 10,000 images while the worker detects
   novel classes in another one.
3. Opening: that window's page in a browser (if there is a chromium), cold, until its pictures are
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

from cilf import workflow
from cilf.benchmark.provenance import provenance
from cilf.console import window_view
from cilf.console.service import Console
from cilf.console.store import Store

RESULT = Path(__file__).parent / "results" / "console.json"
N_IMAGES, SIDE, N_CLASSES, N_KNOWN = 10_000, 28, 8, 5
N_CLIENTS, SECONDS = 4, 20.0
TARGET_RATE, TARGET_OPEN = 100.0, 1.0  # labels a second, seconds
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
def serve(store: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start ``cilf console`` on a store; give its address and its process."""
    command = [sys.executable, "-m", "cilf", "console", "--store", str(store), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--no-write", action="store_true", help="Do not keep the result.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cilf-console-") as name:
        folder = Path(name)
        store = folder / "store"
        store.mkdir()
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
        kills = kill_repeatedly(store, 1, arguments.rounds)
    result = {
        "kills": kills, "labels": labels, "opening": opened,
        "cores": os.cpu_count(), "load_average": os.getloadavg(), **provenance(),
    }  # fmt: skip
    good = kills["lost"] == 0 and labels["labels_per_second"] >= TARGET_RATE
    good = good and max(opened.values()) < TARGET_OPEN
    print(json.dumps(result, indent=1), "all targets met" if good else "TARGETS MISSED", sep="\n")
    if not arguments.no_write:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
