from __future__ import annotations

import numpy as np
import pytest

from cilf.console import window_view
from cilf.console.service import Console

from .conftest import (
    COWS,
    HENS,
    act,
    list_clusters,
)


def test_clusters_start_as_they_were_detected(console: Console) -> None:
    assert list_clusters(console) == {COWS: (None, "open", 12), HENS: (None, "open", 8)}
    assert window_view.list_clusters(console, 1)[0]["nearest"] == "dog"
    assert window_view.count_known(console, 1) == {"cat": 20, "dog": 10}


def test_budget_is_spent_by_answers_and_given_back(console: Console) -> None:
    assert window_view.suggest_queries(console, 1, "representative")["left"] == 10
    act(console, 1, "label", rows=[31], name="cow")
    act(console, 1, "name", clusters=[HENS], name="hen")
    queries = window_view.suggest_queries(console, 1, "representative")
    assert (queries["answers"], queries["left"], len(queries["rows"])) == (2, 8, 8)
    console.undo(1)
    assert window_view.suggest_queries(console, 1, "mixed")["answers"] == 1
    console.set_budget(1, 1)
    assert window_view.suggest_queries(console, 1, "mixed")["rows"] == []


@pytest.mark.parametrize("strategy", ["random", "representative", "uncertain", "mixed"])
def test_queries_are_about_open_clusters_in_turns(console: Console, strategy: str) -> None:
    rows = window_view.suggest_queries(console, 1, strategy)["rows"]
    assert len(set(rows)) == 10
    ids = console.open(1).gallery.ids
    assert {ids[row][:3] for row in rows[:2]} == {"cow", "hen"}


def test_exemplars_of_a_cluster(console: Console) -> None:
    shown = window_view.find_exemplars(console, 1, COWS)
    rows = [shown.medoid, *shown.nearest, *shown.farthest, *shown.random]
    assert len(rows) == 12
    assert set(rows) == set(range(30, 42))
    z = console.open(1).gallery.embedding[30:42].astype(float)
    to_all = ((z[:, None] - z[None]) ** 2).sum(axis=(1, 2))
    assert shown.medoid == 30 + int(np.argmin(to_all))


def test_members_are_paged(console: Console) -> None:
    total, first = window_view.list_members(console, 1, COWS, most=5)
    _, second = window_view.list_members(console, 1, COWS, start=5, most=50)
    assert total == 12
    assert sorted(first + second) == list(range(30, 42))
    assert window_view.list_members(console, 1, 0, "cat", most=100)[0] == 20
