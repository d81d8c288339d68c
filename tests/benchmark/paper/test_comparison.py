"""Learners compared on the same windows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from cilf.benchmark.paper import tables
from cilf.benchmark.paper.comparison import Score, best, p_value, score
from cilf.benchmark.paper.published import COLUMNS, METRICS, ROWS, published
from cilf.benchmark.paper.setup import DETECTORS, SYSTEMS, Setup
from cilf.core import WindowRecord
from cilf.errors import BadConfig


def scored(values: list[float]) -> Score:
    return Score({0: float(np.nanmean(values))}, {(0, i): value for i, value in enumerate(values)})


def exact_p_value(differences: list[float]) -> float:
    """By all ways the signs could have fallen: slow, and right by definition."""
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    total = ranks.sum()
    seen = ranks[np.array(differences) > 0].sum()
    least = min(seen, total - seen)
    signs = itertools.product([0, 1], repeat=len(differences))
    sums = np.array([np.dot(sign, ranks) for sign in signs])
    return float(min(1.0, 2 * (sums <= least).mean()))


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_is_that_of_all_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(0.2, 1, size=8).tolist(), rng.normal(0, 1, size=8).tolist()
    differences = [a - b for a, b in zip(one, other, strict=True)]
    assert p_value(scored(one), scored(other)) == pytest.approx(exact_p_value(differences))


def test_only_shared_and_defined_places_are_compared() -> None:
    one = Score({0: 1.0}, {(0, w): 0.9 + w / 100 for w in range(1, 9)} | {(0, 99): 5.0})
    other = Score({0: 1.0}, {(0, w): 0.5 for w in range(1, 9)} | {(0, 50): math.nan})
    assert p_value(one, other) == pytest.approx(2 / 2**8)


def test_equal_scores_do_not_differ_and_nothing_is_not_a_number() -> None:
    same = scored([0.5, 0.6])
    assert p_value(same, same) == 1.0
    assert math.isnan(p_value(same, Score({}, {})))


def test_less_forgetting_is_better() -> None:
    scores = {"a": Score({0: 0.1}), "b": Score({0: 0.3}), "none": Score({})}
    assert (best(scores, "forgetting"), best(scores, "na")) == (["a"], ["b"])
    assert best({"none": Score({})}, "na") == []


def record(window: int, *accuracy: float) -> WindowRecord:
    blank = dict.fromkeys((field.name for field in dataclasses.fields(WindowRecord)), 0)
    holdout = dict(enumerate(accuracy))
    groups = {"holdout_accuracy": holdout, "holdout_classes": dict.fromkeys(holdout, 1)}
    return WindowRecord(**{**blank, "extra": {}, "window": window, **groups})  # type: ignore[arg-type]


def test_forgetting_is_paired_over_seeds_and_windows() -> None:
    joint = {s: [record(w, 0.8, 0.9 - s / 10) for w in (1, 2, 3)] for s in (0, 1)}
    runs = {s: [record(w, 0.8 - w / 10, 0.5) for w in (1, 2, 3)] for s in (0, 1)}
    found = score("forgetting", runs, joint)
    assert sorted(found.by_place) == [(s, w) for s in (0, 1) for w in (1, 2, 3)]
    for seed, value in found.by_seed.items():
        over_windows = [v for (s, _), v in found.by_place.items() if s == seed]
        assert value == pytest.approx(np.mean(over_windows))
    assert found.by_place[1, 3] == pytest.approx((0.8 - 0.5) / 0.8)
    # Six pairs suffice for a mark, which five seeds alone never would.
    assert p_value(score("forgetting", joint, joint), found) == pytest.approx(2 / 2**6)


def test_all_who_share_the_best_mean_are_bold_and_nobody_is_compared_with_himself() -> None:
    scores = {("na", name, "mnist"): scored([0.5, 0.7]) for name in ("cilf", "cpe")}
    compared = tables.compare(scores, "single")
    assert tables.table(compared, "title").bold == {(0, 2), (1, 2)}
    assert all(math.isnan(cell.p) for cell in compared.values())


def test_seeds_without_a_value_count_neither_for_mean_nor_deviation_nor_number() -> None:
    found = Score({0: 0.2, 1: math.nan, 2: 0.4})
    assert (found.mean, found.std) == (pytest.approx(0.3), pytest.approx(0.02**0.5))
    assert found.n_seeds == 2


def test_latex_explains_its_marks_in_plain_signs(tmp_path: Path) -> None:
    scores = {("na", "mine<|>_2", "mnist"): scored([0.5])}
    tables.write(scores, "single", "title", tmp_path, "table2")
    text = (tmp_path / "table2.tex").read_text(encoding="utf-8")
    assert r"$^\dagger$: differs from the best, p $<$ 0.05" in text
    assert r"mine$<$$|$$>$\_2" in text


def test_the_best_is_bold_and_the_clearly_worse_are_marked() -> None:
    high = [0.9 + i / 1000 for i in range(10)]
    scores = {
        ("na", "cilf", "mnist"): scored(high),
        ("na", "cpe", "mnist"): scored([value - 0.3 - i / 500 for i, value in enumerate(high)]),
        ("na", "dtc", "mnist"): scored(
            [value - 0.001 - 0.01 * (-1) ** i for i, value in enumerate(high)]
        ),
    }
    table = tables.table(tables.compare(scores, "single"), "title")
    assert table.columns == ("metric", "learner", "MNIST", "paper")
    assert table.rows[0] == ("NA", "cilf", "0.905", "0.371 ± 0.022")
    assert table.rows[1][2] == "0.596†"
    assert not str(table.rows[2][2]).endswith("†")
    assert table.bold == {(0, 2)}
    assert r"\textbf{0.905}" in table.to_latex()
    assert r"$^\dagger$" in table.to_latex()


def test_numbers_for_programs_are_numbers() -> None:
    scores = {("na", "cilf", "digits"): scored([0.5])}
    lines = tables.data_table(tables.compare(scores, "single"), "single").to_csv().splitlines()
    assert lines[1] == "na,cilf,digits,single,0.5,,1,,,"


def test_every_system_of_the_paper_has_its_numbers() -> None:
    for scenario, data, learner in itertools.product(("single", "multiple"), COLUMNS, SYSTEMS):
        assert published(scenario, "forgetting", learner, data) is not None
        if learner in DETECTORS:
            assert all(published(scenario, metric, learner, data) for metric in METRICS)
    assert set(ROWS) == set(SYSTEMS)
    assert published("single", "na", "joint", "mnist") is None


def test_own_learners_are_one_more_row_and_data_replace_the_papers() -> None:
    setup = Setup("cpu", data=("photos",), learners=("cilf",), own=("mine.py:Mine",))
    assert setup.learners_for(DETECTORS) == ("cilf", "mine.py:Mine")
    assert setup.data_for(["cifar10"]) == ("photos",)
    assert Setup("smoke").data_for(["cifar10", "mnist"]) == ("digits",)
    assert Setup("paper").repetitions == (0, 1, 2, 3, 4)


def test_what_is_given_twice_counts_once_and_equal_names_are_refused(tmp_path: Path) -> None:
    setup = Setup.of(scale="smoke", data=["digits", "digits"], seeds=[1, 1])
    assert (setup.data, setup.repetitions) == (("digits",), (1,))
    with pytest.raises(BadConfig, match="did you mean 'digits'"):
        Setup.of(scale="smoke", data=["dgits"])
    with pytest.raises(BadConfig, match="both called 'photos'"):
        Setup.of(scale="smoke", data=["a/photos/", "b/photos/"])
    mine = "from cilf.learners import IForest\nclass Mine(IForest):\n    name = 'mine'\n"
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    for file in files:
        file.write_text(mine, encoding="utf-8")
    with pytest.raises(BadConfig, match="both called 'mine'"):
        Setup.of(scale="smoke", learners=[f"{file}:Mine" for file in files])
