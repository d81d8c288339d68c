from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cilf.data.columns import Feature
from cilf.data.options import Options
from cilf.data.readers import read_table
from cilf.data.table_files import describe_features, read_parquet
from cilf.data.tables import to_instances
from cilf.errors import BadInput

from .table_samples import CSV, EXPECTED, dataset, refused, rows_of

pytestmark = pytest.mark.usefixtures("own_cache")


def renamed(name: str) -> dict[str, tuple[Any, Any]]:
    return {key.replace("t.csv", name): value for key, value in EXPECTED.items()}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "T.CSV"])
def test_delimited(tmp_path: Path, name: str) -> None:
    text = CSV.replace(",", "\t") if ".tsv" in name else CSV
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    data = dataset(tmp_path / name)
    assert rows_of(data) == renamed(name)
    assert data.train.X.dtype == np.float32
    assert (len(data.train), len(data.test)) == (2, 2)


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    lines = [{"a": x[0], "b": x[1], "label": y} for x, y in EXPECTED.values()]
    (tmp_path / name).write_text("\n".join(map(json.dumps, lines)))
    assert rows_of(dataset(tmp_path / name)) == renamed(name)


def test_parquet(tmp_path: Path) -> None:
    columns = {"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.5, 3.5], "label": ["u", "v", "u", "v"]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert rows_of(dataset(tmp_path / "t.parquet")) == renamed("t.parquet")


def test_shards_with_other_columns(tmp_path: Path) -> None:
    paths = [tmp_path / "p.parquet", tmp_path / "q.parquet"]
    pq.write_table(pa.table({"a": [1]}), paths[0])
    pq.write_table(pa.table({"b": [1]}), paths[1])
    with pytest.raises(BadInput, match=r"q\.parquet and .*p\.parquet have different columns"):
        read_parquet(paths, "toy")


def test_batches_of_large_rows_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"image": [bytes([row]) * 1000 for row in range(40)], "label": list(range(40))}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", compression="none")
    monkeypatch.setattr("cilf.data.table_files.BYTES_PER_BATCH", 11_000)
    batches = list(read_table(tmp_path / "t.parquet").batches(["label"]))
    assert max(batch.num_rows for batch in batches) == 10
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == columns["label"]


def test_the_key_is_another_when_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    before = read_table(path).key
    assert read_table(path).key == before
    path.write_text(CSV + "5,4.5,u\n")
    assert read_table(path).key != before


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "there is no folder or file" in refused(tmp_path / "t.csv")
    assert "holds no table: name a file with .csv, .tsv, .parquet" in refused(tmp_path)
    assert "t.xlsx has no suffix that can be read" in refused(tmp_path / "t.xlsx", "")
    assert "t.csv cannot be read (Empty CSV file): repair" in refused(tmp_path / "t.csv", "")
    assert "t.jsonl cannot be read (Empty JSON file)" in refused(tmp_path / "t.jsonl", "")
    assert "t.csv holds no rows" in refused(tmp_path / "t.csv", "a,label\n")
    message = refused(tmp_path / "t.csv", "a,label\n1,u\n1\n")
    assert "t.csv cannot be read (CSV parse error: Expected 2 columns, got 1: 1, line 3)" in message
    message = refused(tmp_path / "t.jsonl", '{"a": 1}\n{"a": "x"}\n')
    assert "t.jsonl cannot be read (JSON parse error: Column(/a) changed" in message
    assert "t.parquet cannot be read (Parquet" in refused(tmp_path / "t.parquet", "no")


