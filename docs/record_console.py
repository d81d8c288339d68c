"""Record the console anew: ``python docs/record_console.py``.

A browser names the novel clusters in a window of digits and updates the model with the names.
Each step is a picture that is shown for a set time, so that the recording does not depend on the
speed of the machine. It needs chromium and ffmpeg on the path. The file is
docs/images/console.webm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

RECORDING = Path(__file__).parent / "images" / "console.webm"
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven")
N_KNOWN, N_TRAINING, N_WINDOW = 5, 60, 25
SIZE = {"width": 1120, "height": 700}
PATIENCE = 120_000  # milliseconds, for a machine with much else to do
SETTLING = 1500  # milliseconds
POINTER = """
const pointer = document.createElement('div');
pointer.id = 'recorded-pointer';
pointer.style.cssText = 'position:fixed;z-index:9999;width:18px;height:18px;border-radius:50%;'
  + 'background:rgba(239,134,54,.55);border:2px solid #c9560a;pointer-events:none;'
  + 'transform:translate(-50%,-50%);display:none';
document.documentElement.append(pointer);
"""


class Film:
    """Pictures of a page, each with the seconds for which it is shown."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.frames: list[tuple[Path, float]] = []

    def show(self, seconds: float) -> None:
        path = self.folder / f"{len(self.frames):04}.png"
        self.page.screenshot(path=path)
        self.frames.append((path, seconds))

    def point(self, selector: str) -> None:
        """Move the pointer to the middle of an element."""
        box = self.page.locator(selector).first.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + min(box["height"] / 2, 60)
        self.page.evaluate(
            "([x, y]) => { const p = document.getElementById('recorded-pointer');"
            "p.style.display = 'block'; p.style.left = x + 'px'; p.style.top = y + 'px'; }",
            [x, y],
        )

    def type(self, text: str) -> None:
        for letter in text:
            self.page.keyboard.type(letter)
            self.show(0.16)

    def write(self, path: Path) -> None:
        lines = [f"file '{frame}'\nduration {seconds}" for frame, seconds in self.frames]
        listed = self.folder / "frames.txt"
        listed.write_text("\n".join([*lines, f"file '{self.frames[-1][0]}'"]) + "\n")
        subprocess.run(
            [
                "ffmpeg", "-y", "-loglevel", "error", "-f", "concat", "-safe", "0",
                "-i", str(listed), "-vf", "fps=12,format=yuv420p", "-c:v", "libvpx-vp9",
                "-crf", "36", "-b:v", "0", "-an", str(path),
            ],
            check=True,
        )  # fmt: skip
        seconds = sum(seconds for _, seconds in self.frames)
        print(f"{path}: {seconds:.0f} s, {path.stat().st_size / 1000:.0f} kB")


def write_digits(folder: Path) -> tuple[Path, Path]:
    """Labelled images of five digits, and a window with eight."""
    from PIL import Image
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(len(digits))  # they come writer by writer
    known, window = folder / "known", folder / "monday"
    for digit, name in enumerate(NAMES):
        rows = mixed[digits[mixed] == digit]
        for position, row in enumerate(rows[: N_TRAINING + N_WINDOW]):
            is_labelled = position < N_TRAINING
            if is_labelled and digit >= N_KNOWN:
                continue
            path = (known / name if is_labelled else window) / f"{digit}-{row}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((images[row].reshape(8, 8) * 15.9).astype("uint8")).save(path)
    return known, window


@contextmanager
def serving(store: Path) -> Iterator[str]:
    """The address of a console on this store."""
    command = [sys.executable, "-m", "cilf", "console", "--store", str(store), "--port", "0",
        "--model", str(store.parent / "model"),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert process.stdout is not None
    address = re.search(r"http://[^/\s]+", process.stdout.readline())
    assert address is not None
    try:
        yield address.group()
    finally:
        process.terminate()
        process.wait()


def add_window(page: Any, address: str, window: Path) -> None:
    """Add a window as soon as the worker has read the model."""
    end = time.monotonic() + PATIENCE / 1000
    while not page.request.post(f"{address}/api/windows", data={"path": str(window)}).ok:
        assert time.monotonic() < end, "the worker has not read the model"
        page.wait_for_timeout(1000)


def record(page: Any, film: Film, address: str) -> None:
    page.goto(f"{address}/windows/1")
    page.wait_for_selector("#clusters .cluster-card")
    settle(page)
    film.show(3.0)
    cards = page.locator("#clusters .cluster-card")
    for number in [int(cards.nth(i).get_attribute("data-cluster")) for i in range(cards.count())]:
        card = f"#clusters .cluster-card[data-cluster='{number}']"
        page.locator(card).scroll_into_view_if_needed()
        page.focus(card)
        film.point(card)
        film.show(0.9)
        page.keyboard.press("n")
        page.wait_for_timeout(300)
        film.show(0.4)
        film.type(digit_of(page, card))
        page.keyboard.press("Enter")
        settle(page)
        film.show(1.0)
    page.evaluate("window.scrollTo(0, 0)")
    film.show(0.8)
    page.keyboard.press("l")
    settle(page)
    film.show(1.2)
    page.wait_for_selector("text=/Accept/", timeout=PATIENCE)
    settle(page)
    film.show(3.5)
    film.point("button:has-text('Accept')")
    film.show(1.0)
    page.click("button:has-text('Accept')")
    settle(page)
    film.show(3.0)


def digit_of(page: Any, card: str) -> str:
    """The name of the digit that most pictures of a cluster show."""
    labels = [one.get_attribute("aria-label") for one in page.locator(f"{card} .thumb").all()]
    shown = Counter(re.search(r"Instance (\d)-", label).group(1) for label in labels)
    return NAMES[int(shown.most_common(1)[0][0])]


def settle(page: Any) -> None:
    """Wait until the page has shown what came of the last step."""
    page.wait_for_timeout(SETTLING)
    page.wait_for_function("() => !document.querySelector(\".desk[aria-busy='true']\")")


def main() -> None:
    from playwright.sync_api import sync_playwright

    from cilf import workflow

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        known, window = write_digits(folder)
        workflow.fit(str(known), folder / "model", parameters={"backbone": "convnet"})
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        with serving(folder / "store") as address:
            page = browser.new_context(viewport=SIZE).new_page()
            page.set_default_timeout(PATIENCE)
            page.add_init_script(f"addEventListener('DOMContentLoaded', () => {{{POINTER}}})")
            add_window(page, address, window)
            film = Film(page, folder)
            record(page, film, address)
            film.write(RECORDING)
            if kept := os.environ.get("CILF_SCREENSHOTS"):
                shutil.copytree(folder, kept, dirs_exist_ok=True)
        browser.close()


if __name__ == "__main__":
    main()
