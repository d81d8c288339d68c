from __future__ import annotations

import itertools

from cilf.benchmark.paper.published import COLUMNS, ROWS, find_published
from cilf.benchmark.paper.setup import DETECTORS, SYSTEMS

PRINTED = ("plan_na", "plan_macro_f", "plan_micro_f", "plan_auroc")


def test_every_system_of_the_paper_has_its_numbers() -> None:
    for scenario, data, learner in itertools.product(("single", "multiple"), COLUMNS, SYSTEMS):
        assert find_published(scenario, "forgetting", learner, data) is not None
        if learner in DETECTORS:
            assert all(find_published(scenario, metric, learner, data) for metric in PRINTED)
    assert set(ROWS) == set(SYSTEMS)
    assert find_published("single", "plan_na", "joint", "mnist") is None
