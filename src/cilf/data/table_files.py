"""Tables on disk: CSV, TSV, JSON lines and parquet, read with pyarrow."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cilf.core.cache import fingerprint
from cilf.core.notices import warn_once
from cilf.core.reading import open_file
from cilf.data.columns import Feature, Kind, Table, arrow
from cilf.data.csv_dialect import Dialect, detect_dialect
from cilf.errors import BadInput

ROWS_PER_BATCH = 512
BYTES_PER_BATCH = 2**25  # fewer rows if they are large
BYTES_FOR_DIALECT = 2**16
BLOCK = 2**24  # bytes; no row of a file of text may be longer than this


@contextmanager
def _report_errors(path: Path, explain: Callable[[str], str] = str) -> Iterator[None]:
    """Report an error of pyarrow in one line with the file; ``explain`` adds to its reason."""
    try:
        yield
    except BadInput:
        raise
    except (ValueError, OSError, arrow().ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(
            f"{path} cannot be read ({explain(reason)}): repair or remove it."
        ) from error


def read_csv(path: Path) -> Table:
    """Read a table whose columns are separated by commas unless its header says otherwise."""
    return _read_delimited(path, ",")


def read_tsv(path: Path) -> Table:
    """Read a table whose columns are separated by tabs unless its header says otherwise."""
    return _read_delimited(path, "\t")


def _read_delimited(path: Path, delimiter: str) -> Table:
    reader = arrow("pyarrow.csv")
    with _report_errors(path):
        with open_stream(path) as file:
            dialect = detect_dialect(file.read(BYTES_FOR_DIALECT), default=delimiter)
        parsing = reader.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)
        reading = reader.ReadOptions(
            block_size=BLOCK,
            encoding=dialect.encoding.removesuffix("-sig"),  # pyarrow skips the mark by itself
            skip_rows=dialect.n_skipped,
        )
        guessing = reader.ConvertOptions(decimal_point=dialect.decimal_point)
        explained = _report_errors(path, lambda reason: _name_csv_line(path, dialect, reason))
        with explained, open_stream(path) as file:
            content = reader.read_csv(
                file, parse_options=parsing, read_options=reading, convert_options=guessing
            )
        _check_header(path, content.schema.names)
        _check_encoding(path, content.schema)

    def read_as_text(column: str) -> list[str]:
        strings = reader.ConvertOptions(
            include_columns=[column], column_types={column: arrow().string()}
        )
        with open_stream(path) as file:
            again = reader.read_csv(
                file, parse_options=parsing, read_options=reading, convert_options=strings
            )
        values: list[str] = again.column(0).to_pylist()
        return values

    return replace(
        _make_table(path, content, read_as_text), lines=lambda: _find_lines(path, dialect)
    )


def _find_lines(path: Path, dialect: Dialect) -> list[int]:
    """The line in which each row begins."""
    return [line for line, _ in _count_cells(path, dialect)][1:]  # without the header


def _count_cells(path: Path, dialect: Dialect) -> list[tuple[int, int]]:
    """The line in which the header and each row begin, and the number of its cells.

    A cell in quotes may span several lines.
    """
    with open_stream(path) as file:
        text = file.read().decode(dialect.encoding, errors="replace")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter)
    counts, last = [], 0
    usual_limit = csv.field_size_limit(BLOCK)
    try:
        for cells in reader:
            if cells and last >= dialect.n_skipped:  # empty lines are no rows
                counts.append((last + 1, len(cells)))
            last = reader.line_num
    finally:
        csv.field_size_limit(usual_limit)
    return counts


def _name_csv_line(path: Path, dialect: Dialect, reason: str) -> str:
    """Add the line of a row with too many or too few cells."""
    counts = re.search(r"Expected (\d+) columns, got (\d+)", reason)
    if counts is None:
        return reason
    wrong = (line for line, n in _count_cells(path, dialect) if n != int(counts[1]))
    line = next(wrong, None)
    return reason if line is None else f"{reason}, line {line}"


def _check_header(path: Path, names: Sequence[str]) -> None:
    counted = all(name == str(place) for place, name in enumerate(names))
    if all(map(_is_number, names)) and not counted:  # pandas counts columns without names
        raise BadInput(
            f"{path} begins with numbers ({', '.join(names[:3])}, ...) instead of names of "
            "columns: add a first line that names them."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_encoding(path: Path, schema: Any) -> None:
    for field in schema:
        if arrow().types.is_binary(field.type):  # pyarrow reads a column so if it is not UTF-8
            raise BadInput(f"{path}: column {field.name!r} is not UTF-8: save the file as UTF-8.")


def read_json_lines(path: Path) -> Table:
    """Read a table with a JSON object in each line."""
    lines = arrow("pyarrow.json")
    with _report_errors(path, lambda reason: _name_json_line(path, reason)):
        with open_stream(path) as file:
            content = lines.read_json(file, read_options=lines.ReadOptions(block_size=BLOCK))
        return replace(_make_table(path, content), lines=lambda: _find_filled_lines(path))


def _name_json_line(path: Path, reason: str) -> str:
    """Replace the number of a row, which pyarrow counts from 0, by its line."""
    row = re.search(r" in row (\d+)$", reason)
    lines = _find_filled_lines(path)
    if row is None or int(row[1]) >= len(lines):
        return reason
    return f"{reason[: row.start()]}, line {lines[int(row[1])]}".replace(".,", ",")


def _find_filled_lines(path: Path) -> list[int]:
    with open_stream(path) as file:
        written = file.read().splitlines()
    return [number for number, line in enumerate(written, start=1) if line.strip()]


def _make_table(
    path: Path, content: Any, read_as_text: Callable[[str], list[str]] | None = None
) -> Table:
    def batches(columns: Sequence[str]) -> Iterator[Any]:
        return iter(content.select(list(columns)).to_batches(max_chunksize=ROWS_PER_BATCH))

    features = _check_features(str(path), content.schema)
    key = {"files": fingerprint([path])}
    return Table(str(path), content.num_rows, features, batches, path.parent, key, read_as_text)


def read_parquet_file(path: Path) -> Table:
    """Read a table in one parquet file."""
    return read_parquet([path], str(path))


def read_parquet(paths: Sequence[Path], where: str) -> Table:
    """Read one table from one or several parquet files, in this order."""
    schemas, counts = [], []
    for path in paths:
        with _report_errors(path), open_parquet(path) as file:
            schemas.append(file.schema_arrow)
            counts.append(file.metadata.num_rows)
    for path, schema in zip(paths, schemas, strict=True):
        if _check_features(str(path), schema) != _check_features(where, schemas[0]):
            raise BadInput(f"{path} and {paths[0]} have different columns: give them the same.")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for path in paths:
            yield from _parquet_batches(path, list(columns))

    features = _check_features(where, schemas[0])
    key = {"files": fingerprint(paths)}
    return Table(where, sum(counts), features, batches, paths[0].parent, key, files=tuple(paths))


def find_shards(folder: Path) -> list[Path]:
    """The parquet files directly in a folder, in order."""
    return sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))


def read_shards(folder: Path) -> Table:
    """Read one table from the parquet files of a folder.

    A file that is not what most of the others are is left out, with a notice.
    """
    features: dict[Path, dict[str, Feature]] = {}
    for path in find_shards(folder):
        try:
            with _report_errors(path), open_parquet(path) as file:
                features[path] = _check_features(str(path), file.schema_arrow)
        except BadInput as error:
            warn_once(f"{error} Its rows are left out.")
    if not features:
        raise BadInput(f"{folder} holds no parquet file that can be read: repair or replace them.")
    described = list(features.values())
    usual = max(described, key=described.count)
    for path, own in features.items():
        if own != usual:
            warn_once(
                f"{path} has other columns than most files of {folder} "
                f"({_describe_difference(own, usual)}): its rows are left out. Correct it."
            )
    return read_parquet([path for path, own in features.items() if own == usual], str(folder))


def _describe_difference(own: Mapping[str, Feature], usual: Mapping[str, Feature]) -> str:
    if missing := [column for column in usual if column not in own]:
        return f"it lacks {missing[0]!r}"
    if added := [column for column in own if column not in usual]:
        return f"it adds {added[0]!r}"
    changed = next(column for column in own if own[column] != usual[column])
    return f"{changed!r} holds a {own[changed].kind}, not a {usual[changed].kind}"


@dataclass(frozen=True)
class ParquetRows:
    """Some rows of a row group of a parquet file, which any process can read."""

    path: Path
    group: int
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start

    def open(self, root: Path | None = None) -> Table:
        """The rows as a table; ``root`` is the folder that image paths are relative to."""
        with _report_errors(self.path), open_parquet(self.path) as file:
            features = _check_features(str(self.path), file.schema_arrow)
        return Table(
            str(self.path), self.n_rows, features, self._batches, root or self.path.parent, {}
        )

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        place = 0
        for batch in _parquet_batches(self.path, list(columns), [self.group]):
            first, last = max(self.start - place, 0), min(self.stop - place, batch.num_rows)
            if last > first:
                yield batch.slice(first, last - first)
            place += batch.num_rows
            if place >= self.stop:
                return


def _parquet_batches(
    path: Path, columns: list[str], groups: list[int] | None = None
) -> Iterator[Any]:
    with _report_errors(path), open_parquet(path) as file:
        sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
        bytes_per_row = 1 + sum(sizes) // max(1, file.metadata.num_rows)
        rows = max(1, min(ROWS_PER_BATCH, BYTES_PER_BATCH // bytes_per_row))
        for batch in file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
            yield batch.select(columns)


@contextmanager
def open_stream(path: Path) -> Iterator[Any]:
    """Open a file of text, which may be compressed by gzip."""
    compression = "gzip" if path.name.lower().endswith(".gz") else None
    with open_file(path) as file, arrow().input_stream(file, compression=compression) as stream:
        yield stream


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a parquet file to read it piece by piece: a row group of photos may be large."""
    ParquetFile = arrow("pyarrow.parquet").ParquetFile
    with open_file(path) as file, ParquetFile(file, buffer_size=2**20, pre_buffer=False) as opened:
        yield opened


