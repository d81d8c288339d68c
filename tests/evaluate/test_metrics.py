"""Every metric against an independent implementation: scikit-learn's, or a slow direct one."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from cilf.core.types import Array, Ints
from cilf.evaluate import metrics

N_KNOWN = 3
steady = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


@st.composite
def windows(draw: st.DrawFn, max_code: int = 6) -> tuple[Ints, Ints, Ints]:
    """Truth (known 0..2, novel 3..max_code), a known label and a cluster for each instance."""
    n = draw(st.integers(1, 30))
    columns = [
        draw(st.lists(st.integers(least, most), min_size=n, max_size=n))
        for least, most in ((0, max_code), (0, N_KNOWN - 1), (-1, 4))
    ]
    truth, label, cluster = (np.array(column, dtype=np.int64) for column in columns)
    return truth, label, cluster


def predictions(window: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints]:
    truth, label, cluster = window
    matching = metrics.match_clusters(cluster, truth, N_KNOWN)
    return truth, metrics.resolve(label, cluster, matching)


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, abs_tol=1e-12)


# ----------------------------------------------------------------- matching


def shared(cluster: Ints, truth: Ints, matching: dict[int, int]) -> int:
    pairs = zip(cluster.tolist(), truth.tolist(), strict=True)
    return sum(matching.get(c) == t for c, t in pairs if c >= 0)


def best_by_brute_force(cluster: Ints, truth: Ints) -> int:
    """The most novel instances any one-to-one assignment puts into the cluster of their class."""
    clusters = sorted(set(cluster[cluster >= 0].tolist()))
    classes: list[int | None] = sorted(set(truth[truth >= N_KNOWN].tolist()))
    choices = classes + [None] * len(clusters)
    totals = [
        sum(
            int(((cluster == c) & (truth == t)).sum())
            for c, t in zip(clusters, chosen, strict=True)
        )
        for chosen in set(itertools.permutations(choices, len(clusters)))
    ]
    return max(totals)


@steady
@given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(1, N_KNOWN + 2)), min_size=1, max_size=25)
)
def test_matching_is_as_good_as_the_best_of_all_assignments(pairs: list[tuple[int, int]]) -> None:
    cluster, truth = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    matching = metrics.match_clusters(cluster, truth, N_KNOWN)
    assert shared(cluster, truth, matching) == best_by_brute_force(cluster, truth)


@steady
@given(windows())
def test_matching_is_one_to_one_and_only_where_instances_are_shared(
    window: tuple[Ints, Ints, Ints],
) -> None:
    truth, _, cluster = window
    matching = metrics.match_clusters(cluster, truth, N_KNOWN)
    assert len(set(matching.values())) == len(matching)
    for found, novel_class in matching.items():
        assert found >= 0
        assert novel_class >= N_KNOWN
        assert ((cluster == found) & (truth == novel_class)).any()


def test_the_largest_cluster_of_a_class_is_not_always_matched_to_it() -> None:
    # cluster 0 shares 3 with class 3 and 2 with class 4; cluster 1 shares 2 with class 3 only
    cluster = ints(0, 0, 0, 0, 0, 1, 1)
    truth = ints(3, 3, 3, 4, 4, 3, 3)
    assert metrics.match_clusters(cluster, truth, N_KNOWN) == {0: 4, 1: 3}


@pytest.mark.parametrize(
    ("cluster", "truth"),
    [
        pytest.param(ints(-1, -1), ints(3, 4), id="no cluster found"),
        pytest.param(ints(0, 1), ints(0, 1), id="no novel class"),
        pytest.param(ints(0, -1), ints(1, 3), id="clusters of known instances only"),
        pytest.param(ints(), ints(), id="no instance"),
    ],
)
def test_nothing_to_match(cluster: Ints, truth: Ints) -> None:
    assert metrics.match_clusters(cluster, truth, N_KNOWN) == {}


def test_spare_clusters_stay_unmatched_and_are_wrong() -> None:
    cluster, truth = ints(0, 0, 1, 2, -1), ints(3, 3, 3, 0, 1)
    matching = metrics.match_clusters(cluster, truth, N_KNOWN)
    assert matching == {0: 3}
    predicted = metrics.resolve(ints(0, 0, 0, 0, 1), cluster, matching)
    assert predicted.tolist() == [3, 3, metrics.WRONG, metrics.WRONG, 1]


@steady
@given(windows())
def test_resolve_equals_instance_by_instance(window: tuple[Ints, Ints, Ints]) -> None:
    truth, label, cluster = window
    matching = metrics.match_clusters(cluster, truth, N_KNOWN)
    expected = [
        known if found == -1 else matching.get(found, -1)
        for known, found in zip(label.tolist(), cluster.tolist(), strict=True)
    ]
    before = label.copy()
    assert metrics.resolve(label, cluster, matching).tolist() == expected
    assert (label == before).all()


# ----------------------------------------------------------------- accuracy


@steady
@given(windows())
def test_accuracies_equal_scikit_learn_on_each_side(window: tuple[Ints, Ints, Ints]) -> None:
    truth, predicted = predictions(window)
    sides = {
        side: accuracy_score(truth[rows], predicted[rows]) if rows.any() else math.nan
        for side, rows in (("known", truth < N_KNOWN), ("novel", truth >= N_KNOWN))
    }
    assert same(metrics.known_accuracy(truth, predicted, N_KNOWN), sides["known"])
    assert same(metrics.novel_accuracy(truth, predicted, N_KNOWN), sides["novel"])
    half = 0.5 * (sides["known"] + sides["novel"])
    assert same(metrics.normalized_accuracy(truth, predicted, N_KNOWN), half)


@pytest.mark.parametrize(
    ("truth", "known", "novel"),
    [
        pytest.param(ints(0, 1), 0.5, math.nan, id="no novel"),
        pytest.param(ints(3, 4), math.nan, 0.0, id="all novel"),
    ],
)
def test_normalized_accuracy_needs_both_sides(truth: Ints, known: float, novel: float) -> None:
    predicted = ints(0, 2)
    assert same(metrics.known_accuracy(truth, predicted, N_KNOWN), known)
    assert same(metrics.novel_accuracy(truth, predicted, N_KNOWN), novel)
    assert math.isnan(metrics.normalized_accuracy(truth, predicted, N_KNOWN))


# ----------------------------------------------------------------- F


@steady
@given(windows())
def test_f_equals_scikit_learn_over_the_classes_present(window: tuple[Ints, Ints, Ints]) -> None:
    truth, predicted = predictions(window)
    for average, ours in (("macro", metrics.macro_f), ("micro", metrics.micro_f)):
        expected = f1_score(
            truth, predicted, labels=np.unique(truth), average=average, zero_division=0
        )
        assert same(ours(truth, predicted), expected)


def open_f_by_hand(truth: Ints, predicted: Ints) -> tuple[float, float]:
    """Open-set macro and micro F by counting instance by instance."""
    pairs = list(zip(truth.tolist(), predicted.tolist(), strict=True))
    precisions, recalls = [], []
    tp_all = fp_all = fn_all = 0
    for known in sorted({t for t, _ in pairs if t < N_KNOWN}):
        tp = fp = fn = 0
        for t, p in pairs:
            tp += t == known and p == known
            fp += t != known and p == known
            fn += t == known and p != known
        precisions.append(tp / (tp + fp) if tp + fp else 0.0)
        recalls.append(tp / (tp + fn))
        tp_all, fp_all, fn_all = tp_all + tp, fp_all + fp, fn_all + fn
    if not recalls:
        return math.nan, math.nan

    def f(precision: float, recall: float) -> float:
        both = precision + recall
        return 2 * precision * recall / both if both else 0.0

    macro = f(sum(precisions) / len(precisions), sum(recalls) / len(recalls))
    precision = tp_all / (tp_all + fp_all) if tp_all + fp_all else 0.0
    return macro, f(precision, tp_all / (tp_all + fn_all))


@steady
@given(windows())
def test_open_f_equals_counting_by_hand(window: tuple[Ints, Ints, Ints]) -> None:
    truth, predicted = predictions(window)
    macro, micro = open_f_by_hand(truth, predicted)
    assert same(metrics.open_macro_f(truth, predicted, N_KNOWN), macro)
    assert same(metrics.open_micro_f(truth, predicted, N_KNOWN), micro)


@steady
@given(windows())
def test_open_micro_f_is_scikit_learns_over_known_labels(window: tuple[Ints, Ints, Ints]) -> None:
    truth, predicted = predictions(window)
    known = np.unique(truth[truth < N_KNOWN])
    if len(known):
        expected = f1_score(truth, predicted, labels=known, average="micro", zero_division=0)
        assert same(metrics.open_micro_f(truth, predicted, N_KNOWN), expected)


def test_open_macro_f_is_of_mean_precision_and_recall() -> None:
    truth, predicted = ints(0, 0, 1), ints(0, 1, 1)
    assert metrics.open_macro_f(truth, predicted, N_KNOWN) == 0.75  # both are 3/4 in the mean
    assert same(metrics.macro_f(truth, predicted), 2 / 3)  # the F of each class is 2/3


def test_novel_called_known_and_known_called_novel_both_lower_open_f() -> None:
    truth = ints(0, 1, 3)
    perfect, false_known, missed = ints(0, 1, 3), ints(0, 1, 0), ints(0, 3, 3)
    for score in (metrics.open_macro_f, metrics.open_micro_f):
        assert score(truth, perfect, N_KNOWN) == 1.0
        assert score(truth, false_known, N_KNOWN) < 1.0
        assert score(truth, missed, N_KNOWN) < 1.0


def test_f_of_always_wrong_is_zero_and_of_nothing_is_undefined() -> None:
    truth, wrong = ints(0, 1, 3), ints(-1, -1, -1)
    assert metrics.macro_f(truth, wrong) == metrics.micro_f(truth, wrong) == 0.0
    assert metrics.open_macro_f(truth, wrong, N_KNOWN) == 0.0
    assert metrics.open_micro_f(truth, wrong, N_KNOWN) == 0.0
    assert math.isnan(metrics.macro_f(ints(), ints()))
    assert math.isnan(metrics.micro_f(ints(), ints()))
    all_novel = ints(3, 4)
    assert math.isnan(metrics.open_macro_f(all_novel, all_novel, N_KNOWN))
    assert math.isnan(metrics.open_micro_f(all_novel, all_novel, N_KNOWN))


# ----------------------------------------------------------------- known against novel


def scored(seed: int, levels: int) -> tuple[Array, Ints]:
    """Novelty with ties (few levels) and truth that holds known and novel classes."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([[0, 3], rng.integers(0, 6, size=60)])
    return (rng.integers(levels, size=len(truth)) / levels).astype(np.float32), truth


