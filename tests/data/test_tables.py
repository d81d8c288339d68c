from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cilf.data.dataset import Dataset
from cilf.data.options import Options
from cilf.data.readers import read_table
from cilf.data.table_files import read_parquet
from cilf.data.tables import to_dataset, to_instances
from cilf.errors import BadInput

from .table_samples import CSV, EXPECTED, dataset, refused, rows_of

pytestmark = pytest.mark.usefixtures("own_cache")


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
    with pytest.raises(BadInput, match=r"1 of 2 rows cannot be used: line 3 \(column 'a'"):
        to_instances(read_table(path), Options())
    assert to_instances(read_table(path), Options(skip_bad=True)).ids.tolist() == ["t.csv:0"]


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
    assert "2 of 6 rows cannot be used: row 2 ('fine_label' is missing)" in message
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


def test_a_second_column_that_looks_like_a_label_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "toy.csv"
    path.write_text("a,label,target\n" + "\n".join(f"{i},{'xy'[i % 2]},{i % 2}" for i in range(8)))
    dataset(path)
    assert "'target' is part of the instances, the label is 'label'." in caplog.text
