from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cilf.core import Label
from cilf.errors import BadConfig
from cilf.stream.plan import Plan, PlannedWindow, make_plan, paper_protocol

steady = settings(max_examples=80, deadline=None, derandomize=True, database=None)


def plan(**changes: Any) -> Plan:
    parameters: dict[str, Any] = {
        "classes": list("abcdefghij"),
        "n_initial": 3,
        "novel_range": (2, 3),
        "n_quiet": 0,
        "vanishing": 0.1,
        "n_windows": None,
        "seed": 0,
    }
    return make_plan(**(parameters | changes))


@st.composite
def plans(draw: st.DrawFn) -> tuple[dict[str, Any], Plan]:
    fewest, spread = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    n_classes = draw(st.integers(fewest + 2, 25))
    parameters = {
        "classes": list(range(100, 100 + n_classes)),
        "n_initial": draw(st.integers(2, n_classes - fewest)),
        "novel_range": (fewest, fewest + spread),
        "n_quiet": draw(st.integers(0, 4)),
        "vanishing": draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        "seed": draw(st.integers(0, 2**40)),
    }
    return parameters, plan(**parameters)


# ----------------------------------------------------------------- what holds for every plan


@steady
@given(plans())
def test_a_class_starts_once(drawn: tuple[dict[str, Any], Plan]) -> None:
    parameters, made = drawn
    started = [*made.initial, *(label for window in made.windows for label in window.novel)]
    assert len(set(started)) == len(started)
    assert set(started) <= set(parameters["classes"])
    assert len(made.initial) == parameters["n_initial"]


@steady
@given(plans())
def test_known_are_those_who_came_and_did_not_leave(drawn: tuple[dict[str, Any], Plan]) -> None:
    _, made = drawn
    possible, novel = set(made.initial), set[Label]()
    for window in made.windows:
        known = set(window.known)
        assert len(known) == len(window.known) >= 2
        assert novel <= known <= possible  # what has left once is no longer possible
        assert not known & set(window.novel)
        assert set(window.classes) == known | set(window.novel)
        novel = set(window.novel)
        possible = known | novel


@steady
@given(plans())
def test_counts_of_novel_classes_and_quiet_windows(drawn: tuple[dict[str, Any], Plan]) -> None:
    parameters, made = drawn
    counts = [len(window.novel) for window in made.windows]
    fewest, most = parameters["novel_range"]
    assert counts.count(0) == parameters["n_quiet"]
    assert all(fewest <= count <= most for count in counts if count)
    left = len(parameters["classes"]) - parameters["n_initial"] - sum(counts)
    assert 0 <= left < fewest  # what is left over is too little for a window


@steady
@given(plans(), st.integers(1, 6))
def test_n_windows_keeps_the_first(drawn: tuple[dict[str, Any], Plan], n_windows: int) -> None:
    parameters, made = drawn
    cut = plan(**parameters, n_windows=n_windows)
    assert len(cut.windows) == min(n_windows, len(made.windows))
    assert cut.windows == made.windows[:n_windows]


@steady
@given(plans())
def test_arrivals_name_the_window_a_class_is_novel_in(drawn: tuple[dict[str, Any], Plan]) -> None:
    _, made = drawn
    expected = dict.fromkeys(made.initial, 0)
    for index, window in enumerate(made.windows, start=1):
        for label in window.novel:
            expected[label] = index
    assert made.arrivals == expected


@steady
@given(plans())
def test_the_seed_decides(drawn: tuple[dict[str, Any], Plan]) -> None:
    parameters, made = drawn
    assert plan(**parameters) == made


def test_other_seeds_give_other_plans() -> None:
    assert len({plan(seed=seed) for seed in range(20)}) == 20


# ----------------------------------------------------------------- single choices


def test_classes_leave_until_two_are_left() -> None:
    made = plan(classes=[1, 2, 3, 4], novel_range=(1, 1), n_initial=3, n_quiet=6, vanishing=1.0)
    assert [len(window.known) for window in made.windows[1:]] == [2] * 6


def test_only_novel_classes_stay_when_all_vanish() -> None:
    made = plan(vanishing=1.0)
    for earlier, later in zip(made.windows, made.windows[1:], strict=False):
        assert later.known == earlier.novel


def test_nobody_leaves_unless_asked() -> None:
    made = plan(vanishing=0)
    for earlier, later in zip(made.windows, made.windows[1:], strict=False):
        assert later.known == earlier.classes


@pytest.mark.parametrize("vanishing", [0.05, 0.3])
def test_every_known_class_vanishes_with_the_same_probability(vanishing: float) -> None:
    n_gone, n_known = Counter[Label](), Counter[Label]()
    for seed in range(60):
        made = plan(classes=list(range(40)), n_initial=20, vanishing=vanishing, seed=seed)
        for earlier, later in zip(made.windows, made.windows[1:], strict=False):
            n_known.update(earlier.known)
            n_gone.update(set(earlier.known) - set(later.known))
    assert n_gone.total() / n_known.total() == pytest.approx(vanishing, rel=0.1)
    assert set(n_gone) == set(range(40))


def test_vanishing_changes_neither_the_order_of_classes_nor_their_arrival() -> None:
    for seed in range(10):
        plans = [plan(vanishing=vanishing, n_quiet=1, seed=seed) for vanishing in (0, 0.3, 1)]
        assert len({made.initial for made in plans}) == 1
        assert len({tuple(window.novel for window in made.windows) for made in plans}) == 1


def test_quiet_windows_are_not_always_in_one_place() -> None:
    places = {
        tuple(i for i, window in enumerate(plan(n_quiet=1, seed=seed).windows) if not window.novel)
        for seed in range(30)
    }
    assert len(places) > 2


def test_classes_of_a_window_are_known_ones_then_novel_ones() -> None:
    assert PlannedWindow(novel=("c",), known=("a", "b")).classes == ("a", "b", "c")


@pytest.mark.parametrize(
    ("n_classes", "single", "multiple", "most"),
    [(10, 5, 3, 3), (50, 30, 30, 5), (100, 50, 50, 10), (4, 2, 2, 3), (2, 2, 2, 3)],
)
def test_protocol(n_classes: int, single: int, multiple: int, most: int) -> None:
    assert paper_protocol(n_classes) == (single, multiple, most)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_initial": 1}, "n_initial is 1: give a whole number of at least 2"),
        ({"n_initial": 0}, "n_initial is 0"),
        ({"n_initial": -3}, "n_initial is -3"),
        ({"n_initial": 2.5}, "n_initial is 2.5"),
        ({"n_initial": 10}, "n_initial is 10.*of the 10 classes.*leaves at least 2"),
        ({"n_initial": 9}, "n_initial is 9.*of the 10 classes.*leaves at least 2"),
        ({"n_initial": 9, "novel_range": (1, 1), "n_quiet": -1}, "n_quiet is -1"),
        ({"n_initial": 10, "novel_range": (1, 1)}, "n_initial is 10.*leaves at least 1"),
        ({"vanishing": -0.1}, "vanishing is -0.1: give a number from 0 to 1"),
        ({"vanishing": 2}, "vanishing is 2: give a number from 0 to 1"),
        ({"vanishing": "often"}, "vanishing is 'often': give a number from 0 to 1"),
        ({"n_windows": 0}, "n_windows is 0: give a whole number of at least 1"),
        ({"n_windows": -2}, "n_windows is -2"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": None}, "seed is None"),
    ],
)
def test_plans_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfig, match=re.escape(message).replace(r"\.\*", ".*")):
        plan(**changes)
