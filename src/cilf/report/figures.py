"""Figures of matplotlib as files; equal figures give equal files."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from cilf.core import validation
from cilf.core.extras import optional
from cilf.core.files import make_folder, replace_file
from cilf.core.notices import warn_once

FORMATS: dict[str, dict[str, str | None]] = {  # suffix -> metadata to leave out
    ".png": {"Software": None},
    ".svg": {"Date": None},
}
DPI = 150


def import_matplotlib(module: str) -> Any:
    """Import a module of matplotlib, which the extra ``report`` installs."""
    return optional(module, extra="report", purpose="plotting figures")


def new_figure(width: float, height: float) -> Any:
    """Make a figure that belongs to no window system; its sides are in inches."""
    return import_matplotlib("matplotlib.figure").Figure(
        figsize=(width, height), layout="constrained"
    )


def write_figure(figure: Any, path: Path) -> Path:
    """Write a PNG or SVG file, by the suffix of the path, and return the path."""
    suffix = validation.one_of("format of a figure", path.suffix.lower(), FORMATS)
    content = _render(figure, suffix)
    make_folder(path.parent)
    replace_file(path, content)
    return path


def _render(figure: Any, suffix: str) -> bytes:
    content = io.BytesIO()
    # Text stays text in an SVG, so that every alphabet shows and can be searched.
    settings = {"svg.hashsalt": "cilf", "svg.fonttype": "none"}
    with (
        import_matplotlib("matplotlib").rc_context(settings),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.filterwarnings("always", message="Glyph .* missing")
        metadata = FORMATS[suffix]
        figure.savefig(content, format=suffix[1:], dpi=DPI, metadata=metadata, bbox_inches="tight")
    if caught and suffix == ".png":
        warn_once("the font lacks letters of some class names: an .svg file shows them.")
    return content.getvalue()
