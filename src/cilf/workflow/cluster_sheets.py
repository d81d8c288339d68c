"""Contact sheets: typical members of a cluster as pictures, texts, or their unusual values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cilf.core.types import Array
from cilf.evaluate.snapshot import excerpts, thumbnails
from cilf.report.contact_sheet import make_contact_sheet
from cilf.report.findings_page import MOST_COMMON, format_distance, format_value
from cilf.report.unusual_values import KnownValues, UnusualValue
from cilf.workflow.findings_view import list_values, name_columns

SIDE = 96  # pixels of an image
MOST_FIRST = 6  # values of a row, if nothing is known of the usual ones


def make_sheet(
    X: Array,
    ids: Sequence[str],
    title: str,
    *,
    columns: Sequence[str] = (),
    known: KnownValues | None = None,
) -> tuple[str, bytes]:
    """Make the sheet of some instances; returns its suffix and its content.

    Args:
        X: the instances.
        ids: their identities.
        title: the first line.
        columns: the columns of the table that the instances come from.
        known: the usual values of the known classes, if the instances are rows of numbers. Without
            them, rows are shown by their first values.
    """
    if X.ndim > 2:
        return "png", make_contact_sheet(thumbnails(X, largest=SIDE), ids, title)
    if X.ndim == 1:
        texts = zip(ids, excerpts(X).tolist(), strict=True)
        lines = [f"{identity}: {text}" for identity, text in texts]
    elif known is None:
        lines = [
            f"{identity}: {_list_first(x, columns)}" for identity, x in zip(ids, X, strict=True)
        ]
    else:
        lines = list(_describe_rows([list_values(x, known, columns) for x in X], ids))
    return "txt", ("\n".join([title, "", *lines]) + "\n").encode(errors="replace")


def _describe_rows(unusual: Sequence[Sequence[UnusualValue]], ids: Sequence[str]) -> Iterator[str]:
    """The columns that are most often unusual, and the unusual values of each."""
    common = Counter(value.column for values in unusual for value in values)
    if common:
        listed = ", ".join(f"{name} ({n})" for name, n in common.most_common(MOST_COMMON))
        yield f"most often unusual: {listed}"
        yield ""
    for identity, values in zip(ids, unusual, strict=True):
        described = "; ".join(map(_describe_value, values)) or "no value is unusual by itself"
        yield f"{identity}: {described}"


def _describe_value(value: UnusualValue) -> str:
    usual = f"usual {format_value(value.low)} to {format_value(value.high)}"
    return f"{value.column} {format_value(value.value)} ({usual}, {format_distance(value)})"


def _list_first(x: Array, columns: Sequence[str]) -> str:
    pairs = list(zip(name_columns(columns, len(x)), x.tolist(), strict=True))
    return ", ".join(f"{name} {format_value(value)}" for name, value in pairs[:MOST_FIRST])
