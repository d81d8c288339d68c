from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .table_samples import CSV, EXPECTED, dataset, refused, rows_of

pytestmark = pytest.mark.usefixtures("own_cache")


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


def test_missing_labels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.csv"
    message = refused(path, CSV + "5,1,\n6,2,\n")
    assert "t.csv: 2 of 6 rows cannot be used: line 6 ('label' is missing), line 7" in message
    assert "skip them (--skip-bad, skip_bad=True)" in message
    assert rows_of(dataset(path, skip_bad=True)) == EXPECTED
    assert "t.csv: 2 of 6 rows are skipped: line 6 ('label' is missing)" in caplog.text


def test_labels_that_are_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    message = refused(path, "a,label\n1,0.5\n2,1.5\n")
    assert "column 'label' holds 0.5 (line 2), which is no class: name the label column" in message
    message = refused(path, "a,label\n1,u\n2,u\n3,u\n")
    assert "label column 'label' names 1 class in 3 training rows: at least two" in message
    unique = "".join(f"{row},name{row}\n" for row in range(21))
    message = refused(path, "a,label\n" + unique)
    assert "no two rows have the same 'label', so it looks like an id" in message
    message = refused(path, "a,label\n1,u\n2,v\n3,v\n")
    assert "class 'u' has one instance only" in message


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
    tmp_path: Path, caplog: pytest.LogCaptureFixture, written: str, problem: str
) -> None:
    path = tmp_path / "t.csv"
    message = refused(path, CSV + f"5,{written},u\n")
    assert f"1 of 5 rows cannot be used: line 6 (column 'b' is {problem}): fill" in message
    assert rows_of(dataset(path, skip_bad=True)) == EXPECTED
    assert "1 of 5 rows are skipped" in caplog.text


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
    assert "line 7 (column 'vector' holds 1 numbers, not 2)" in message
    assert "line 8 (column 'vector' holds 0 numbers, not 2)" in message
    assert "line 9 (column 'vector' is missing)" in message
    assert rows_of(dataset(path, skip_bad=True))["t.jsonl:5"] == ([5.0, 5.5], 1)


def test_fixed_size_vectors(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = [[0.0, 1.0], None, [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    vectors = pa.array(values, pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"v": vectors, "label": [0, 1, 0, 1, 1]}), path)
    assert "row 2 (column" in refused(path)
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
    assert "2 of 6 rows cannot be used: line 6 (column 'text' holds no text)" in message
    assert sorted(rows_of(dataset(path, skip_bad=True))) == [f"t.csv:{row}" for row in range(4)]
