"""Which columns of a table hold the class, the content, the identity and the split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from cilf.core import validation
from cilf.core.extras import optional
from cilf.core.notices import notice
from cilf.core.types import Label
from cilf.data.options import Options
from cilf.data.pixels import is_image
from cilf.errors import BadConfig, BadInput

Kind = Literal["label", "image", "text", "number", "vector", "other"]
ContentKind = Literal["image", "path", "text", "number", "vector"]
Content = tuple[tuple[str, ...], ContentKind]  # columns and what they are learned from as

USUAL_LABELS = ("label", "labels", "class", "target", "category", "y")
USUAL_IDENTITIES = {"", "id", "index", "row", "unnamed: 0", "__index_level_0__"}  # pandas' too
USUAL_SPLITS = {"split", "part"}
TRAIN_PARTS = {"train", "training"}
TEST_PARTS = {"test", "testing", "val", "valid", "validation"}
N_PATHS_TRIED = 5  # so many of a column's paths have to lead nowhere before we say so


def arrow(module: str = "pyarrow") -> Any:
    """pyarrow, or a module of it."""
    return optional(module, extra="data", purpose="reading tables")


@dataclass(frozen=True)
class Feature:
    """What a column holds, and the names of the classes if the table says them."""

    kind: Kind
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows that can be read again and again, a batch at a time.

    Attributes:
        where: what messages call it.
        n_rows: how many rows it has.
        features: what each column holds.
        batches: columns -> record batches of pyarrow with these columns.
        root: image paths in it are relative to this folder.
        key: plain values that identify the content.
        written: column -> its values before types were guessed; None if the file has types.
    """

    where: str
    n_rows: int
    features: Mapping[str, Feature]
    batches: Callable[[Sequence[str]], Iterator[Any]]
    root: Path | None
    key: Mapping[str, Any]
    written: Callable[[str], list[str]] | None = None

    def __post_init__(self) -> None:
        if self.n_rows == 0:
            raise BadInput(f"{self.where} holds no rows: give a table with at least one.")

    def of_kind(self, *kinds: Kind) -> list[str]:
        """The columns of these kinds."""
        return [column for column, feature in self.features.items() if feature.kind in kinds]

    def values(self, column: str) -> Iterator[Any]:
        """A column's values as Python values, None where they are missing."""
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
    """What the columns of a table are for."""

    content: tuple[str, ...]
    kind: ContentKind
    label: str | None
    identity: str | None
    split: str | None


def choose(table: Table, options: Options, *, labelled: bool) -> Roles:
    """The roles of a table's columns; what is not used is told, what is ambiguous refused."""
    label = label_column(table, options) if labelled else unused_label(table, options)
    wanted = options.columns or ()
    if label in wanted and not labelled:
        label = None
    free = [column for column in table.features if column != label]
    split = next((column for column in free if _says_split(table, column)), None)
    identity = next((column for column in free if _names_rows(table, column, options)), None)
    free = [column for column in free if column not in (split, identity)]
    content, kind = _content(table, free, label, options)
    _tell_unused(table, [column for column in free if column not in content])
    if label is not None and not labelled and kind == "number" and not wanted:
        notice(
            f"{table.where}: {label!r} is taken for a label and left out (columns=... says which "
            "columns to take)."
        )
    also = [column for column in _usually_labels(table) if column in content]
    if also and label is not None:
        notice(f"{table.where}: {_listed(also)} is learned from, the label is {label!r}.")
    if identity is not None and kind == "number":
        notice(f"{table.where}: {identity!r} names the rows, it is not learned from.")
    return Roles(content, kind, label, identity, split)


def label_column(table: Table, options: Options) -> str:
    """The column that holds the class."""
    if options.label is not None:
        return validation.one_of(f"label column of {table.where}", options.label, table.features)
    described = table.of_kind("label")
    found = [c for c in described if len(described) == 1 or c == "fine_label"]
    if described and not found:
        raise BadInput(
            f"{table.where} has several label columns ({_listed(described)}): name one with "
            "label=... (--label on the command line)."
        )
    found += _usually_labels(table)
    if not found:
        raise BadInput(
            f"{table.where} has no column that looks like a label (it has "
            f"{_listed(table.features)}): name it with label=... (--label on the command line)."
        )
    return found[0]


def unused_label(table: Table, options: Options) -> str | None:
    """The label column that unlabelled use of a table passes over, if it has one."""
    if options.label is not None:
        return options.label if options.label in table.features else None
    return next(iter(_usually_labels(table)), None)


def _usually_labels(table: Table) -> list[str]:
    names = {column.strip().lower(): column for column in table.features}
    return [names[usual] for usual in USUAL_LABELS if usual in names]


def _says_split(table: Table, column: str) -> bool:
    if column.strip().lower() not in USUAL_SPLITS or table.features[column].kind != "text":
        return False
    return all(part_of(value) is not None for value in table.values(column))


def part_of(value: str | None) -> Literal["train", "test"] | None:
    """The split that a value names, if it names one.

    >>> part_of("Validation")
    'test'
    """
    name = (value or "").strip().lower()
    if name in TRAIN_PARTS:
        return "train"
    return "test" if name in TEST_PARTS else None


def _names_rows(table: Table, column: str, options: Options) -> bool:
    wanted = (options.column, *(options.columns or ()))
    if column.strip().lower() not in USUAL_IDENTITIES or column in wanted:
        return False
    return row_names(table, column) is not None


