from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cilf.console import window_view
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.errors import BadInput

from .conftest import (
    COWS,
    HENS,
    act,
    list_clusters,
    put_window,
    restart,
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


def list_rows(console: Console, **wanted: Any) -> list[int]:
    return window_view.list_members(console, 1, window_view.Members(**wanted))


def test_members_are_listed_in_each_order(console: Console) -> None:
    rows = list_rows(console, cluster=COWS)
    assert sorted(rows) == list(range(30, 42))
    assert len(list_rows(console, cluster=0, label="cat")) == 20
    assert list_rows(console, sort="novelty") == list(range(49, -1, -1))
    z = console.open(1).gallery.embedding.astype(float)
    away = np.linalg.norm(z[30:42] - z[30:42].mean(axis=0), axis=1)
    by_distance = (30 + np.argsort(-away, kind="stable")).tolist()
    assert list_rows(console, cluster=COWS, sort="distance") == by_distance
    assert rows == by_distance[::-1]
    act(console, 1, "name", clusters=[HENS], name="hen")
    act(console, 1, "label", rows=[3], name="ant")
    assert list_rows(console, sort="name")[:2] == [3, 42]
    assert list_rows(console, only="unnamed") == list(range(30, 42))
    assert set(list_rows(console, only="novel")) == {3, *range(30, 50)}


def test_near_duplicates_stand_together(store: Store) -> None:
    console = Console(store, store.folder / "model")
    put_window(console, stack={40: 31, 35: 31, 5: 31})
    rows = list_rows(console, cluster=COWS, sort="novelty")
    assert rows[:4] == [41, 40, 35, 31]  # all of a stack where the first of them is
    shown = window_view.describe_stacks(console, 1, rows)
    assert [one["rows"] for one in shown[:3]] == [[41], [40, 35, 31], [39]]
    assert window_view.end_of_page(console, 1, rows, 2) == 4
    assert window_view.end_of_page(console, 1, rows, 4) == 4
    # An instance of another cluster is another thing to label.
    assert window_view.find_stack(console.open(1), 35) == [35, 31, 40]
    assert window_view.find_stack(console.open(1), 5) == [5]


def test_similar_instances_in_the_window_and_in_the_memory(console: Console) -> None:
    found = window_view.list_similar(console, 1, 30, 5)
    z = console.open(1).gallery.embedding.astype(float)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosine = unit @ unit[30]
    cosine[30] = -2
    assert [one["row"] for one in found["window"]] == np.argsort(-cosine)[:5].tolist()
    assert found["window"][0]["similarity"] == pytest.approx(cosine.max(), abs=1e-4)
    assert {one["name"] for one in found["known"]} == {"cat", "dog"}


def test_the_history_of_an_instance(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="Ann")
    act(console, 1, "move", rows=[30], to=HENS)
    act(console, 1, "name", clusters=[HENS], name="hen", person="Bob")
    act(console, 1, "skip", clusters=[COWS])
    console.undo(1, 3)
    told = window_view.inspect_instance(console, 1, 30)["history"]
    assert [(one["person"], one["sentence"], one["undone"]) for one in told] == [
        ("Ann", "named cluster 1 “cow”", False),
        ("somebody", "moved 1 to cluster 2", False),
        ("Bob", "named cluster 2 “hen”", True),
        ("somebody", "undid name", True),
    ]
    assert len(window_view.inspect_instance(console, 1, 31)["history"]) == 2
    act(console, 1, "review", rows=[0])
    (line,) = window_view.inspect_instance(console, 1, 0)["history"]
    assert line["sentence"] == "asked for a second opinion on 1"


def test_second_opinions_agree_or_not(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="Ann")
    act(console, 1, "review", rows=[0, 30, 31, 45])
    told = window_view.summarize_opinions(console, 1)
    assert (told["waiting"], told["n_given"]) == ([0, 30, 31, 45], 0)
    act(console, 1, "opinion", rows=[0], name="cat", person="Bob")
    act(console, 1, "opinion", rows=[30], name="cow", person="Bob")
    act(console, 1, "opinion", rows=[31], name="yak", person="Bob")
    act(console, 1, "opinion", rows=[45], name="hen", person="Bob")  # has no label yet
    told = window_view.summarize_opinions(restart(console), 1)
    assert (told["waiting"], told["n_given"], told["n_agreeing"]) == ([], 3, 2)
    (one,) = told["disagreements"]
    assert (one["row"], one["label"], one["opinion"]) == (31, "cow", "yak")
    assert len(console.open(1).labels) == 12  # an opinion changes no label
    console.undo(1)
    assert window_view.summarize_opinions(console, 1)["waiting"] == [45]
    with pytest.raises(BadInput, match="asked for already"):
        act(console, 1, "review", rows=[30, 31])


def test_a_second_opinion_on_one_s_own_label_is_no_agreement(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="Ann")
    act(console, 1, "label", rows=[31], name="calf", person="Bob")
    act(console, 1, "label", rows=[32], name="calf", person="Bob")
    console.undo(1, person="Cleo")
    act(console, 1, "opinion", rows=[30, 32], name="cow", person="Ann")  # hers, both of them
    act(console, 1, "opinion", rows=[31], name="calf", person="Ann")  # his
    act(console, 1, "opinion", rows=[0], name="cat", person="Ann")  # the model's
    told = window_view.summarize_opinions(console, 1)
    assert (told["n_given"], told["n_agreeing"], told["n_own"]) == (2, 2, 2)
    act(console, 1, "opinion", rows=[31], name="cow", person="Bob")
    told = window_view.summarize_opinions(console, 1)
    assert (told["n_given"], told["n_own"], told["disagreements"]) == (1, 3, [])
    act(console, 1, "merge", clusters=[HENS, COWS], person="Cleo")  # she names the hens so
    told = window_view.summarize_opinions(console, 1)
    assert (told["n_given"], told["n_own"]) == (3, 1)


def test_clusters_are_assigned_to_people(console: Console) -> None:
    act(console, 1, "assign", clusters=[COWS, HENS], assignee="Ann")
    act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "assign", clusters=[HENS], assignee="")
    told = window_view.list_clusters(restart(console), 1)
    assert {one["cluster"]: one["assignee"] for one in told} == {COWS: "Ann", HENS: ""}
    assert window_view.suggest_queries(console, 1, "random")["rows"]
    console.undo(1)
    assert window_view.list_clusters(console, 1)[0]["assignee"] == "Ann"