@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_auroc_equals_scikit_learn(seed: int, levels: int) -> None:
    novelty, truth = scored(seed, levels)
    is_novel = truth >= N_KNOWN
    assert same(metrics.auroc(novelty, is_novel), roc_auc_score(is_novel, novelty))


@pytest.mark.parametrize("seed", range(5))
def test_known_auroc_weighs_every_known_class_the_same(seed: int) -> None:
    novelty, truth = scored(seed, levels=7)
    novel = novelty[truth >= N_KNOWN]
    by_class = []
    for known in sorted(set(truth[truth < N_KNOWN].tolist())):
        wins = [
            1.0 if high > low else 0.5 if high == low else 0.0
            for high, low in itertools.product(novel, novelty[truth == known])
        ]
        by_class.append(sum(wins) / len(wins))
    assert same(metrics.known_auroc(novelty, truth, N_KNOWN), sum(by_class) / len(by_class))


def test_auroc_ends_and_middle() -> None:
    is_novel = np.array([False, False, True, True])
    assert metrics.auroc(np.array([0.1, 0.2, 0.3, 0.4]), is_novel) == 1.0
    assert metrics.auroc(np.array([0.4, 0.3, 0.2, 0.1]), is_novel) == 0.0
    assert metrics.auroc(np.zeros(4), is_novel) == 0.5


