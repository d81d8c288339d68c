"""The roles of a table's columns: class, content, identity and split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from cilf.core import validation
from cilf.core.extras import optional
from cilf.core.notices import warn_once
from cilf.core.reading import is_readable
from cilf.core.types import Label
from cilf.data.options import Options
from cilf.data.pixels import is_image
from cilf.data.split import parse_split
from cilf.errors import BadConfig, BadInput

Kind = Literal["label", "image", "text", "number", "vector", "other"]
ContentKind = Literal["image", "path", "text", "number", "vector"]
Content = tuple[tuple[str, ...], ContentKind]  # the columns, and what they hold

USUAL_LABELS = ("label", "labels", "class", "target", "category", "y")
USUAL_IDENTITIES = {"", "id", "index", "row", "unnamed: 0", "__index_level_0__"}  # pandas' too
USUAL_SPLITS = {"split", "part"}
N_PATHS_TRIED = 5  # paths of a column that may be missing before the table is refused


@cache
def arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow, or a module of it."""
    return optional(module, extra="data", purpose="reading tables")


@dataclass(frozen=True)
class Feature:
    """The content of a column, and the names of the classes if the table has them."""

    kind: Kind
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows that can be read repeatedly, a batch at a time.

    Attributes:
        where: the name of the table in messages.
        n_rows: the number of rows.
        features: the content of each column.
        batches: a function that returns the record batches of some columns.
        root: the folder that image paths are relative to; None for the working folder.
        key: plain values that identify the content.
        written: a function that returns the values of a column as strings; None if the file stores
            types.
        lines: a function that returns the line of each row in the file, counted from 1 with the
            header; None if the file is no text.
        files: the parquet files of the table, in order; none if it has another format.
    """

    where: str
    n_rows: int
    features: Mapping[str, Feature]
    batches: Callable[[Sequence[str]], Iterator[Any]]
    root: Path | None
    key: Mapping[str, Any]
    written: Callable[[str], list[str]] | None = None
    lines: Callable[[], list[int]] | None = None
    files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.n_rows == 0:
            raise BadInput(f"{self.where} holds no rows: give a table with at least one.")

    def places(self, rows: Sequence[int]) -> list[str]:
        """Where rows are, in the words of an editor or, if the file is no text, as their number."""
        if self.lines is None:
            return [f"row {row + 1}" for row in rows]
        lines = self.lines()
        return [f"line {lines[row]}" for row in rows]

    def columns_of(self, *kinds: Kind) -> list[str]:
        """The columns that hold these kinds of content."""
        return [column for column, feature in self.features.items() if feature.kind in kinds]

    def values(self, column: str) -> Iterator[Any]:
        """The values of a column as Python values; missing values are None."""
        for batch in self.batches([column]):
            try:
                values = batch.column(0).to_pylist()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{self.where}: column {column!r} is not UTF-8: save the file as UTF-8."
                ) from error
            yield from values


@dataclass(frozen=True)
class Roles:
    """The roles of the columns of a table."""

    content: tuple[str, ...]
    kind: ContentKind
    label: str | None
    identity: str | None
    split: str | None


def choose_roles(table: Table, options: Options, *, labelled: bool) -> Roles:
    """Choose the roles of a table's columns.

    Unused columns are reported. A table with several possible contents is refused.
    """
    label = find_label(table, options) if labelled else find_unused_label(table, options)
    wanted = options.columns or ()
    if label in wanted and not labelled:
        label = None
    free = [column for column in table.features if column != label]
    split = next((column for column in free if _is_split(table, column)), None)
    identity = next((column for column in free if _is_identity(table, column, options)), None)
    free = [column for column in free if column not in (split, identity)]
    content, kind = _content(table, free, label, options)
    used = frozenset(content)
    _report_unused(table, [column for column in free if column not in used])
    if label is not None and not labelled and kind == "number" and not wanted:
        warn_once(
            f"{table.where}: {label!r} is taken for a label and left out (columns=... says which "
            "columns to take)."
        )
    also = [column for column in _find_usual_labels(table) if column in used]
    if also and label is not None:
        warn_once(f"{table.where}: {_join(also)} is part of the instances, the label is {label!r}.")
    if identity is not None and kind == "number":
        warn_once(f"{table.where}: {identity!r} names the rows, it is not part of the instances.")
    return Roles(content, kind, label, identity, split)


def find_label(table: Table, options: Options) -> str:
    """Find the column that holds the class."""
    if options.label is not None:
        return validation.one_of(f"label column of {table.where}", options.label, table.features)
    described = table.columns_of("label")
    found = [c for c in described if len(described) == 1 or c == "fine_label"]
    if described and not found:
        raise BadInput(
            f"{table.where} has several label columns ({_join(described)}): name one with "
            "label=... (--label on the command line)."
        )
    found += _find_usual_labels(table)
    if not found:
        raise BadInput(
            f"{table.where} has no column that looks like a label (it has "
            f"{_join(table.features)}): name it with label=... (--label on the command line)."
        )
    return found[0]


def find_unused_label(table: Table, options: Options) -> str | None:
    """Find the label column, which is ignored where labels are not needed."""
    if options.label is not None:
        return options.label if options.label in table.features else None
    return next(iter(_find_usual_labels(table)), None)


def _find_usual_labels(table: Table) -> list[str]:
    names = {column.strip().lower(): column for column in table.features}
    return [names[usual] for usual in USUAL_LABELS if usual in names]


def _is_split(table: Table, column: str) -> bool:
    if column.strip().lower() not in USUAL_SPLITS or table.features[column].kind != "text":
        return False
    return all(parse_split(value) is not None for value in table.values(column))


def _is_identity(table: Table, column: str, options: Options) -> bool:
    wanted = (options.column, *(options.columns or ()))
    if column.strip().lower() not in USUAL_IDENTITIES or column in wanted:
        return False
    return read_row_names(table, column) is not None


def read_row_names(table: Table, column: str) -> list[str] | None:
    """Read a column as names of rows; None if two rows have the same name."""
    if table.features[column].kind not in ("text", "number"):
        return None
    names = [to_label(value) for value in read_as_written(table, column)]
    if None in names or len(set(names)) < len(names):
        return None
    return [str(name) for name in names]


def read_as_written(table: Table, column: str) -> list[Any]:
    """Read a column, as strings if numbers would lose leading zeros."""
    values = list(table.values(column))
    if table.written is None or not any(isinstance(value, int) for value in values):
        return values
    written = table.written(column)
    padded = any(len(text) > 1 and text[0] == "0" and text.isdecimal() for text in written)
    return written if padded else values


def to_label(value: Any) -> Label | float | None:
    """Convert a value of a table to a label; None if it is missing, a float if it has a fraction.

    >>> to_label(3.0), to_label(True), to_label("007"), to_label("")
    (3, 'true', '007', None)
    """
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if isinstance(value, int) else str(value)


def _content(table: Table, free: list[str], label: str | None, options: Options) -> Content:
    if options.columns is not None:
        return _choose_columns(table, options.columns)
    if options.column is not None:
        return _choose_column(table, label, options.column)
    images = [column for column in free if table.features[column].kind == "image"]
    if images:
        return _require_one(table, images), "image"
    paths = [column for column in free if _holds_paths(table, column)]
    if paths:
        return _require_one(table, paths), "path"
    return _choose_candidate(table, free)


def find_kinds(table: Table, column: str | None = None) -> set[ContentKind]:
    """Find the kinds of content that a table offers; only that of ``column`` if it is given."""
    names = [name for name in table.features if column is None or name == column]
    kinds: set[ContentKind] = set()
    for name in names:
        kind = table.features[name].kind
        if kind == "text" and _holds_paths(table, name):
            kinds.add("path")
        elif kind != "label" and kind != "other":
            kinds.add(kind)
    return kinds


def _require_one(table: Table, columns: list[str]) -> tuple[str]:
    if len(columns) > 1:
        raise BadInput(
            f"{table.where} has several columns of images ({_join(columns)}): name one with "
            "column=... (--column on the command line)."
        )
    return (columns[0],)


def _choose_column(table: Table, label: str | None, column: str) -> Content:
    validation.one_of(f"column of {table.where}", column, table.features)
    if column == label:
        raise BadConfig(f"column and label are both {column!r}: name another column to learn from.")
    kind = table.features[column].kind
    if kind == "other" or kind == "label":
        raise BadInput(
            f"{table.where}: column {column!r} holds no image, text or numbers: name another one "
            "with column=... (--column on the command line)."
        )
    return (column,), "path" if _holds_paths(table, column) else kind


def _choose_columns(table: Table, columns: tuple[str, ...]) -> Content:
    missing = [column for column in columns if column not in table.features]
    if missing:
        raise BadInput(
            f"{table.where} lacks {_join(missing)} (it has {_join(table.features)}): add or "
            "rename columns."
        )
    others = [column for column in columns if table.features[column].kind != "number"]
    if others:
        raise BadInput(f"{table.where}: column {others[0]!r} holds no numbers: correct it.")
    return columns, "number"


def _choose_candidate(table: Table, free: list[str]) -> Content:
    by_kind = {kind: [c for c in free if table.features[c].kind == kind] for kind in _WORDS}
    candidates: list[Content] = []
    if by_kind["number"]:
        candidates.append((tuple(by_kind["number"]), "number"))
    candidates += [((column,), "vector") for column in by_kind["vector"]]
    candidates += [((column,), "text") for column in by_kind["text"]]
    if not candidates:
        raise BadInput(
            f"{table.where} has nothing to learn from (its columns are {_join(table.features)}): "
            "it needs images, image paths, a text or numbers beside the label."
        )
    if len(candidates) > 1:
        raise BadInput(_explain_ambiguity(table, by_kind))
    return candidates[0]


_WORDS: dict[ContentKind, str] = {"text": "text", "vector": "lists", "number": "numbers"}


def _explain_ambiguity(table: Table, by_kind: Mapping[ContentKind, list[str]]) -> str:
    found = [f"{_WORDS[kind]} in {_join(names)}" for kind, names in by_kind.items() if names]
    remedy = "name one column with column=... (--column on the command line)"
    if by_kind["number"]:
        remedy += ", or remove the columns beside the numbers"
    return f"{table.where} could be learned from in several ways ({'; '.join(found)}): {remedy}."


def _holds_paths(table: Table, column: str) -> bool:
    """Whether the first rows are paths of images; refused if none of these images exists."""
    if table.features[column].kind != "text":
        return False
    first = [str(value or "") for value in islice(table.values(column), 512)]
    if not all(is_image(Path(value)) for value in first):
        return False
    tried = [locate_image(table, value) for value in first[:N_PATHS_TRIED]]
    if not any(map(is_readable, tried)):
        raise BadInput(
            f"{table.where}: column {column!r} names images, but {tried[0]} is not there: paths "
            "are relative to the table's folder; correct them, or remove the column."
        )
    return True


def locate_image(table: Table, written: str) -> Path:
    """Locate the image that a row names."""
    return Path(written) if table.root is None else table.root / written


def _report_unused(table: Table, columns: list[str]) -> None:
    told = [column for column in columns if table.features[column].kind != "label"]
    if told:
        warn_once(f"{table.where}: not used: {_join(told)}.")


def require_same_columns(train: Table, test: Table, roles: Roles) -> None:
    """Refuse a test table whose columns differ from those of the training table."""
    missing = [column for column in train.features if column not in test.features]
    added = [column for column in test.features if column not in train.features]
    if missing or added:
        differences = [f"lacks {_join(missing)}"] * bool(missing)
        differences += [f"adds {_join(added)}"] * bool(added)
        raise BadInput(
            f"{test.where} {' and '.join(differences)}, compared with {train.where}: give both "
            "the same columns."
        )
    for column in roles.content:
        kinds = train.features[column].kind, test.features[column].kind
        if kinds[0] != kinds[1]:
            raise BadInput(
                f"column {column!r} is {kinds[0]} in {train.where}, but {kinds[1]} in "
                f"{test.where}: make them the same."
            )


def _join(columns: Sequence[str] | Mapping[str, Any]) -> str:
    names = [repr(column) for column in columns]
    shown = names if len(names) <= 12 else [*names[:10], f"... {len(names) - 10} more"]
    return ", ".join(shown)
