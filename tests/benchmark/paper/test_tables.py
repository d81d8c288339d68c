from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from cilf.benchmark.paper.comparison import Score
from cilf.benchmark.paper.item import Inputs
from cilf.benchmark.paper.setup import Setup
from cilf.benchmark.paper.tables import compare, make_csv_table, make_table, write_table
from cilf.report import Table


def score_of(values: list[float]) -> Score:
    return Score({0: float(np.nanmean(values))}, {(0, i): value for i, value in enumerate(values)})


def test_all_who_share_the_best_mean_are_bold_and_nobody_is_compared_with_himself() -> None:
    scores = {("na", name, "mnist"): score_of([0.5, 0.7]) for name in ("cilf", "cpe")}
    compared = compare(scores, "single")
    assert make_table(compared, "title").bold == {(0, 2), (1, 2)}
    assert all(math.isnan(cell.p) for cell in compared.values())


def test_the_best_is_bold_and_the_clearly_worse_are_marked() -> None:
    high = [0.9 + i / 1000 for i in range(10)]
    scores = {
        ("na", "cilf", "mnist"): score_of(high),
        ("na", "cpe", "mnist"): score_of([value - 0.3 - i / 500 for i, value in enumerate(high)]),
        ("na", "dtc", "mnist"): score_of(
            [value - 0.001 - 0.01 * (-1) ** i for i, value in enumerate(high)]
        ),
    }
    table = make_table(compare(scores, "single"), "title")
    assert table.columns == ("metric", "learner", "MNIST", "paper")
    assert table.rows[0] == ("NA", "cilf", "0.905", "0.371 ± 0.022")
    assert table.rows[1][2] == "0.596†"
    assert not str(table.rows[2][2]).endswith("†")
    assert table.bold == {(0, 2)}
    assert r"\textbf{0.905}" in table.to_latex()
    assert r"$^\dagger$" in table.to_latex()


def test_numbers_for_programs_are_numbers() -> None:
    scores = {("na", "cilf", "digits"): score_of([0.5])}
    lines = make_csv_table(compare(scores, "single"), "single").to_csv().splitlines()
    assert lines[1] == "na,cilf,digits,single,0.5,,1,,,"


def test_the_files_hold_the_same_table(tmp_path: Path) -> None:
    scores = {("na", "mine<|>_2", "mnist"): score_of([0.5])}
    inputs = Inputs("table2", "title", Setup("smoke"), {}, tmp_path, tmp_path)
    files = write_table(scores, "single", inputs)
    assert [file.name for file in files] == [f"table2.{s}" for s in ("md", "csv", "tex", "json")]
    latex = (tmp_path / "table2.tex").read_text(encoding="utf-8")
    assert r"$^\dagger$: differs from the best, p $<$ 0.05" in latex
    assert r"mine$<$$|$$>$\_2" in latex
    table = Table.from_json((tmp_path / "table2.json").read_text(encoding="utf-8"))
    assert table == make_table(compare(scores, "single"), "title")
    assert (tmp_path / "table2.md").read_text(encoding="utf-8") == table.to_markdown()
