"""A sample project on the embedded digits: labelled images of five classes, and a window."""

from __future__ import annotations

from pathlib import Path

from cilf.console.bodies import FitOptions
from cilf.console.gallery import encode_png
from cilf.console.service import Console
from cilf.console.store import WindowRow
from cilf.console.updates import require_no_model, start_fit
from cilf.console.uploads import UPLOADS
from cilf.core.files import make_folder
from cilf.core.random import generator
from cilf.core.types import Array, Ints
from cilf.data.digits import load_digits

N_KNOWN = 5  # classes of the model
N_TRAINING, N_WINDOW = 60, 25  # images of each class
SEED = 0
NAME = "Sample: digits"


def start_sample(console: Console) -> WindowRow:
    """Queue the fit of a model on five digits, and a window with a sixth one."""
    require_no_model(console)
    known, window = write_sample(console.store.folder / UPLOADS / "sample")
    start_fit(console, str(known), FitOptions(note=NAME), is_upload=True)
    return console.add_upload(window, NAME)


def write_sample(folder: Path) -> tuple[Path, Path]:
    """Write the images; give the folder of class folders, and that of the window."""
    X, y = load_digits().train
    mixed = generator(SEED, "sample", len(y)).permutation(len(y))  # they come writer by writer
    known, window = folder / "known", folder / "new"
    for digit in range(N_KNOWN + 1):
        rows = mixed[y[mixed] == digit]
        if digit < N_KNOWN:
            _write(known / str(digit), X, rows[:N_TRAINING])
        _write(window, X, rows[N_TRAINING : N_TRAINING + N_WINDOW])
    return known, window


def _write(folder: Path, X: Array, rows: Ints) -> None:
    make_folder(folder)
    for row in rows.tolist():
        (folder / f"digit-{row}.png").write_bytes(encode_png(X[row]))
