from __future__ import annotations

import datetime
import gzip
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cilf.core.notices import forget
from cilf.data.columns import Feature
from cilf.data.dataset import Dataset
from cilf.data.options import Options
from cilf.data.readers import read_table
from cilf.data.table_files import describe_features, read_parquet
from cilf.data.tables import to_dataset, to_instances
from cilf.errors import BadConfig, BadInput


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))
    forget()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, "cilf"):
        yield caplog


def dataset(path: Path, **options: Any) -> Dataset:
    return to_dataset("toy", read_table(path), None, Options(**options))


def rows_of(data: Dataset) -> dict[str, tuple[Any, Any]]:
    """Identity -> instance and label, of both splits."""
    splits = [data.train, data.test]
    return {
        name: (x.tolist() if isinstance(x, np.ndarray) else x, y)
        for split in splits
        for name, x, y in zip(split.ids.tolist(), split.X, split.y.tolist(), strict=True)
    }


def refused(path: Path, text: str | None = None, **options: Any) -> str:
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises((BadInput, BadConfig)) as caught:
        dataset(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


CSV = "a,b,label\n1,0.5,u\n2,1.5,v\n3,2.5,u\n4,3.5,v\n"
EXPECTED = {
    "t.csv:0": ([1.0, 0.5], "u"),
    "t.csv:1": ([2.0, 1.5], "v"),
    "t.csv:2": ([3.0, 2.5], "u"),
    "t.csv:3": ([4.0, 3.5], "v"),
}


def renamed(name: str) -> dict[str, tuple[Any, Any]]:
    return {key.replace("t.csv", name): value for key, value in EXPECTED.items()}


# Files


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


def test_shards_and_two_splits(tmp_path: Path) -> None:
    for row in range(4):
        columns = {"a": [row, row + 0.5], "label": ["u", "v"]}
        pq.write_table(pa.table(columns), tmp_path / f"{row}.parquet")
    shards = [tmp_path / f"{row}.parquet" for row in range(4)]
    train, test = read_parquet(shards[:3], "toy train"), read_parquet(shards[3:], "toy test")
    assert (train.n_rows, train.where, train.root) == (6, "toy train", tmp_path)
    data = to_dataset("toy", train, test, Options())
    assert data.train.X.ravel().tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert data.train.ids.tolist() == [f"train/{row}" for row in range(6)]
    assert data.test.ids.tolist() == ["test/0", "test/1"]


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
    assert "t.csv is not there: give a folder or a file" in refused(tmp_path / "t.csv")
    assert "holds no table: name a file with .csv, .tsv, .parquet" in refused(tmp_path)
    assert "t.xlsx has no suffix that can be read" in refused(tmp_path / "t.xlsx", "")
    assert "t.csv cannot be read (Empty CSV file): repair" in refused(tmp_path / "t.csv", "")
    assert "t.jsonl cannot be read (Empty JSON file)" in refused(tmp_path / "t.jsonl", "")
    assert "t.csv holds no rows" in refused(tmp_path / "t.csv", "a,label\n")
    message = refused(tmp_path / "t.csv", "a,label\n1,u\n1\n")
    assert "t.csv cannot be read (CSV parse error: Expected 2 columns, got 1: 1)" in message
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


# Labels


def labels_of(path: Path, values: list[str], **options: Any) -> list[Any]:
    lines = [f"{row},{value}" for row, value in enumerate(values)]
    path.write_text("\n".join(["feature,label", *lines]))
    found = rows_of(dataset(path, **options))
    return [found[name][1] for name in sorted(found)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["0", "1"], [0, 1]),
        (["007", "010"], ["007", "010"]),
        (["0", "10"], [0, 10]),
        (["1.0", "2.0"], [1, 2]),
        (["True", "false"], ["true", "false"]),
        (["a b", "NA"], ["a b", "NA"]),
        (["-1", "1"], [-1, 1]),
    ],
)
def test_label_values(tmp_path: Path, written: list[str], expected: list[Any]) -> None:
    assert labels_of(tmp_path / "t.csv", written * 2) == expected * 2


def test_labels_of_dates_and_categories(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    categories = pa.array(["u", "v"] * 2).dictionary_encode()
    pq.write_table(pa.table({"a": [1, 2, 3, 4], "label": categories}), path)
    assert dataset(path).classes == ["u", "v"]
    dates = pa.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 2)
    pq.write_table(pa.table({"a": [1, 2, 3, 4], "label": dates}), path)
    assert "column 'label' holds no labels (ints or strings)" in refused(path)


