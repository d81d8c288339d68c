from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from cilf.workflow import Findings, export_findings

from ..exported import IDS


def test_tables_have_all_and_cells_that_spreadsheets_do_not_compute(
    texts: Findings, tmp_path: Path
) -> None:
    export_findings(texts.path, tmp_path / "out")
    with (tmp_path / "out/labels.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {
        "identity": "'=1+1", "label": "'=cow", "predicted": "", "cluster": "1", "novelty": "0.0",
    }  # fmt: skip
    assert [row["identity"] for row in rows[2:4]] == ["'+3.png", "'@me"]
    assert [row["predicted"] for row in rows[4:10]] == [
        "cat",
        "cat",
        "",
        "",
        "dog & co",
        "dog & co",
    ]
    with (tmp_path / "out/embeddings.csv").open(newline="", encoding="utf-8-sig") as file:
        vectors = list(csv.reader(file))
    assert vectors[0] == ["identity", "e1", "e2", "e3"]
    embedding = np.array([row[1:] for row in vectors[1:]], dtype=np.float32)
    np.testing.assert_array_equal(embedding, texts.embedding)


def test_lines_of_json_have_all(texts: Findings, tmp_path: Path) -> None:
    export_findings(texts.path, tmp_path / "out", to="jsonl")
    lines = (tmp_path / "out/labels.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert tuple(row["identity"] for row in rows) == IDS
    assert rows[1]["label"] == "Hühner/Küken"
    embedding = np.array([row["embedding"] for row in rows], dtype=np.float32)
    np.testing.assert_array_equal(embedding, texts.embedding)
