from __future__ import annotations

from pathlib import Path

import pytest

from cilf.benchmark.paper.setup import DETECTORS, SEEDS, Setup
from cilf.errors import BadConfig


def test_own_learners_are_one_more_row_and_data_replace_the_papers() -> None:
    setup = Setup("cpu", data=("photos",), learners=("cilf",), own=("mine.py:Mine",))
    assert setup.learners_for(DETECTORS) == ("cilf", "mine.py:Mine")
    assert setup.data_for(["cifar10"]) == ("photos",)
    assert Setup("smoke").data_for(["cifar10", "mnist"]) == ("digits",)
    assert Setup("paper").all_seeds == (1000, 1001, 1002, 1003, 1004)


def test_what_is_reported_has_seeds_that_nothing_was_tuned_on() -> None:
    assert all(seed >= 1000 for seeds in SEEDS.values() for seed in seeds)


def test_what_is_given_twice_counts_once_and_equal_names_are_refused(tmp_path: Path) -> None:
    setup = Setup.of(scale="smoke", data=["digits", "digits"], seeds=[1, 1])
    assert (setup.data, setup.all_seeds) == (("digits",), (1,))
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