def row_names(table: Table, column: str) -> list[str] | None:
    """The values of a column as the names of rows; None unless each row has another one."""
    if table.features[column].kind not in ("text", "number"):
        return None
    names = [plain_label(value) for value in as_written(table, column)]
    if None in names or len(set(names)) < len(names):
        return None
    return [str(name) for name in names]


def as_written(table: Table, column: str) -> list[Any]:
    """The values of a column, as strings if numbers would lose their leading zeros."""
    values = list(table.values(column))
    if table.written is None or not any(isinstance(value, int) for value in values):
        return values
    written = table.written(column)
    padded = any(len(text) > 1 and text[0] == "0" and text.isdecimal() for text in written)
    return written if padded else values


def plain_label(value: Any) -> Label | float | None:
    """A value of a table as a label; None if it is missing, a float if it has a fraction.

    >>> plain_label(3.0), plain_label(True), plain_label("007"), plain_label("")
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
        return _all_asked_for(table, options.columns)
    if options.column is not None:
        return _asked_for(table, label, options.column)
    images = [column for column in free if table.features[column].kind == "image"]
    if images:
        return _only_image(table, images), "image"
    paths = [column for column in free if _holds_paths(table, column)]
    if paths:
        return _only_image(table, paths), "path"
    return _only_candidate(table, free)


def _only_image(table: Table, columns: list[str]) -> tuple[str]:
    if len(columns) > 1:
        raise BadInput(
            f"{table.where} has several columns of images ({_listed(columns)}): name one with "
            "column=... (--column on the command line)."
        )
    return (columns[0],)


def _asked_for(table: Table, label: str | None, column: str) -> Content:
    validation.one_of(f"column of {table.where}", column, table.features)
    if column == label:
        raise BadConfig(f"column and label are both {column!r}: the label is not learned from.")
    kind = table.features[column].kind
    if kind == "other" or kind == "label":
        raise BadInput(
            f"{table.where}: column {column!r} holds no image, text or numbers: name another one "
            "with column=... (--column on the command line)."
        )
    return (column,), "path" if _holds_paths(table, column) else kind


def _all_asked_for(table: Table, columns: tuple[str, ...]) -> Content:
    missing = [column for column in columns if column not in table.features]
    if missing:
        raise BadInput(
            f"{table.where} lacks {_listed(missing)} (it has {_listed(table.features)}): add or "
            "rename columns."
        )
    others = [column for column in columns if table.features[column].kind != "number"]
    if others:
        raise BadInput(f"{table.where}: column {others[0]!r} holds no numbers: correct it.")
    return columns, "number"


def _only_candidate(table: Table, free: list[str]) -> Content:
    of_kind = {kind: [c for c in free if table.features[c].kind == kind] for kind in _WORDS}
    candidates: list[Content] = []
    if of_kind["number"]:
        candidates.append((tuple(of_kind["number"]), "number"))
    candidates += [((column,), "vector") for column in of_kind["vector"]]
    candidates += [((column,), "text") for column in of_kind["text"]]
    if not candidates:
        raise BadInput(
            f"{table.where} has nothing to learn from (its columns are {_listed(table.features)}): "
            "it needs images, image paths, a text or numbers beside the label."
        )
    if len(candidates) > 1:
        raise BadInput(_ambiguous(table, of_kind))
    return candidates[0]


_WORDS: dict[ContentKind, str] = {"text": "text", "vector": "lists", "number": "numbers"}


def _ambiguous(table: Table, of_kind: Mapping[ContentKind, list[str]]) -> str:
    found = [f"{_WORDS[kind]} in {_listed(names)}" for kind, names in of_kind.items() if names]
    remedy = "name one column with column=... (--column on the command line)"
    if of_kind["number"]:
        remedy += ", or remove the columns beside the numbers"
    return f"{table.where} could be learned from in several ways ({'; '.join(found)}): {remedy}."


def _holds_paths(table: Table, column: str) -> bool:
    """Whether the first rows name images; if they do, some of them have to be there."""
    if table.features[column].kind != "text":
        return False
    first = [str(value or "") for value in islice(table.values(column), 512)]
    if not all(is_image(Path(value)) for value in first):
        return False
    tried = [image_path(table, value) for value in first[:N_PATHS_TRIED]]
    if not any(path.is_file() for path in tried):
        raise BadInput(
            f"{table.where}: column {column!r} names images, but {tried[0]} is not there: paths "
            "are relative to the table's folder; correct them, or remove the column."
        )
    return True


def image_path(table: Table, written: str) -> Path:
    """Where an image is that a row names."""
    return Path(written) if table.root is None else table.root / written


def _tell_unused(table: Table, columns: list[str]) -> None:
    told = [column for column in columns if table.features[column].kind != "label"]
    if told:
        notice(f"{table.where}: not used: {_listed(told)}.")


def same_columns(train: Table, test: Table, roles: Roles) -> None:
    """Refuse a test table that lacks a column of the training table, or holds another one."""
    missing = [column for column in train.features if column not in test.features]
    added = [column for column in test.features if column not in train.features]
    if missing or added:
        differences = [f"lacks {_listed(missing)}"] * bool(missing)
        differences += [f"adds {_listed(added)}"] * bool(added)
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


def _listed(columns: Sequence[str] | Mapping[str, Any]) -> str:
    names = [repr(column) for column in columns]
    shown = names if len(names) <= 12 else [*names[:10], f"... {len(names) - 10} more"]
    return ", ".join(shown)
