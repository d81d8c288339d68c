from __future__ import annotations

import subprocess
import sys

from cilf import learners
from cilf.learners import LEARNERS
from cilf.learners.iforest import IForest
from cilf.learners.learner_table import LearnerTable


def test_each_learner_has_the_name_of_its_row() -> None:
    assert {name: learner.name for name, learner in LEARNERS.items()} == {n: n for n in LEARNERS}


def test_each_learner_is_a_name_of_the_package() -> None:
    for learner in LEARNERS.values():
        assert getattr(learners, learner.__name__) is learner
        assert learner.__name__ in learners.__all__


def test_names_cost_no_import() -> None:
    code = "import sys; from cilf.learners import LEARNERS; list(LEARNERS); "
    found = "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code + found], check=True)


def test_a_learner_may_be_added_and_removed() -> None:
    table = LearnerTable("cilf.learners", {"iforest": "iforest:IForest"})
    assert table["iforest"] is IForest
    table["mine"] = IForest
    assert (list(table), len(table)) == (["iforest", "mine"], 2)
    del table["iforest"]
    assert list(table.values()) == [IForest]
