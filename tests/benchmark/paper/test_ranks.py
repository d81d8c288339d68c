from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from cilf.benchmark.paper.items import select_items
from cilf.benchmark.paper.make import write_items
from cilf.benchmark.paper.panels import plot_ranks
from cilf.benchmark.paper.ranks import (
    Ranking,
    choose_block,
    compute_critical_difference,
    rank_systems,
)
from cilf.benchmark.paper.setup import Setup

# Two-tailed Nemenyi at 0.05 for 2 to 10 systems, as Demšar (JMLR 2006, table 5a) prints them.
PRINTED = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)


def on_streams(*values: float) -> dict[tuple[str, str, int], float]:
    return {("mnist", "single", seed): value for seed, value in enumerate(values)}


@pytest.mark.parametrize(("n_systems", "printed"), [*enumerate(PRINTED, start=2)])
def test_critical_differences_are_those_of_the_printed_table(
    n_systems: int, printed: float
) -> None:
    expected = printed * math.sqrt(n_systems * (n_systems + 1) / (6 * 14))
    assert compute_critical_difference(n_systems, 14) == pytest.approx(expected, abs=2e-3)


def test_ranks_are_means_over_streams_and_ties_share_them() -> None:
    values = {
        "a": on_streams(0.9, 0.8, 0.7), "b": on_streams(0.9, 0.5, 0.6), "c": on_streams(0, 0, 0),
    }  # fmt: skip
    ranking = rank_systems(values, higher_is_better=True)
    assert dict(ranking.ranks) == pytest.approx({"a": 3.5 / 3, "b": 5.5 / 3, "c": 3.0})
    assert list(ranking.ranks) == ["a", "b", "c"]
    columns = [list(each.values()) for each in values.values()]
    assert ranking.p_value == pytest.approx(friedmanchisquare(*columns).pvalue)
    assert list(rank_systems(values, higher_is_better=False).ranks) == ["c", "b", "a"]


def test_a_system_with_few_streams_does_not_take_the_others_from_the_rest() -> None:
    many = {name: on_streams(*np.arange(9.0)) for name in "abcd"}
    block = choose_block(many | {"e": on_streams(1.0)})
    assert (block.systems, len(block.streams)) == (("a", "b", "c", "d"), 9)
    whole = choose_block(many | {"e": on_streams(*np.arange(8.0))})
    assert (whole.systems, len(whole.streams)) == (("a", "b", "c", "d", "e"), 8)
    assert rank_systems({}, higher_is_better=True).ranks == {}


def test_streams_that_cilf_lacks_do_not_count() -> None:
    rivals = {name: on_streams(*np.arange(9.0)) for name in "abcd"}
    block = choose_block(rivals | {"cilf": on_streams(1.0, 2.0), "e": {}})
    assert (block.systems, len(block.streams)) == (("cilf", "a", "b", "c", "d"), 2)
    assert len(choose_block(rivals | {"cilf": {}}).streams) == 9


def test_too_few_systems_or_streams_have_ranks_but_no_test() -> None:
    ranking = rank_systems({n: on_streams(1.0) for n in "abc"}, higher_is_better=True)
    assert dict(ranking.ranks) == {"a": 2.0, "b": 2.0, "c": 2.0}
    assert math.isnan(ranking.p_value)
    assert ranking.groups() == []


def test_systems_that_are_equal_everywhere_do_not_differ() -> None:
    ranking = rank_systems({n: on_streams(1.0, 1.0, 1.0) for n in "abc"}, higher_is_better=True)
    assert ranking.p_value == 1.0
    assert ranking.groups() == [("a", "b", "c")]


def test_a_bar_joins_what_does_not_differ() -> None:
    ranking = Ranking({"a": 1.0, "cilf": 1.4, "b": 3.0}, 9, 0.01, 0.5)
    (axes,) = plot_ranks({"H": ranking.to_line()}).axes
    texts = {text.get_text() for text in axes.texts}
    assert {"a 1.00", "cilf 1.40", "b 3.00"} <= texts
    assert axes.get_title() == "mean rank by H; critical difference 0.50"
    (bar,) = [each for each in axes.collections if each.get_linewidth()[0] == 3]
    assert bar.get_segments()[0][:, 0].tolist() == pytest.approx([0.95, 1.45])


def test_the_table_ranks_finished_runs_and_names_gaps(
    few_digits: Path, tmp_path: Path, keep_run: Any
) -> None:
    learners = ("senc-mas", "one-svm", "iforest", "dnn-base")
    setup = Setup("smoke", data=(str(few_digits),), seeds=(0, 1), learners=learners)
    for learner in ("senc-mas", "one-svm", "iforest"):
        for seed in (0, 1):
            keep_run(setup, learner, seed)
    (written,) = write_items(select_items(["ranks"]), setup, tmp_path)
    suffixes = [path.suffix for path in written.files]
    assert suffixes == [".md", ".csv", ".tex", ".json", ".png", ".svg"]
    rows = list(csv.DictReader((tmp_path / "ranks.csv").read_text().splitlines()))
    ranks = {r["learner"]: float(r["rank"]) for r in rows if r["metric"] == "plan_h"}
    assert set(ranks) == {"senc-mas", "one-svm"}  # iforest as published clusters all instances
    assert sum(ranks.values()) == 3.0
    page = (tmp_path / "ranks.md").read_text(encoding="utf-8")
    assert "2 systems on 2 streams, too few for a test" in page
