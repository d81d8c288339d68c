"""The commands for a model in use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf import CILF

from ..workflow.exported import write_named


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of two classes of points."""
    X = [[i % 7 / 7 + 5 * (i >= 30), i % 5 / 5] for i in range(60)]
    CILF(epochs=1, width=8).fit(X, ["ant"] * 30 + ["bee"] * 30).save(tmp_path / "model")
    return tmp_path / "model"


def test_export_writes_a_file_and_says_what_is_in_it(run: Any, model: Path) -> None:
    pytest.importorskip("onnx")
    outcome = run("export", str(model), "--out", "a.onnx")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("a.onnx: 2 classes, ")
    assert "a batch gives label, probability, novelty_p" in outcome.out
    again = run("export", str(model), "--out", "a.onnx", "--json", "--overwrite")
    said = json.loads(again.out)
    assert (said["classes"], said["version"]) == (["ant", "bee"], None)
    assert said["bytes"] == Path("a.onnx").stat().st_size


def test_a_file_is_not_replaced_unasked(run: Any, model: Path) -> None:
    Path("a.onnx").write_bytes(b"mine")
    outcome = run("export", str(model), "--out", "a.onnx")
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert "a.onnx is there already" in line


def test_findings_are_exported_and_their_labels_come_back(run: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
    write_named(tmp_path / "found", X)
    outcome = run("export", "found", "--to", "jsonl", "--out", "lines")
    assert outcome.out == "lines: 12 instances as JSON lines, 7 of them labelled\n"
    again = run("export", "found", "--to", "jsonl", "--out", "lines", "--overwrite", "--json")
    assert json.loads(again.out) == {
        "out": "lines", "format": "jsonl", "n_instances": 12, "n_labels": 7,
    }  # fmt: skip
    assert run("export", "found", "--to", "jsonl", "--out", "lines").code == 2


def test_a_format_of_models_and_one_of_findings(run: Any, model: Path, tmp_path: Path) -> None:
    outcome = run("export", str(model), "--to", "cvat")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "holds no findings, which --to cvat is for" in outcome.err
    write_named(tmp_path / "found", np.zeros((12, 2), dtype=np.float32))
    assert (
        "holds findings, and --to onnx is for models" in run("export", "found", "--to", "onnx").err
    )
    shown = run("export", "--help").out
    assert "hugging-face" in shown
    assert "onnx" in shown


def test_watch_prints_what_is_new_as_lines_of_json(run: Any, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    near = [[i % 7 / 7 + 5 * (i >= 20), i % 4 / 4] for i in range(40)]
    lines = [json.dumps(point) for point in near]
    lines += [json.dumps([20 + i % 9 / 9, 30 + i % 7 / 7]) for i in range(30)]
    (tmp_path / "stream").mkdir()
    rows = "\n".join(f"{a},{b}" for a, b in map(json.loads, lines))
    (tmp_path / "stream" / "a.csv").write_text("a,b\n" + rows + "\n")
    outcome = run("watch", str(model), str(tmp_path / "stream"), "--once", "--at-least", "20")
    assert outcome.code == 0, outcome.err
    (line,) = outcome.out.splitlines()
    assert json.loads(line)["n_novel"] >= 1
    assert "window-0001: of " in outcome.err


def test_a_webhook_needs_a_secret(run: Any, model: Path) -> None:
    pytest.importorskip("fastapi")
    outcome = run("watch", str(model), "stream", "--webhook", "http://127.0.0.1:1/")
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert "set CILF_WEBHOOK_SECRET" in line
