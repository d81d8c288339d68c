"""The whole command on little data: files, and nothing twice."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cilf.benchmark.bench import CELLS
from cilf.cli import main
from cilf.data import load_dataset
from cilf.paper.items import ITEMS
from cilf.paper.setup import SYSTEMS, Setup
from cilf.report import write_report
from cilf.report.tables import Table

ALL = [*(f"table{n}" for n in range(2, 6)), "figure2", *(f"figure{n}" for n in range(4, 12))]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight classes of digits, thirty images each."""
    digits = load_dataset("digits")
    X, y = digits.train
    rows = np.concatenate([np.flatnonzero(y == label)[:30] for label in range(8)])
    path = tmp_path_factory.mktemp("data") / "few.npz"
    np.savez(path, X=X[rows], y=y[rows])
    return path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["paper", *arguments])
    return int(ended.value.code or 0)


def test_every_item_of_the_paper_is_there() -> None:
    assert sorted(ITEMS) == sorted(ALL)


def test_items_share_runs() -> None:
    setup = Setup("smoke")
    table, figure = (set(ITEMS[name].cells(setup)) for name in ("table2", "figure6"))
    assert table == figure
    assert {cell.learner for cell in ITEMS["table3"].cells(setup)} == {*SYSTEMS, "joint"}
    assert len(ITEMS["figure10"].cells(setup)) == 2 * 3 * 3
    assert len(ITEMS["figure10"].cells(Setup("cpu"))) == 2 * 5 * 5


def test_tables_and_figures_of_few_runs(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(data), "--learner", "iforest", "--learner", "one-svm", "--out", str(out)]
    assert run("table2", "figure4", "figure6", *few, "--jobs", "1") == 0
    assert "table2" in capsys.readouterr().out
    rows = list(csv.DictReader((out / "table2.csv").read_text().splitlines()))
    assert len(rows) == 4 * 2
    assert all(0 <= float(row["mean"]) <= 1 for row in rows)
    table = Table.from_markdown((out / "table2.md").read_text())
    assert len(table.bold) == 4
    for name in ("figure4-few-single", "figure6"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}.svg").read_text().startswith("<?xml")
    page = write_report(out).read_text()
    assert "Table 2. Novel class detection" in page
    assert page.count("data:image/png;base64") >= 3
    assert all((cell / "report.html").exists() for cell in (out / CELLS).iterdir())


def test_what_is_there_is_not_run_again(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(data), "--learner", "iforest", "--out", str(out), "--jobs", "1"]
    assert run("table2", *few) == 0
    (cell,) = (out / CELLS).iterdir()
    before = (cell / "records.jsonl").stat().st_mtime_ns
    assert run("figure6", *few, "--json") == 0
    assert [cell] == list((out / CELLS).iterdir())
    assert (cell / "records.jsonl").stat().st_mtime_ns == before
    assert set(json.loads((out / "paper.json").read_text())["items"]) == {"table2", "figure6"}
    assert run("table2", *few, "--seed", "0", "--seed", "1", "--draw") == 0
    assert [cell] == list((out / CELLS).iterdir())


def test_unknown_names_are_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tabel2") == 2
    assert "did you mean 'table2'" in capsys.readouterr().err
    assert run("table2", "--learner", "clif") == 2
    assert "did you mean 'cilf'" in capsys.readouterr().err
    assert run("table2", "--scale", "huge") == 2
    assert "unknown scale 'huge'" in capsys.readouterr().err
