"""Record ``cilf watch`` anew: ``python docs/record_watch.py``.

Digits come into a folder on two days. The commands run, and what they print is drawn line by line
as a picture that moves without a player: docs/images/watch.svg.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

PICTURE = Path(__file__).parent / "images" / "watch.svg"
NAMES = ("zero", "one", "two", "three", "four", "five", "six")
WATCH = "cilf watch model incoming --once --at-least 50 --out found"
COLUMNS, FONT, LINE = 96, 13, 20  # characters, pixels, pixels
BETWEEN, COMMAND, END = 0.5, 1.4, 5.0  # seconds: after a line, after a command, at the end
COLOURS = {"#": "#8b949e", "$": "#7ee787", "{": "#ffa657"}  # by the first character of a line


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        lines = list(record())
    PICTURE.write_text(draw(lines), encoding="utf-8")
    print(f"{PICTURE}: {len(lines)} lines, {PICTURE.stat().st_size / 1000:.0f} kB")


def record() -> Sequence[str]:
    """The lines of a terminal in which a stream is watched on two days."""
    write_digits("known", range(900), n_classes=5, by_class=True)
    run("cilf fit known --out model --backbone convnet")
    lines = ["# Monday: the digits that the model knows"]
    write_digits("incoming/monday", range(900, 1150), n_classes=5)
    lines += [f"$ {WATCH}", *run(WATCH), "", "# Tuesday: two new digits are among them"]
    write_digits("incoming/tuesday", range(1150, 1500), n_classes=7)
    return [*lines, f"$ {WATCH}", *run(WATCH)]


def write_digits(folder: str, rows: range, *, n_classes: int, by_class: bool = False) -> None:
    from PIL import Image
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(len(digits))  # they come writer by writer
    for row in rows:
        image, digit = images[mixed[row]], digits[mixed[row]]
        if digit < n_classes:
            path = Path(folder, NAMES[digit] if by_class else "", f"{row:04}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((image.reshape(8, 8) * 15.9).astype("uint8")).save(path)


def run(command: str) -> list[str]:
    """The lines that a command prints, without the path of the folder."""
    from cilf import cli

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            cli.main(shlex.split(command)[1:])
        except SystemExit as left:
            if left.code:
                raise RuntimeError(printed.getvalue()) from left
    text = printed.getvalue().replace(f"{os.getcwd()}/", "")  # noqa: PTH109
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def draw(lines: Sequence[str]) -> str:
    """An SVG in which the lines come one after another, and then from the beginning."""
    wrapped = [
        (line[start : start + COLUMNS], line[:1], start == 0)
        for line in lines
        for start in range(0, max(len(line), 1), COLUMNS)
    ]
    times, now = [], 0.3
    for text, first, begins in wrapped:
        times.append(now)
        now += (COMMAND if first == "$" else BETWEEN) if begins and text else 0.0
    total = now + END
    width, height = COLUMNS * FONT * 0.602 + 32, len(wrapped) * LINE + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'font-size="{FONT}"><title>cilf watch on two days</title>',
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>',
        *(
            f'<circle cx="{20 + 18 * i}" cy="18" r="5.5" fill="{colour}"/>'
            for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    for position, ((text, first, _), at) in enumerate(zip(wrapped, times, strict=True)):
        y, share = 52 + position * LINE, at / total
        parts.append(
            f'<text x="16" y="{y}" xml:space="preserve" fill="{COLOURS.get(first, "#e6edf3")}">'
            f'{escape(text)}<animate attributeName="opacity" dur="{total:.1f}s" '
            f'repeatCount="indefinite" calcMode="discrete" values="0;1" keyTimes="0;{share:.3f}"/>'
            "</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