def test_missing_labels(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.csv"
    message = refused(path, CSV + "5,1,\n6,2,\n")
    assert "t.csv: 2 of 6 rows cannot be used: row t.csv:4 ('label' is missing), row" in message
    assert "skip them (--skip-bad, skip_bad=True)" in message
    assert rows_of(dataset(path, skip_bad=True)) == EXPECTED
    assert "t.csv: 2 of 6 rows are skipped: row t.csv:4 ('label' is missing)" in said.text


def test_labels_that_are_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    message = refused(path, "a,label\n1,0.5\n2,1.5\n")
    assert "column 'label' holds 0.5 (row 0), which is no class: name the label column" in message
    message = refused(path, "a,label\n1,u\n2,u\n3,u\n")
    assert "label column 'label' names 1 class in 3 training rows: at least two" in message
    unique = "".join(f"{row},name{row}\n" for row in range(21))
    message = refused(path, "a,label\n" + unique)
    assert "no two rows have the same 'label', so it looks like an id" in message
    message = refused(path, "a,label\n1,u\n2,v\n3,v\n")
    assert "class 'u' has one instance only" in message


# Content


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("", "missing"),
        ("nan", "missing"),
        ("inf", "inf, which float32 cannot hold"),
        ("1e300", "1e+300, which float32 cannot hold"),
    ],
)
def test_numbers_that_are_none(
    tmp_path: Path, said: pytest.LogCaptureFixture, written: str, problem: str
) -> None:
    path = tmp_path / "t.csv"
    message = refused(path, CSV + f"5,{written},u\n")
    assert f"1 of 5 rows cannot be used: row t.csv:4 (column 'b' is {problem}): fill" in message
    assert rows_of(dataset(path, skip_bad=True)) == EXPECTED
    assert "1 of 5 rows are skipped" in said.text


def test_nothing_is_left(tmp_path: Path) -> None:
    text = "a,b,label\n1,,u\n2,,v\n,3,u\n"
    assert "no row can be used" in refused(tmp_path / "t.csv", text, skip_bad=True)


