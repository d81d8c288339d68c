"""Pictures drawn with matplotlib, as files that are equal when what they show is."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from cilf.core import validation
from cilf.core.extras import optional
from cilf.core.files import make_folder, replace_file
from cilf.core.notices import notice

FORMATS: dict[str, dict[str, str | None]] = {  # and what to leave out, so that equal ones are equal
    ".png": {"Software": None},
    ".svg": {"Date": None},
}
DPI = 150


def matplotlib(module: str) -> Any:
    """A module of matplotlib, which the extra ``report`` installs."""
    return optional(module, extra="report", purpose="drawing pictures")


def new_figure(width: float, height: float) -> Any:
    """A figure that belongs to no window system; sides in inches."""
    return matplotlib("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def write_picture(figure: Any, path: Path) -> Path:
    """Write a PNG or, by the suffix of the path, an SVG file; returns the path."""
    suffix = validation.one_of("format of a picture", path.suffix.lower(), FORMATS)
    content = _rendered(figure, suffix)
    make_folder(path.parent)
    replace_file(path, content)
    return path


def _rendered(figure: Any, suffix: str) -> bytes:
    content = io.BytesIO()
    # Text stays text in an SVG, so that every alphabet shows and can be searched.
    settings = {"svg.hashsalt": "cilf", "svg.fonttype": "none"}
    with (
        matplotlib("matplotlib").rc_context(settings),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.filterwarnings("always", message="Glyph .* missing")
        metadata = FORMATS[suffix]
        figure.savefig(content, format=suffix[1:], dpi=DPI, metadata=metadata, bbox_inches="tight")
    if said and suffix == ".png":
        notice("the font of the picture lacks letters of some class names: an .svg shows them.")
    return content.getvalue()