def _check_features(where: str, schema: Any) -> dict[str, Feature]:
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise BadInput(f"{where} has several columns called {twice[0]!r}: rename or remove some.")
    return describe_features(_read_description(schema), schema)


def _read_description(schema: Any) -> Mapping[str, Any]:
    """Read the description of the columns that Hugging Face stores in the schema."""
    stored = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        described = json.loads(stored)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return described if isinstance(described, dict) else {}


def describe_features(described: Mapping[str, Any], schema: Any) -> dict[str, Feature]:
    """Classify each column by the description of the hub (``Features.to_dict()``), else by type."""
    return {field.name: _feature(described.get(field.name), field.type) for field in schema}


def _feature(described: Any, arrow_type: Any) -> Feature:
    about = described if isinstance(described, dict) else {}
    if about.get("_type") == "ClassLabel":
        return Feature("label", tuple(about.get("names") or ()))
    if about.get("_type") == "Image":
        return Feature("image")
    return Feature(_classify(arrow_type))


def _classify(arrow_type: Any) -> Kind:
    types = arrow().types
    if types.is_dictionary(arrow_type):
        return _classify(arrow_type.value_type)
    strings = (types.is_string, types.is_large_string, types.is_string_view)
    if any(check(arrow_type) for check in strings):
        return "text"
    if _is_numeric(arrow_type):
        return "number"
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return "vector" if _is_numeric(arrow_type.value_type) else "other"
    if types.is_fixed_size_list(arrow_type):
        return "vector" if _is_numeric(arrow_type.value_type) else "other"
    return "image" if _is_image(arrow_type) else "other"


def _is_numeric(arrow_type: Any) -> bool:
    types = arrow().types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(check(arrow_type) for check in checks)


def _is_image(arrow_type: Any) -> bool:
    types = arrow().types
    if types.is_struct(arrow_type):
        return {field.name for field in arrow_type} == {"bytes", "path"}
    return bool(types.is_binary(arrow_type) or types.is_large_binary(arrow_type))
