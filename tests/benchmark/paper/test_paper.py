"""The whole command on little data: files, and nothing twice."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cilf.benchmark import GridCell, RunConfig, run_cell
from cilf.benchmark.bench import CELLS
from cilf.benchmark.paper.items import ITEMS
from cilf.benchmark.paper.make import make
from cilf.benchmark.paper.results import Cell
from cilf.benchmark.paper.setup import SYSTEMS, Setup
from cilf.cli import main
from cilf.data import load_dataset
from cilf.evaluate.records import Drawing, RunFolder
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


TALKS = """\
from cilf.learners import IForest

print("hello")

class Talks(IForest):
    name = "talks"

    def _fit(self, X, y):
        print("fitting")
        super()._fit(X, y)
"""


def test_json_is_alone_on_standard_output(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "talks.py"
    file.write_text(TALKS, encoding="utf-8")
    mine = ["--learner", "iforest", "--learner", f"{file}:Talks"]
    out = tmp_path / "paper"
    assert run("figure2", "--data", str(data), *mine, "--out", str(out), "--json") == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["failed"], document["items"]["figure2"]["n_missing"]) == ({}, 0)
    assert "1 models to fit besides the cells; expected time unknown" in told.err
    assert "fitting" in told.err
    # Kept by what the file is: drawing fits nothing, and a changed file is another model.
    (kept,) = (out / "maps").iterdir()
    assert run("figure2", "--data", str(data), *mine, "--out", str(out)) == 0
    assert "fitting" not in capsys.readouterr().err
    file.write_text(TALKS.replace("hello", "other"), encoding="utf-8")
    assert run("figure2", "--data", str(data), *mine, "--out", str(out), "--draw") == 0
    assert "nothing to show" in capsys.readouterr().out
    assert [kept] == list((out / "maps").iterdir())


def test_items_without_any_of_the_chosen_learners_show_nothing(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(data), "--learner", "dnn-ewc", "--out", str(out)]
    assert run("table2", "figure2", "figure10", "figure11", *few, "--jobs", "1") == 0
    told = capsys.readouterr()
    assert told.out.count("nothing to show") == 4
    assert "0 cells" in told.err


def test_drawing_alone_makes_a_folder_that_is_known_and_reported(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(data), "--out", str(out)]
    assert run("figure4", *few, "--draw") == 0
    assert run("figure4", *few, "--jobs", "1") == 0
    page = write_report(out).read_text()
    assert "Figure 4. Which class comes when" in page
    assert "Overview" not in page


def kept(config: RunConfig, out: Path) -> RunFolder:
    folder = RunFolder(out / CELLS / GridCell.of(config).folder)
    list(run_cell(config, folder.path))
    return folder


def small(data: Path, setup: Setup, learner: str, seed: int) -> RunConfig:
    return Cell(learner, str(data), "single").config(setup, seed)


def test_one_run_has_its_table_on_the_page_too(data: Path, tmp_path: Path) -> None:
    setup = Setup("smoke", data=(str(data),), learners=("iforest",))
    kept(small(data, setup, "iforest", 0), tmp_path)
    list(make([ITEMS["table2"]], setup, tmp_path))
    assert "Table 2. Novel class detection" in write_report(tmp_path).read_text()


def test_damaged_and_missing_runs_are_left_out_and_undefined_values_are_no_error(
    data: Path, tmp_path: Path
) -> None:
    setup = Setup("smoke", data=(str(data),), seeds=(0, 1, 2), learners=("iforest", "one-svm"))
    for seed in (0, 1):
        folder = kept(small(data, setup, "iforest", seed), tmp_path)
        records = [dataclasses.replace(r, known_auroc=math.nan) for r in folder.read_records()]
        folder.write_records(records)
    damaged = kept(small(data, setup, "one-svm", 0), tmp_path)
    damaged.write_run({})
    made = {
        each.item.name: each for each in make([ITEMS["table2"], ITEMS["figure6"]], setup, tmp_path)
    }
    assert [each.n_missing for each in made.values()] == [4, 4]
    assert all(each.files for each in made.values())
    rows = list(csv.DictReader((tmp_path / "table2.csv").read_text().splitlines()))
    assert [row["n_seeds"] for row in rows[:2]] == ["2", "0"]


def drawn(seed: int, n: int) -> Drawing:
    blank = np.zeros(n)
    return Drawing(
        ids=blank, map=np.random.default_rng(seed).normal(size=(n, 2)), truth=blank.astype(int),
        novel=blank.astype(bool), label=blank, cluster=blank.astype(int), novelty=blank,
        thumbnails=np.zeros((n, 0, 0), dtype=np.uint8), matched=np.empty(0, dtype=str),
        sizes=np.empty(0, dtype=np.int64),
    )  # fmt: skip


def test_maps_are_of_one_stream_and_of_800_instances_of_a_class_at_most(
    data: Path, tmp_path: Path
) -> None:
    setup = Setup("smoke", data=(str(data),), seeds=(0, 1), own=("iforest", "one-svm", "senc-mas"))
    for learner, seeds in {"iforest": (0, 1), "one-svm": (1,), "senc-mas": (1,)}.items():
        for seed in seeds:
            folder = kept(small(data, setup, learner, seed), tmp_path)
            folder.write_drawing(1, drawn(seed, 900))
            for window in range(2, 1 + len(folder.read_records())):
                (folder.path / "windows" / f"{window:03d}.npz").unlink()
    (made,) = make([ITEMS["figure5"]], setup, tmp_path)
    assert made.files
    rows = list(csv.DictReader((tmp_path / "figure5.csv").read_text().splitlines()))
    assert Counter(row["learner"] for row in rows) == dict.fromkeys(
        ("raw", "iforest", "one-svm", "senc-mas"), 800
    )
    seconds = {str(float(x)) for x in drawn(1, 900).map[:, 0]}
    assert {row["x"] for row in rows if row["learner"] == "iforest"} <= seconds
