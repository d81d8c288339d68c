from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cilf.data import Dataset, Instances, load_dataset, load_instances
from cilf.data.options import Options
from cilf.data.reader import Reader
from cilf.data.readers import READERS, describe_readers, find_reader, read_table, suffixes
from cilf.errors import BadConfig, BadInput

OWN_DATA = Path(__file__).parents[2] / "docs" / "own_data.md"


def read_pairs(path: Path, name: str, options: Options) -> Dataset:
    words = [line.split() for line in path.read_text().splitlines()]
    X, y = [[float(number)] for number, _ in words], [label for _, label in words]
    return Dataset.from_arrays(name, X, y, X, y)


def read_instances(path: Path, options: Options) -> Instances:
    train = read_pairs(path, "", options).train
    return Instances(train.X, train.ids)


def test_a_format_is_added_by_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    pairs = Reader(
        about="pairs of a number and a class",
        suffixes=(".pairs",),
        read_dataset=read_pairs,
        read_instances=read_instances,
    )
    monkeypatch.setitem(READERS, "pairs", pairs)
    path = tmp_path / "toy.pairs"
    path.write_text("1 ant\n2 bee\n")
    data = load_dataset(path)
    assert (data.name, data.train.y.tolist()) == ("toy", ["ant", "bee"])
    assert load_instances(path).X.tolist() == [[1.0], [2.0]]
    with pytest.raises(BadConfig, match="size is 16, which means nothing for"):
        load_dataset(path, size=16)
    (tmp_path / "toy.docx").write_text("")
    with pytest.raises(BadInput, match=r"one of \.npz, .*, \.pairs\."):
        load_dataset(tmp_path / "toy.docx")
    assert "pairs of a number and a class (.pairs)" in " ".join(run("data").out.split())


def test_suffixes_belong_to_one_format_each() -> None:
    assert len(set(suffixes())) == len(suffixes())
    assert all(suffix == suffix.lower() and suffix[0] == "." for suffix in suffixes())


def test_a_compressed_table_has_the_format_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.CSV.gz"
    path.write_bytes(b"")
    assert find_reader(path) is READERS["csv"]


def test_a_table_is_read_only_from_a_format_of_tables(tmp_path: Path) -> None:
    (tmp_path / "toy.npz").write_bytes(b"")
    with pytest.raises(BadInput, match=r"holds no table: name a file with \.csv, "):
        read_table(tmp_path / "toy.npz")


def test_the_documentation_names_every_format() -> None:
    text = OWN_DATA.read_text(encoding="utf-8")
    missing = [suffix for suffix in suffixes() if not re.search(rf"`{re.escape(suffix)}`", text)]
    assert missing == []


def test_all_formats_are_described() -> None:
    for reader in READERS.values():
        assert reader.about in describe_readers()