@pytest.mark.parametrize("truth", [ints(0, 1), ints(3, 4), ints()])
def test_auroc_of_one_side_is_undefined(truth: Ints) -> None:
    novelty = np.linspace(0, 1, len(truth))
    assert math.isnan(metrics.auroc(novelty, truth >= N_KNOWN))
    assert math.isnan(metrics.known_auroc(novelty, truth, N_KNOWN))


@steady
@given(windows())
def test_missed_and_false_novel_equal_counting(window: tuple[Ints, Ints, Ints]) -> None:
    truth, _, cluster = window
    pairs = list(zip(truth.tolist(), cluster.tolist(), strict=True))
    novel = [c == -1 for t, c in pairs if t >= N_KNOWN]
    known = [c != -1 for t, c in pairs if t < N_KNOWN]
    missed = sum(novel) / len(novel) if novel else math.nan
    false = sum(known) / len(known) if known else math.nan
    assert same(metrics.missed_novel(truth, cluster, N_KNOWN), missed)
    assert same(metrics.false_novel(truth, cluster, N_KNOWN), false)


def test_missed_and_false_novel_where_undefined() -> None:
    known_only, novel_only, cluster = ints(0, 1), ints(3, 4), ints(-1, 0)
    assert math.isnan(metrics.missed_novel(known_only, cluster, N_KNOWN))
    assert metrics.false_novel(known_only, cluster, N_KNOWN) == 0.5
    assert metrics.missed_novel(novel_only, cluster, N_KNOWN) == 0.5
    assert math.isnan(metrics.false_novel(novel_only, cluster, N_KNOWN))


# ----------------------------------------------------------------- forgetting

ARRIVALS = {"ant": 0, "bee": 0, "cat": 1, "dog": 3}