def test_all_kinds_of_numbers(tmp_path: Path) -> None:
    columns = {
        "flag": [True, False, True, False],
        "half": pa.array(np.array([0.5, 1, 2, 3], dtype=np.float16)),
        "big": pa.array([2**60 + 1, 0, 0, 0], pa.int64()),
        "price": pa.array([1, 2, 3, 4], pa.int32()).cast(pa.decimal128(12, 2)),
        "label": [0, 1, 0, 1],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = rows_of(dataset(tmp_path / "t.parquet"))
    assert found["t.parquet:0"] == ([1.0, 0.5, float(2**60), 1.0], 0)
    assert found["t.parquet:3"] == ([0.0, 3.0, 0.0, 4.0], 1)


def test_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [{"vector": [row, row + 0.5], "label": row % 2} for row in range(6)]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert rows_of(dataset(path))["t.jsonl:3"] == ([3.0, 3.5], 1)
    broken = [{"vector": value, "label": 0} for value in ([1], None, [None, 2])]
    path.write_text("\n".join(map(json.dumps, [*lines, *broken])))
    message = refused(path)
    assert "row t.jsonl:6 (column 'vector' holds 1 numbers, not 2)" in message
    assert "row t.jsonl:7 (column 'vector' holds 0 numbers, not 2)" in message
    assert "row t.jsonl:8 (column 'vector' is missing)" in message
    assert rows_of(dataset(path, skip_bad=True))["t.jsonl:5"] == ([5.0, 5.5], 1)


def test_fixed_size_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = [[0.0, 1.0], None, [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    vectors = pa.array(values, pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"v": vectors, "label": [0, 1, 0, 1, 1]}), path)
    assert "row t.parquet:1" in refused(path)
    assert rows_of(dataset(path, skip_bad=True))["t.parquet:3"] == ([4.0, 5.0], 1)


def test_empty_vectors(tmp_path: Path) -> None:
    lines = [json.dumps({"v": value, "label": 0}) for value in ([1], [])]
    text = "\n".join(lines).replace("[1]", "[]")
    assert "nothing to learn from" in refused(tmp_path / "t.jsonl", text)
    vectors = pa.array([[], []], pa.list_(pa.float32()))
    pq.write_table(pa.table({"v": vectors, "label": [0, 1]}), tmp_path / "t.parquet")
    assert "column 'v' holds empty lists only" in refused(tmp_path / "t.parquet")


def test_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('text,label\n"one, two",u\n"line\nbreak",v\nthree,u\nfour,v\n')
    data = dataset(path)
    assert data.train.X.dtype == object
    assert data.shape == ()
    assert rows_of(data)["t.csv:0"] == ("one, two", "u")
    assert rows_of(data)["t.csv:1"] == ("line\nbreak", "v")
    path.write_text("text,label\na,u\nb,v\nc,u\nd,v\n ,u\n,v\n")
    message = refused(path)
    assert "2 of 6 rows cannot be used: row t.csv:4 (column 'text' holds no text)" in message
    assert sorted(rows_of(dataset(path, skip_bad=True))) == [f"t.csv:{row}" for row in range(4)]


# Identity and splits


def test_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,a,label\n007,1,u\n08,2,v\n09,3,u\n10,4,v\n")
    assert sorted(rows_of(dataset(path))) == ["007", "08", "09", "10"]


def test_ids_across_two_tables(tmp_path: Path) -> None:
    for name, first in [("train", 0), ("test", 0), ("more", 9)]:
        text = f"id,a,label\n{first},1,u\n{first + 1},2,v\n"
        (tmp_path / f"{name}.csv").write_text(text)
    train, test, more = (read_table(tmp_path / f"{n}.csv") for n in ("train", "test", "more"))
    assert list(rows_of(to_dataset("toy", train, test, Options()))) == [
        "train/0",
        "train/1",
        "test/0",
        "test/1",
    ]
    assert list(rows_of(to_dataset("toy", train, more, Options()))) == ["0", "1", "9", "10"]


@pytest.mark.parametrize("held", ["test", "val", "Validation"])
def test_split_column(tmp_path: Path, held: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a,split,label\n1,train,u\n2,{held},v\n3,train,v\n4,train,u\n")
    data = dataset(path)
    assert data.train.ids.tolist() == ["t.csv:0", "t.csv:2", "t.csv:3"]
    assert data.test.ids.tolist() == ["t.csv:1"]
    assert data.shape == (1,)


def test_split_columns_without_one_side(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = "a,split,label\n1,train,u\n2,train,v\n3,train,v\n4,train,u\n"
    path.write_text(text)
    assert len(dataset(path).test) == 2
    assert "names 0 class in 0 training rows" in refused(path, text.replace("train", "test"))


def test_classes_in_test_only(tmp_path: Path) -> None:
    text = "a,split,label\n1,train,u\n2,train,v\n3,test,w\n"
    assert "the test split holds classes that the training split lacks (['w'])" in refused(
        tmp_path / "t.csv", text
    )


def pair(folder: Path, train: str, test: str, **options: Any) -> Dataset:
    for name, text in [("train", train), ("test", test)]:
        (folder / f"{name}.csv").write_text(text)
    tables = [read_table(folder / f"{name}.csv") for name in ("train", "test")]
    return to_dataset("toy", *tables, Options(**options))


def test_two_tables_with_other_columns(tmp_path: Path) -> None:
    train = "a,b,label\n1,2,u\n1,2,v\n"
    with pytest.raises(BadInput, match=r"test\.csv lacks 'b' and adds 'c', compared with .*train"):
        pair(tmp_path, train, "a,c,label\n1,2,u\n")
    with pytest.raises(BadInput, match=r"'b' is number in .*train\.csv, but text in .*test\.csv"):
        pair(tmp_path, train, "a,b,label\n1,x,u\n")


def test_columns_of_the_test_table_in_another_order(tmp_path: Path) -> None:
    data = pair(tmp_path, "a,b,label\n1,2,u\n3,4,v\n", "label,b,a\nv,6,5\n")
    assert data.test.X.tolist() == [[5.0, 6.0]]


def test_label_kinds_of_two_tables_are_one(tmp_path: Path) -> None:
    data = pair(tmp_path, "a,label\n1,1\n2,x\n", "a,label\n1,1\n")
    assert (data.train.y.tolist(), data.test.y.tolist()) == (["1", "x"], ["1"])


def test_no_test_row_is_left(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"test\.csv: no row can be used: give some to test with"):
        pair(tmp_path, "a,label\n1,u\n2,v\n", "a,label\ninf,u\n", skip_bad=True)


def test_instances(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    found = to_instances(read_table(path), Options())
    assert found.X.tolist() == [x for x, _ in EXPECTED.values()]
    assert found.ids.tolist() == list(EXPECTED)
    path.write_text("a,b\n1,2\n,4\n")
    with pytest.raises(BadInput, match=r"1 of 2 rows cannot be used: row t\.csv:1 \(column 'a'"):
        to_instances(read_table(path), Options())
    assert to_instances(read_table(path), Options(skip_bad=True)).ids.tolist() == ["t.csv:0"]


# Images


def picture(value: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((8, 8), value, dtype=np.uint8)).save(buffer, "png")
    return buffer.getvalue()


IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
HUB = {"img": {"_type": "Image"}, "fine_label": {"_type": "ClassLabel", "names": ["cat", "dog"]}}


def write_hub(path: Path, labels: list[int | None], names: list[str] | None = None) -> None:
    described = HUB | ({"fine_label": {"_type": "ClassLabel", "names": names}} if names else {})
    images = [{"bytes": picture(10 * row), "path": None} for row in range(len(labels))]
    content = pa.table({"img": pa.array(images, IMAGE), "fine_label": pa.array(labels, pa.int64())})
    metadata = {"huggingface": json.dumps({"info": {"features": described}})}
    pq.write_table(content.replace_schema_metadata(metadata), path)


def test_hub_images(tmp_path: Path) -> None:
    paths = [tmp_path / "train.parquet", tmp_path / "test.parquet"]
    write_hub(paths[0], [0, 1, 1, 0])
    write_hub(paths[1], [1, 0])
    train, test = (read_parquet([path], path.stem) for path in paths)
    data = to_dataset("toy", train, test, Options())
    assert data.train.X[:, 0, 0].tolist() == [0, 10, 20, 30]
    assert data.train.y.tolist() == ["cat", "dog", "dog", "cat"]
    assert data.test.ids.tolist() == ["test/0", "test/1"]
    assert isinstance(data.train.X, np.memmap)


def test_decimal_names_are_numbers(tmp_path: Path) -> None:
    write_hub(tmp_path / "t.parquet", [0, 1, 1, 0], names=["3", "11"])
    assert dataset(tmp_path / "t.parquet").classes == [3, 11]
    write_hub(tmp_path / "t.parquet", [0, 1, 1, 0], names=["3", "011"])
    assert dataset(tmp_path / "t.parquet").classes == ["011", "3"]


def test_unlabelled_hub_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_hub(path, [0, -1, 1, None, 1, 0])
    message = refused(path)
    assert "2 of 6 rows cannot be used: row t.parquet:1 ('fine_label' is missing)" in message
    data = dataset(path, skip_bad=True)
    pixels = {name: x[0][0] for name, (x, _) in rows_of(data).items()}
    assert pixels == {f"t.parquet:{row}": 10 * row for row in (0, 2, 4, 5)}


def test_labels_beyond_the_names(tmp_path: Path) -> None:
    write_hub(tmp_path / "t.parquet", [0, 1, 2])
    assert "holds the label 2, but names 2 classes only" in refused(tmp_path / "t.parquet")


def test_unreadable_and_missing_images(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    (tmp_path / "beside.png").write_bytes(picture(77))
    images = [
        {"bytes": picture(1), "path": "no matter"},
        {"bytes": None, "path": "beside.png"},
        {"bytes": b"no image", "path": None},
        {"bytes": None, "path": None},
        None,
    ]
    labels = ["u", "v", "u", "v", "u"]
    pq.write_table(pa.table({"image": pa.array(images, IMAGE), "label": labels}), path)
    table = read_table(path)
    with pytest.raises(BadInput, match=r"3 of 5 images cannot be read \(t\.parquet:2: "):
        to_instances(table, Options())
    found = to_instances(table, Options(skip_bad=True))
    assert found.ids.tolist() == ["t.parquet:0", "t.parquet:1"]
    assert found.X[:, 0, 0].tolist() == [1, 77]


def test_image_paths(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for value in range(4):
        (tmp_path / "pictures" / f"{value}.png").write_bytes(picture(value))
    lines = [f"pictures/{value}.png,{'uv'[value % 2]}" for value in range(4)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["file,label", *lines]))
    pixels = {name: (x[0][0], y) for name, (x, y) in rows_of(dataset(path)).items()}
    assert pixels == {f"pictures/{v}.png": (v, "uv"[v % 2]) for v in range(4)}
    (tmp_path / "pictures" / "2.png").write_bytes(picture(200) + b"\0")
    assert rows_of(dataset(path))["pictures/2.png"][0][0][0] == 200


def test_a_missing_image_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(picture(0))
    path = tmp_path / "t.csv"
    path.write_text("file,label\n0.png,u\n1.png,v\n")
    with pytest.raises(BadInput, match=r"1 of 2 images cannot be read \(1\.png: "):
        to_instances(read_table(path), Options())


def test_one_image_in_two_rows_is_named_by_row(tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(picture(0))
    path = tmp_path / "t.csv"
    path.write_text("file\n0.png\n0.png\n")
    assert to_instances(read_table(path), Options()).ids.tolist() == ["t.csv:0", "t.csv:1"]


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


def test_a_second_column_that_looks_like_a_label_is_told(
    tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "toy.csv"
    path.write_text("a,label,target\n" + "\n".join(f"{i},{'xy'[i % 2]},{i % 2}" for i in range(8)))
    dataset(path)
    assert "'target' is part of the instances, the label is 'label'." in said.text


def test_string_views_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "toy.parquet"
    texts = pa.array(["one", "two"] * 4, type=pa.string_view())
    pq.write_table(pa.table({"text": texts, "label": [0, 1] * 4}), path)
    assert dataset(path).train.X.dtype == object
