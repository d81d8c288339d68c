"""The columns of ``findings.csv`` that show an instance: its text, or its first values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from cilf.core.types import Array

MOST_COLUMNS = 5  # values of an instance
LONGEST_TEXT = 1000  # characters
TEXT = "text"
SEPARATORS = re.compile(r"[;|\s]+")  # what a reader of the table may take for a delimiter


@dataclass(frozen=True)
class ContentColumns:
    """The names of the columns, each unlike every other in more than case."""

    names: tuple[str, ...]

    def cells(self, x: Any) -> tuple[str, ...]:
        """The cells of an instance."""
        if not self.names:
            return ()
        if isinstance(x, str):
            return (" ".join(x.split())[:LONGEST_TEXT],)
        return tuple(f"{value:.6g}" for value in x[: len(self.names)].tolist())


def choose_content_columns(
    X: Array, columns: Sequence[str], taken: Collection[str]
) -> ContentColumns:
    """Choose the columns: none for images, and for vectors that come from no table.

    >>> import numpy as np
    >>> X = np.zeros((3, 2))
    >>> choose_content_columns(X, ["size", "Label"], taken=["identity", "label"]).names
    ('size', 'Label (data)')
    """
    if X.ndim == 1:
        return ContentColumns(_make_unlike((columns or (TEXT,))[:1], taken))
    if X.ndim == 2 and len(columns) == X.shape[1]:
        return ContentColumns(_make_unlike(columns[:MOST_COLUMNS], taken))
    return ContentColumns(())


def _make_unlike(names: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
    """Change names that a reader of the table could mistake for others."""
    used, unlike = {name.lower() for name in taken}, []
    for name in (" ".join(SEPARATORS.split(written)).strip() or "value" for written in names):
        while name.lower() in used:
            name = f"{name} (data)"
        used.add(name.lower())
        unlike.append(name)
    return tuple(unlike)