@pytest.mark.parametrize("window", range(4))
def test_group_accuracy_equals_scikit_learn_on_each_group(window: int) -> None:
    rng = np.random.default_rng(window)
    y, predicted = rng.choice([*ARRIVALS, "eel"], size=(2, 200))
    expected = {}
    for group in sorted(set(ARRIVALS.values())):
        rows = np.isin(y, [label for label, arrival in ARRIVALS.items() if arrival == group])
        if group <= window:
            expected[group] = accuracy_score(y[rows], predicted[rows])
    assert metrics.group_accuracy(y, predicted, ARRIVALS, window) == pytest.approx(expected)
    assert set(expected) == {g for g in (0, 1, 3) if g <= window}


def test_group_accuracy_of_int_labels_leaves_out_what_is_not_there() -> None:
    y, predicted = ints(7, 7, 9), ints(7, 9, 9)
    assert metrics.group_accuracy(y, predicted, {7: 0, 8: 1, 9: 2}, window=2) == {0: 0.5, 2: 1.0}
    assert metrics.group_accuracy(y, predicted, {7: 2, 9: 3}, window=1) == {}


accuracies = st.floats(0.01, 1.0)


def course(numbers: Sequence[float], n_updates: int) -> list[dict[int, float]]:
    """Group g is there from update g on."""
    values = itertools.cycle(numbers)
    return [{group: next(values) for group in range(m + 1)} for m in range(n_updates)]


@steady
@given(
    st.lists(accuracies, min_size=1, max_size=12),
    st.lists(accuracies, min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_forgetting_equals_the_double_loop(
    ours: list[float], theirs: list[float], n_updates: int
) -> None:
    holdout, joint = course(ours, n_updates), course(theirs, n_updates)
    totals = []
    for records in (holdout, joint):
        total = 0.0
        for record in records:
            total += sum(record.values()) / len(record)
        totals.append(total / n_updates)
    expected = (totals[1] - totals[0]) / totals[1]
    assert same(metrics.forgetting(holdout, joint), expected)
    assert metrics.forgetting(joint, joint) == 0.0


@steady
@given(st.lists(accuracies, min_size=1, max_size=12), st.integers(1, 5))
def test_forgetting_from_best_equals_the_double_loop(values: list[float], n_updates: int) -> None:
    holdout = course(values, n_updates)
    drops = []
    for group in range(n_updates):
        best = last = -1.0
        for record in holdout:
            if group in record:
                best, last = max(best, record[group]), record[group]
        drops.append(best - last)
    assert same(metrics.forgetting_from_best(holdout), sum(drops) / len(drops))


def test_forgetting_weighs_updates_not_groups() -> None:
    holdout = [{0: 1.0}, {0: 0.0, 1: 0.0}]
    joint = [{0: 1.0}, {0: 1.0, 1: 1.0}]
    assert metrics.forgetting(holdout, joint) == 0.5  # weighing groups, it would be 2/3


def test_better_than_joint_is_negative_forgetting() -> None:
    assert metrics.forgetting([{0: 1.0}], [{0: 0.5}]) == -1.0


def test_forgetting_where_undefined() -> None:
    assert math.isnan(metrics.forgetting([], []))
    assert math.isnan(metrics.forgetting([], [{0: 0.5}]))
    assert math.isnan(metrics.forgetting([{0: 0.5}], [{0: 0.0}]))
    assert math.isnan(metrics.forgetting_from_best([]))


def test_a_group_that_only_improved_is_not_forgotten() -> None:
    assert metrics.forgetting_from_best([{0: 0.25}, {0: 0.5, 2: 0.5}]) == 0.0


def test_mean_of_nothing_is_undefined() -> None:
    assert math.isnan(metrics.mean([]))
    assert math.isnan(metrics.mean([math.nan]))


def test_classes_that_are_yet_to_come_have_no_group() -> None:
    y = np.array([3, 3, 1, 7, 9])
    assert metrics.group_sizes(y, {3: 0, 1: 0, 7: 2, 9: 3}, window=2) == {0: 2, 2: 1}
    assert math.isnan(metrics.mean_over_classes({}, {0: 2}))


@pytest.mark.parametrize("seed", range(5))
def test_h_is_the_harmonic_mean_of_the_two_accuracies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, 5, 60), rng.integers(0, 5, 60)
    known = np.mean([p == t for t, p in zip(truth, predicted, strict=True) if t < 3])
    novel = np.mean([p == t for t, p in zip(truth, predicted, strict=True) if t >= 3])
    expected = statistics.harmonic_mean([known, novel])
    assert metrics.harmonic_accuracy(truth, predicted, 3) == pytest.approx(expected)


def test_h_is_zero_for_silence_and_undefined_without_novel_instances() -> None:
    truth = np.array([0, 1, 2, 2])
    assert metrics.harmonic_accuracy(truth, np.array([0, 1, 0, 0]), 2) == 0.0
    assert metrics.harmonic_accuracy(truth, np.full(4, metrics.WRONG), 2) == 0.0
    assert math.isnan(metrics.harmonic_accuracy(truth, truth, 3))