def test_truncated_parquet_and_gzip(tmp_path: Path) -> None:
    whole = gzip.compress((CSV * 50).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert "t.csv.gz cannot be read" in refused(tmp_path / "t.csv.gz")
    pq.write_table(pa.table({"a": [1, 2], "label": [0, 1]}), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content[:-20])
    assert "t.parquet cannot be read" in refused(tmp_path / "t.parquet")


def test_damage_inside_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = np.random.default_rng(0).normal(size=1000)
    pq.write_table(pa.table({"a": values, "label": [0, 1] * 500}), path)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    assert "t.parquet cannot be read" in refused(path)


def test_headers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    assert "t.csv has several columns called 'a'" in refused(path, "a,a,label\n1,2,u\n")
    message = refused(path, "5,0.1,0.2\n4,0.3,0.4\n")
    assert "t.csv begins with numbers (5, 0.1, 0.2, ...) instead of names" in message
    path.write_text("0,1\n0.5,1.5\n")
    assert to_instances(read_table(path), Options()).X.tolist() == [[0.5, 1.5]]


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("text,label\ncafé,u\n".encode("latin-1"))
    assert "t.csv: column 'text' is not UTF-8: save the file as UTF-8" in refused(path)
    path.write_bytes(b"text,caf\xe9\nx,u\n")
    assert "t.csv cannot be read" in refused(path)
    path.write_text("text,label\ncafé,u\nthé,v\nö,u\nß,v\n", encoding="utf-8-sig")
    assert {x for x, _ in rows_of(dataset(path)).values()} == {"café", "thé", "ö", "ß"}


def test_features_as_the_hub_library_writes_them(tmp_path: Path) -> None:
    features = datasets.Features(
        {
            "picture": datasets.Image(),
            "kind": datasets.ClassLabel(names=["cat", "dog"]),
            "caption": datasets.Value("string"),
            "height": datasets.Value("float32"),
            "vector": datasets.List(datasets.Value("float32")),
            "tags": datasets.List(datasets.Value("string")),
        }
    )
    expected = {
        "picture": Feature("image"),
        "kind": Feature("label", ("cat", "dog")),
        "caption": Feature("text"),
        "height": Feature("number"),
        "vector": Feature("vector"),
        "tags": Feature("other"),
    }
    assert describe_features(features.to_dict(), features.arrow_schema) == expected
    path = tmp_path / "t.parquet"
    row = [{"bytes": b"", "path": None}], [1], ["x"], [1.5], [[1.0]], [["a"]]
    content = pa.Table.from_arrays(
        [pa.array(v, t) for v, t in zip(row, features.arrow_schema.types, strict=True)],
        schema=features.arrow_schema,
    )
    pq.write_table(content, path)
    assert read_table(path).features == expected


@pytest.mark.parametrize("stored", [b"no json", b"[]", b'{"info": null}', b'{"info": {}}'])
def test_descriptions_that_make_no_sense_are_passed_over(tmp_path: Path, stored: bytes) -> None:
    content = pa.table({"a": [1]}).replace_schema_metadata({b"huggingface": stored})
    pq.write_table(content, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").features == {"a": Feature("number")}


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    lines = [json.dumps({"text": "caf", "label": row % 2}).replace("caf", "é") for row in range(8)]
    path = tmp_path / "notes.jsonl"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(BadInput, match=r"column 'text' is not UTF-8: save the file as UTF-8"):
        dataset(path)


def test_a_name_of_a_column_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(b'{"t\xe9xt": "a", "label": 1}\n' * 3)
    with pytest.raises(BadInput, match=r"notes.jsonl cannot be read \('utf-8' codec"):
        dataset(path)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CSV, "utf-16"),
        (CSV.replace(",", ";"), "utf-8"),
        (CSV.replace(",", ";").replace(".", ","), "utf-8"),
        ("sep=;\r\n" + CSV.replace(",", ";"), "utf-8-sig"),
    ],
    ids=["utf-16", "semicolons", "decimal-commas", "sep"],
)
def test_a_csv_reads_the_same_whoever_saved_it(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding=encoding)
    assert rows_of(dataset(tmp_path / "t.csv")) == EXPECTED


def test_a_text_may_be_longer_than_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    rows = [f"{'word ' * (600_000 if row == 3 else 2)},{row % 2}" for row in range(8)]
    path.write_text("text,label\n" + "\n".join(rows))
    assert max(len(text) for text, _ in rows_of(dataset(path)).values()) == 3_000_000


def test_string_views_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "toy.parquet"
    texts = pa.array(["one", "two"] * 4, type=pa.string_view())
    pq.write_table(pa.table({"text": texts, "label": [0, 1] * 4}), path)
    assert dataset(path).train.X.dtype == object


def test_a_long_text_does_not_hide_the_line_of_another(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    message = refused(tmp_path / "t.csv", f"text,label\n{'long ' * 40_000},a\n,b\n")
    assert "1 of 2 rows cannot be used: line 3 (column 'text' holds no text)" in message
    assert csv.field_size_limit() == before


def test_rows_are_named_by_their_lines_in_the_file(tmp_path: Path) -> None:
    written = 'sep=;\n\ntext;label\n"two\nlines";a\n\n;b\nlast;a\n'
    message = refused(tmp_path / "t.csv", written)
    assert "1 of 3 rows cannot be used: line 7 (column 'text' holds no text)" in message
    assert written.splitlines()[7 - 1] == ";b"
    written = '{"text": "one", "label": "a"}\n\n{"text": "", "label": "b"}\n'
    message = refused(tmp_path / "t.jsonl", written)
    assert "1 of 2 rows cannot be used: line 3 (column 'text' holds no text)" in message


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("t.csv", "a,label\n1,u\n\n2,v,9\n", 4),
        ("t.csv", 'a,label\n1,u\n"2,v\n', 3),
        ("t.jsonl", '{"a": 1, "label": "u"}\n\n{"a": oops}\n', 3),
        ("t.jsonl", '{"a": 1, "label": "u"}\n{"a": "x", "label": "u"}\n', 2),
    ],
)
def test_a_row_that_does_not_parse_is_named_by_its_line(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    assert f", line {line}): repair or remove it" in refused(tmp_path / name, text)
