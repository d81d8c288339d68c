"""Streams over a synthetic data set in which every instance has a value of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cilf.core import Label, Window
from cilf.core.types import Array
from cilf.data import Dataset, Split, load_dataset
from cilf.errors import BadConfig, BadInput
from cilf.stream import Stream, multiple_novel, single_novel

PER_CLASS, PER_CLASS_TEST = 60, 9
steady = settings(max_examples=40, deadline=None, derandomize=True, database=None)
SIZES = [
    "initial_size", "window_size", "holdout_size", "n_windows", "max_initial_size",
    "min_window_size", "max_window_size",
]  # fmt: skip
SCENARIOS = pytest.mark.parametrize("make", [single_novel, multiple_novel])


def numbered(classes: list[Label], per_class: int = PER_CLASS) -> Dataset:
    """Instance i holds the number i; the test split goes on counting where training ends."""
    y_train, y_test = np.repeat(classes, per_class), np.repeat(classes, PER_CLASS_TEST)
    values = np.arange(len(y_train) + len(y_test), dtype=np.float32)[:, None]
    split = len(y_train)
    return Dataset.from_arrays("numbered", values[:split], y_train, values[split:], y_test)


INTS = numbered([3, 1, 4, 15, 9, 2, 6, 5, 35, 8])
STRINGS = numbered(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"])


@dataclass(frozen=True)
class Case:
    """A stream and what made it; shown without its arrays."""

    make: Callable[..., Stream]
    parameters: dict[str, Any]
    dataset: Dataset = field(repr=False)

    @property
    def stream(self) -> Stream:
        return self.make(self.dataset, **self.parameters)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    parameters: dict[str, Any] = {
        "seed": draw(st.integers(0, 10_000)),
        "n_initial": draw(st.none() | st.integers(2, 5)),
        "initial_size": draw(st.none() | st.integers(1, 20)),
        "novel_size": draw(st.sampled_from([None, 1, 9, 30, 0.2, 0.4])),
        "window_size": draw(st.none() | st.integers(1, 4)),
        "holdout_size": draw(st.none() | st.integers(1, PER_CLASS_TEST)),
        "n_windows": draw(st.none() | st.integers(1, 4)),
        "n_quiet": draw(st.integers(0, 3)),
        "vanishing": draw(st.sampled_from([0.0, 0.1, 0.5])),
        "imbalance": draw(st.sampled_from([1.0, 2.0, 10.0])),
    }
    make = draw(st.sampled_from([single_novel, multiple_novel]))
    if make is multiple_novel:
        parameters["max_novel"] = draw(st.none() | st.integers(2, 4))
    return Case(make, parameters, draw(st.sampled_from([INTS, STRINGS])))


def values(X: Array) -> list[float]:
    flat: list[float] = X[:, 0].tolist()
    return flat


def everything(stream: Stream) -> list[Any]:
    """All that a stream hands out, as something that compares."""
    windows = [
        (w.index, w.X.tolist(), w.y.tolist(), w.novel, w.known, w.ids.tolist()) for w in stream
    ]
    return [*(part.tolist() for part in (*stream.initial, *stream.holdout)), windows]


# ----------------------------------------------------------------- what holds for every stream


@steady
@given(cases())
def test_an_instance_is_used_at_most_once(case: Case) -> None:
    stream = case.stream
    used = values(stream.initial.X)
    for window in stream:
        used += values(window.X)
    assert len(set(used)) == len(used)
    assert not set(used) & set(values(stream.holdout.X))
    ids = [identity for window in stream for identity in window.ids.tolist()]
    assert len(set(ids)) == len(ids)


@steady
@given(cases())
def test_instances_keep_their_labels_and_identities(case: Case) -> None:
    stream = case.stream
    train, test = case.dataset.train, case.dataset.test
    truth = dict(zip(values(train.X) + values(test.X), [*train.y, *test.y], strict=True))
    for X, y in (stream.initial, stream.holdout, *((w.X, w.y) for w in stream)):
        assert [truth[value] for value in values(X)] == y.tolist()
    for window in stream:
        assert window.ids.tolist() == [f"train/{value:.0f}" for value in values(window.X)]


@steady
@given(cases())
def test_a_window_holds_its_known_and_novel_classes_and_no_other(case: Case) -> None:
    stream = case.stream
    assert set(stream.initial.y.tolist()) == set(stream.plan.initial)
    for window in stream:
        assert set(window.y.tolist()) == set(window.known) | set(window.novel)
        assert not set(window.known) & set(window.novel)


@steady
@given(cases())
def test_vanished_classes_never_come_back(case: Case) -> None:
    stream = case.stream
    around, gone = set(stream.initial.y.tolist()), set[Label]()
    for window in stream:
        here = set(window.y.tolist())
        assert not here & gone
        gone |= around - here
        around = here


@steady
@given(cases())
def test_novel_is_what_no_earlier_window_held(case: Case) -> None:
    stream = case.stream
    seen = set(stream.initial.y.tolist())
    for window in stream:
        here = set(window.y.tolist())
        assert set(window.novel) == here - seen
        seen |= here


@steady
@given(cases())
def test_sizes_are_those_asked_for(case: Case) -> None:
    parameters, stream = case.parameters, case.stream
    size = parameters["initial_size"] or int(0.4 * PER_CLASS)
    assert sizes_by_class(stream.initial.y) == dict.fromkeys(stream.plan.initial, size)
    kept = parameters["holdout_size"] or PER_CLASS_TEST
    classes = case.dataset.classes
    assert sizes_by_class(stream.holdout.y) == dict.fromkeys(classes, kept)
    if parameters["imbalance"] == 1:
        for window in stream:
            counts = sizes_by_class(window.y)
            (full,) = {counts[label] for label in window.known}
            even = 0.6 * PER_CLASS / len(stream)  # rounded down, by floating point even if whole
            size = parameters["window_size"]
            assert full == size if size else even - 1 <= full <= even
            novel = parameters["novel_size"] or full
            novel = novel if novel >= 1 else int(novel * PER_CLASS)
            assert {counts[label] for label in window.novel} <= {novel}


@settings(steady, max_examples=15)
@given(cases())
def test_the_seed_decides(case: Case) -> None:
    stream = case.stream
    assert everything(case.stream) == everything(stream)
    assert everything(stream) == everything(stream)  # iterating does not use it up


def sizes_by_class(y: Array) -> dict[Label, int]:
    classes, counts = np.unique(y, return_counts=True)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


# ----------------------------------------------------------------- scenarios


@SCENARIOS
def test_other_seeds_give_other_streams(make: Callable[..., Stream]) -> None:
    made = [make(INTS, seed=seed) for seed in range(6)]
    assert len({tuple(sorted(values(stream.initial.X))) for stream in made}) == 6
    assert len({tuple(values(stream.window(1).X)) for stream in made}) == 6
    assert len({stream.plan.initial for stream in made}) == 6


@SCENARIOS
def test_other_seeds_draw_other_instances_of_the_same_class(make: Callable[..., Stream]) -> None:
    drawn = []
    for seed in range(12):
        X, y = make(INTS, seed=seed, initial_size=10).initial
        if 4 in y:
            drawn.append(tuple(sorted(values(X[y == 4]))))
    assert len(set(drawn)) == len(drawn) > 1


@pytest.mark.parametrize("n_quiet", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_single_has_one_novel_class_in_each_window_that_is_not_quiet(
    seed: int, n_quiet: int
) -> None:
    stream = single_novel(INTS, seed=seed, n_quiet=n_quiet)
    assert sorted(len(window.novel) for window in stream) == [0] * n_quiet + [1] * 5


@pytest.mark.parametrize("max_novel", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_multiple_has_two_to_max_novel_classes(seed: int, max_novel: int) -> None:
    stream = multiple_novel(INTS, seed=seed, max_novel=max_novel, n_initial=2, n_quiet=2)
    counts = [len(window.novel) for window in stream]
    assert counts.count(0) == 2
    assert all(2 <= count <= max_novel for count in counts if count)
    assert sum(counts) == 8


def test_multiple_uses_all_of_its_range() -> None:
    made = [multiple_novel(INTS, seed=seed, max_novel=4, n_initial=2) for seed in range(20)]
    assert {len(window.novel) for stream in made for window in stream} == {2, 3, 4}


@SCENARIOS
def test_defaults_are_the_papers_on_ten_classes(make: Callable[..., Stream]) -> None:
    stream = make(load_dataset("digits"), seed=3)
    assert stream.name == f"digits-{make.__name__.removesuffix('_novel')}"
    assert len(stream.plan.initial) == {single_novel: 5, multiple_novel: 3}[make]
    assert len(stream.plan.arrivals) == 10
    assert len(stream.holdout.y) == 360


@pytest.mark.parametrize("imbalance", [1.0, 2.0, 5.0, 20.0])
@SCENARIOS
def test_imbalance_is_the_largest_over_the_smallest_class(
    make: Callable[..., Stream], imbalance: float
) -> None:
    dataset = numbered([1, 2, 3, 4, 5, 6], per_class=300)
    stream = make(
        dataset, seed=1, n_initial=3, initial_size=20, window_size=60, imbalance=imbalance
    )
    for window in stream:
        counts = sizes_by_class(window.y).values()
        assert max(counts) == 60
        assert min(counts) == 60 / imbalance
        if imbalance > 1 and len(counts) > 2:
            assert len(set(counts)) > 2  # the sizes lie between, not only at the ends


def test_the_same_class_is_not_the_largest_in_every_window() -> None:
    stream = single_novel(INTS, seed=0, window_size=8, initial_size=10, imbalance=8, vanishing=0)
    assert len({max(w.known, key=sizes_by_class(w.y).__getitem__) for w in stream}) > 1


def test_even_the_smallest_class_has_an_instance() -> None:
    stream = single_novel(INTS, seed=0, window_size=2, imbalance=1000)
    for window in stream:
        assert set(window.y.tolist()) == set(window.known) | set(window.novel)


def test_string_labels_stay_strings() -> None:
    stream = multiple_novel(STRINGS, seed=5)
    assert stream.initial.y.dtype.kind == "U"
    for window in stream:
        assert all(type(label) is str for label in (*window.novel, *window.known))
        assert window.y.dtype.kind == "U"


def test_int_labels_are_python_ints_in_the_plan() -> None:
    assert all(type(label) is int for label in single_novel(INTS).plan.arrivals)


# ----------------------------------------------------------------- used-up classes


@SCENARIOS
@pytest.mark.parametrize("novel_size", [None, 25, 0.5])
def test_a_class_stays_until_it_is_used_up(
    make: Callable[..., Stream], novel_size: float | None
) -> None:
    stream = make(
        INTS, seed=2, n_initial=4, initial_size=20, novel_size=novel_size, window_size=12,
        vanishing=0,
    )  # fmt: skip
    started = {None: 12, 25: 25, 0.5: 30}[novel_size]
    for label, arrival in stream.plan.arrivals.items():
        n_known = (PER_CLASS - (started if arrival else 20)) // 12
        last = min(arrival + n_known, len(stream))
        known = [index for index, w in zip(stream.indices, stream, strict=True) if label in w.known]
        assert known == list(range(arrival + 1, last + 1))


def test_classes_of_other_sizes_are_used_up_at_other_times() -> None:
    y = np.repeat(list(range(8)), [10, 20, 40, 40, 40, 40, 40, 40])
    X = np.zeros((len(y), 1))
    dataset = Dataset.from_arrays("uneven", X, y, X[:1], y[:1])
    for seed in range(8):
        stream = single_novel(
            dataset, seed=seed, n_initial=3, initial_size=5, window_size=5, vanishing=0
        )
        for label in set(stream.plan.initial) & {0, 1}:
            assert [label in window.known for window in stream] == [
                index <= {0: 1, 1: 3}[label] for index in stream.indices
            ]


def test_a_window_needs_known_classes_that_are_not_used_up() -> None:
    with pytest.raises(BadConfig, match=r"window 4 has .* left, 0 instead of 2: lower .*n_windows"):
        single_novel(INTS, seed=0, n_initial=9, n_quiet=9, window_size=12, vanishing=0)


# ----------------------------------------------------------------- some of the classes


def drawn(n_drawn: int | None) -> Dataset:
    return replace(INTS, n_drawn=n_drawn)


def classes_of(stream: Stream) -> set[Label]:
    return set(stream.plan.arrivals)


@SCENARIOS
def test_a_stream_takes_as_many_classes_as_are_drawn(make: Callable[..., Stream]) -> None:
    for seed in range(5):
        stream = make(drawn(6), seed=seed)
        assert len(classes_of(stream)) == 6
        assert set(stream.holdout.y.tolist()) == classes_of(stream)
        for window in stream:
            assert set(window.y.tolist()) <= classes_of(stream)


@SCENARIOS
def test_the_seed_draws_the_classes(make: Callable[..., Stream]) -> None:
    chosen = [classes_of(make(drawn(6), seed=seed)) for seed in range(8)]
    assert chosen == [classes_of(make(drawn(6), seed=seed)) for seed in range(8)]
    assert len({frozenset(classes) for classes in chosen}) > 4
    assert set.union(*chosen) == set(INTS.classes)  # none is left out for ever


def test_both_scenarios_draw_the_same_classes_whatever_their_sizes() -> None:
    for seed in range(5):
        wanted = classes_of(single_novel(drawn(6), seed=seed))
        assert classes_of(multiple_novel(drawn(6), seed=seed, initial_size=5)) == wanted


@SCENARIOS
def test_defaults_depend_on_the_classes_drawn(make: Callable[..., Stream]) -> None:
    wanted = make(numbered(list(range(4))), seed=0)
    stream = make(drawn(4), seed=0)
    assert len(stream.plan.initial) == len(wanted.plan.initial) == 2


@SCENARIOS
def test_drawing_all_classes_is_drawing_none(make: Callable[..., Stream]) -> None:
    assert everything(make(drawn(10), seed=3)) == everything(make(INTS, seed=3))


@SCENARIOS
@pytest.mark.parametrize("n_drawn", [1, 0, -3, 2.5, 11])
def test_as_many_classes_as_there_are_can_be_drawn(
    make: Callable[..., Stream], n_drawn: Any
) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"n_drawn is {n_drawn!r}: ")):
        make(drawn(n_drawn))


def test_drawing_copies_no_instances() -> None:
    dataset = drawn(6)
    assert single_novel(dataset)._dataset.train.X is INTS.train.X


# ----------------------------------------------------------------- bounds, counts, texts


@SCENARIOS
@pytest.mark.parametrize(
    ("bounds", "initial", "window"),
    [
        ({}, 24, 36), ({"max_initial_size": 10}, 10, 36), ({"max_window_size": 5}, 24, 5),
        ({"max_initial_size": 100, "max_window_size": 100}, 24, 36),
        ({"max_initial_size": 10, "initial_size": 20}, 20, 36),
        ({"max_window_size": 5, "window_size": 6}, 24, 6),
        ({"min_window_size": 20}, 24, 36), ({"min_window_size": 36}, 24, 36),
    ],
)  # fmt: skip
def test_bounds_hold_for_shares_and_not_for_sizes(
    make: Callable[..., Stream], bounds: dict[str, int], initial: int, window: int
) -> None:
    stream = make(INTS, seed=0, n_windows=1, **bounds)
    assert set(sizes_by_class(stream.initial.y).values()) == {initial}
    assert set(sizes_by_class(stream.window(1).y).values()) == {window}


@SCENARIOS
@pytest.mark.parametrize(("bounds", "size"), [((9, 30), 9), ((1, 5), 5), ((2, 30), 6)])
def test_an_even_share_stays_within_its_bounds(
    make: Callable[..., Stream], bounds: tuple[int, int], size: int
) -> None:
    least, most = bounds
    stream = make(
        numbered(list(range(9)), per_class=50), n_windows=5, n_quiet=5, initial_size=2,
        min_window_size=least, max_window_size=most,
    )  # fmt: skip
    assert len(stream) == 5
    assert {n for w in stream for n in sizes_by_class(w.y).values()} == {size}


@SCENARIOS
def test_a_bound_concerns_each_class_by_itself(make: Callable[..., Stream]) -> None:
    y = np.repeat([1, 2, 3, 4], [10, 20, 40, 80])
    X = np.zeros((len(y), 1))
    dataset = Dataset.from_arrays("uneven", X, y, X[:1], y[:1])
    for seed in range(6):
        counts = make(dataset, seed=seed, max_initial_size=15).counts(0)
        assert counts == {label: {1: 4, 2: 8, 3: 15, 4: 15}[label] for label in counts}


@steady
@given(cases())
def test_counts_are_those_of_the_labels(case: Case) -> None:
    stream = case.stream
    assert stream.counts(0) == sizes_by_class(stream.initial.y)
    assert list(stream.counts(0)) == list(stream.plan.initial)
    for window in stream:
        assert stream.counts(window.index) == sizes_by_class(window.y)
        assert list(stream.counts(window.index)) == [*window.known, *window.novel]


@pytest.mark.parametrize("index", [-1, 6])
def test_counts_of_no_window_are_refused(index: int) -> None:
    with pytest.raises(BadConfig, match=f"index is {index}: .* 0 to 5"):
        single_novel(INTS).counts(index)


@SCENARIOS
def test_instances_may_be_texts(make: Callable[..., Stream]) -> None:
    dataset = replace(INTS, train=_as_texts(INTS.train), test=_as_texts(INTS.test))
    stream, numbers = make(dataset, seed=2), make(INTS, seed=2)
    assert stream.initial.X.tolist() == [f"text {v:.0f}" for v in values(numbers.initial.X)]
    assert stream.holdout.X.tolist() == [f"text {v:.0f}" for v in values(numbers.holdout.X)]
    for window, same in zip(stream, numbers, strict=True):
        assert window.X.tolist() == [f"text {value:.0f}" for value in values(same.X)]
        assert window.X.dtype == object


def _as_texts(split: Split) -> Split:
    return replace(split, X=np.array([f"text {v:.0f}" for v in values(split.X)], dtype=object))


# ----------------------------------------------------------------- windows


def test_windows_count_from_one() -> None:
    stream = single_novel(INTS, seed=0)
    assert [window.index for window in stream] == list(range(1, len(stream) + 1))
    third: Window = stream.window(3)
    assert third.index == 3
    assert third.X.tolist() == list(stream)[2].X.tolist()


@pytest.mark.parametrize("index", [0, -1, 6])
def test_a_window_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(BadConfig, match=f"index is {index}: .* 1 to 5"):
        single_novel(INTS).window(index)


def test_instances_are_shuffled_within_a_window() -> None:
    y = single_novel(INTS, seed=0).window(1).y
    n_runs = 1 + int((y[1:] != y[:-1]).sum())
    assert n_runs > 2 * len(np.unique(y))


def test_changing_what_was_handed_out_changes_neither_stream_nor_data() -> None:
    stream = single_novel(INTS, seed=0)
    before = everything(stream)[-1]
    source = INTS.train.X.copy()
    stream.window(1).X[:] = -1
    stream.initial.X[:] = -1
    assert everything(stream)[-1] == before
    assert np.array_equal(INTS.train.X, source)


# ----------------------------------------------------------------- refusals


@SCENARIOS
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_sizes_have_to_be_positive(make: Callable[..., Stream], name: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"{name} is {value!r}: give a whole number")):
        make(INTS, **{name: value})


@SCENARIOS
@pytest.mark.parametrize("name", ["n_quiet", "seed"])
@pytest.mark.parametrize("value", [-1, 0.5])
def test_counts_may_not_be_negative(make: Callable[..., Stream], name: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"{name} is {value!r}: give a whole number")):
        make(INTS, **{name: value})


@SCENARIOS
@pytest.mark.parametrize("value", [0.5, 0, -1, float("nan"), float("inf"), "2"])
def test_imbalance_is_at_least_one(make: Callable[..., Stream], value: Any) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"imbalance is {value!r}: give a number from 1")):
        make(INTS, imbalance=value)


@SCENARIOS
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "never"])
def test_vanishing_is_a_probability(make: Callable[..., Stream], value: Any) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"vanishing is {value!r}: give a number from 0")):
        make(INTS, vanishing=value)


@SCENARIOS
@pytest.mark.parametrize("value", [0, -1, 0.0, -0.2, 1.0, 1.5, float("nan"), True, "0.4"])
def test_a_novel_size_is_a_number_or_a_share(make: Callable[..., Stream], value: Any) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"novel_size is {value!r}: give a whole number")):
        make(INTS, novel_size=value)


@SCENARIOS
def test_a_lower_bound_is_at_most_the_upper_one(make: Callable[..., Stream]) -> None:
    with pytest.raises(BadConfig, match="min_window_size is 6: give at most the max_window_size"):
        make(INTS, min_window_size=6, max_window_size=5)


@pytest.mark.parametrize("value", [1, 0, -2, 2.5])
def test_max_novel_is_at_least_two(value: Any) -> None:
    with pytest.raises(BadConfig, match=re.escape(f"max_novel is {value!r}")):
        multiple_novel(INTS, max_novel=value)


@SCENARIOS
@pytest.mark.parametrize(
    ("sizes", "remedy"),
    [
        ({"initial_size": 61}, "lower initial_size"),
        ({"novel_size": 61}, "lower novel_size or window_size"),
        ({"initial_size": 1, "window_size": 59, "novel_size": 61}, "lower novel_size"),
    ],
)
def test_sizes_beyond_the_data_are_refused(
    make: Callable[..., Stream], sizes: dict[str, int], remedy: str
) -> None:
    with pytest.raises(BadConfig, match=f"has 60 training instances, fewer than the 61 .*{remedy}"):
        make(INTS, **sizes)


@SCENARIOS
def test_a_window_without_known_classes_is_refused(make: Callable[..., Stream]) -> None:
    for sizes in ({"window_size": 37}, {"min_window_size": 37}):
        with pytest.raises(BadConfig, match=r"window 1 has too few .* left, 0 instead of 2: lower"):
            make(INTS, **sizes)


@SCENARIOS
@pytest.mark.parametrize("n_initial", [-1, 0, 1, 10, 11])
def test_initial_classes_leave_some_to_come(make: Callable[..., Stream], n_initial: int) -> None:
    with pytest.raises(BadConfig, match=f"n_initial is {n_initial}"):
        make(INTS, n_initial=n_initial)


def test_multiple_needs_two_classes_to_come() -> None:
    with pytest.raises(BadConfig, match=r"n_initial is 9.*leaves at least 2 to come"):
        multiple_novel(INTS, n_initial=9)
    assert len(single_novel(INTS, n_initial=9)) == 1


@pytest.mark.parametrize("make", [single_novel, multiple_novel])
def test_the_name_of_a_data_set_is_not_a_data_set(make: Callable[..., Stream]) -> None:
    with pytest.raises(BadInput, match="dataset is 'digits': give a Dataset"):
        make("digits")


@pytest.mark.parametrize(
    ("make", "n_classes", "message"),
    [
        (single_novel, 2, "few has 2 classes: this stream needs 3, 2 to start with and 1 to come"),
        (multiple_novel, 3, r"needs 4, .*with 3, let one come at a time .*--scenario single"),
    ],
)
def test_too_few_classes_are_refused_with_what_is_needed(
    make: Callable[[Dataset], Stream], n_classes: int, message: str
) -> None:
    y = np.arange(10 * n_classes) % n_classes
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    with pytest.raises(BadInput, match=message):
        make(Dataset.from_arrays("few", X, y, X, y))


@SCENARIOS
def test_labels_as_text_change_nothing_else(make: Callable[..., Stream]) -> None:
    stream = make(INTS, seed=3, n_quiet=1)
    text = stream.with_text_labels()
    assert text.plan.initial == tuple(map(str, stream.plan.initial))
    assert text.plan.arrivals == {str(c): window for c, window in stream.plan.arrivals.items()}
    for ours, theirs in zip(text, stream, strict=True):
        assert ours.y.tolist() == [str(label) for label in theirs.y.tolist()]
        assert (ours.novel, ours.known) == tuple(
            tuple(map(str, classes)) for classes in (theirs.novel, theirs.known)
        )
        assert np.array_equal(ours.X, theirs.X)
        assert ours.ids.tolist() == theirs.ids.tolist()
    for ours, theirs in ((text.initial, stream.initial), (text.holdout, stream.holdout)):
        assert ours.y.tolist() == [str(label) for label in theirs.y.tolist()]
        assert np.array_equal(ours.X, theirs.X)
    assert stream.initial.y.dtype.kind == "i"
    assert text.with_text_labels() is text
