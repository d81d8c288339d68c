"""The person that benchmarks/practice.py simulates."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "practice.py"


@pytest.fixture(scope="module")
def practice() -> ModuleType:
    spec = importlib.util.spec_from_file_location("practice", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their types
    spec.loader.exec_module(module)
    return module


def make_findings(truth: list[str], cluster: list[int]) -> Any:
    sizes = np.bincount([c for c in cluster if c >= 0]).tolist()
    ids = np.array([f"IMG_{i:04}.png" for i in range(len(truth))])
    novelty = -np.arange(len(truth), dtype=np.float32)  # the first is the most novel
    found = SimpleNamespace(
        ids=ids, cluster=np.array(cluster), novelty=novelty, cluster_sizes=sizes
    )
    return SimpleNamespace(assignments=found)


def make_album(practice: ModuleType, truth: list[str], arrived: list[str]) -> Any:
    return practice.Album(practice.DAYS[0], np.zeros((len(truth), 2, 2)), truth, arrived, {})


def test_a_person_names_clusters_and_searches_for_what_is_missing(practice: ModuleType) -> None:
    truth = ["owl"] * 8 + ["cat"] * 2 + ["cat"] * 5 + ["bee"] * 6 + ["cat"] * 9
    cluster = [0] * 10 + [-1] * 20
    names = practice.name_findings(
        make_findings(truth, cluster), make_album(practice, truth, ["owl", "bee"])
    )
    assert names.clusters == {0: "owl"}
    assert [names.rows[row] for row in (8, 9)] == ["cat", "cat"]  # not owls
    assert names.n_searched == 10  # five cats, and five bees
    assert names.n_labels == 13


def test_a_mixed_cluster_gets_single_names_only(practice: ModuleType) -> None:
    truth = ["owl", "cat"] * 15
    names = practice.name_findings(
        make_findings(truth, [0] * 30), make_album(practice, truth, ["owl"])
    )
    assert names.clusters == {}
    assert len(names.rows) == practice.MOST_SINGLE
    assert sum(name == "owl" for name in names.rows.values()) == practice.FEWEST_NAMED


def test_findings_are_compared_with_what_is_there(practice: ModuleType) -> None:
    truth = ["owl"] * 4 + ["cat"] * 6 + ["bee"] * 2
    cluster = [0, 0, 0, -1, 0, -1, -1, -1, -1, 1, -1, -1]
    album = make_album(practice, truth, ["owl", "bee"])
    judged = practice.judge(make_findings(truth, cluster), album, {"cat"})
    assert (judged["found"], judged["there"], judged["clusters"]) == (1, 2, 2)
    assert (judged["pure"], judged["in_clusters"]) == (4, 5)
    assert (judged["false_alarms"], judged["known"]) == (2, 6)
    assert (judged["missed"], judged["novel"]) == (3, 6)
