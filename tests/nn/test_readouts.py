"""Readouts of known classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from cilf.nn.prototypes import class_means
from cilf.nn.readouts import (
    MAX_UNITS,
    MIN_UNITS,
    RIDGE_WEIGHT,
    SHRINKAGE,
    Discriminant,
    NearestPrototype,
    RandomRidge,
    find_scale,
    measure_accuracy,
    weigh_scores,
)

CPU = torch.device("cpu")


def draw(n: int, seed: int = 0, n_classes: int = 3) -> tuple[Tensor, Tensor]:
    """``n`` instances of each class, which differ in directions of little variance."""
    rng = torch.Generator().manual_seed(seed)
    means = 2 * torch.randn(n_classes, 6, generator=torch.Generator().manual_seed(99))
    y = torch.arange(n_classes).repeat_interleave(n)
    return means[y] + torch.randn(len(y), 6, generator=rng) * torch.linspace(0.2, 4, 6), y


def centres(x: Tensor, y: Tensor) -> Tensor:
    return class_means(x, y, int(y.max()) + 1)[0]


def start(x: Tensor) -> RandomRidge:
    return RandomRidge.start(x, np.random.default_rng(0))


def test_one_view_gives_what_shrinkage_lda_gives() -> None:
    x, y = draw(40)
    fresh, _ = draw(60, seed=1)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE).fit(x, y)
    ours = Discriminant.fit([x], y, [centres(x, y)]).score([fresh])
    assert np.array_equal(ours.argmax(1), theirs.predict(fresh))
    differences = theirs.decision_function(fresh)
    expected = differences - differences[:, :1]
    np.testing.assert_allclose(ours - ours[:, :1], expected, rtol=1e-2, atol=1e-2)


def test_a_direction_that_varies_within_classes_counts_less_than_for_prototypes() -> None:
    x, y = draw(40)
    fresh, truth = draw(200, seed=1)
    lda = Discriminant.fit([x], y, [centres(x, y)])
    nearest = NearestPrototype(centres(x, y))
    assert measure_accuracy(lda, [fresh], truth) > measure_accuracy(nearest, [fresh], truth) + 0.03


def test_the_scale_of_a_view_does_not_matter() -> None:
    x, y = draw(40)
    noise = torch.randn(len(x), 3, generator=torch.Generator().manual_seed(5))
    views, louder = [x, noise], [x, 1000 * noise]
    scores = [
        Discriminant.fit(each, y, [centres(v, y) for v in each]).score(each)
        for each in (views, louder)
    ]
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-3)


def test_without_instances_the_nearest_centre_decides() -> None:
    x, y = draw(5)
    means = centres(x, y)
    lda = Discriminant.fit([x[:0]], y[:0], [means])
    assert torch.equal(lda.score([x]).argmax(1), NearestPrototype(means).score([x]).argmax(1))


def test_ridge_is_that_of_all_instances_in_whatever_order_they_came() -> None:
    x, y = draw(30)
    together = start(x).add(x, y, 3)
    rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    apart = start(x)
    for part in torch.split(rows, 20):
        apart = apart.add(x[part], y[part], 3)
    units = together._activate(x).double()
    shrinkage = RIDGE_WEIGHT / (1 + RIDGE_WEIGHT)  # of theirs, which also scales the covariance
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(units, y)
    expected = theirs.decision_function(units) * (1 - shrinkage)
    ours = together.score([x])
    np.testing.assert_allclose(ours - ours[:, :1], expected - expected[:, :1], rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(apart.score([x]), together.score([x]), rtol=1e-4, atol=1e-4)
    assert measure_accuracy(together, [x], y) > 0.9


def test_the_random_layer_grows_with_the_first_fit() -> None:
    for n, wanted in ((10, MIN_UNITS), (400, 800), (5000, MAX_UNITS)):
        assert start(torch.randn(n, 2)).signs.shape == (2, wanted)


def test_a_new_class_leaves_the_statistics_of_the_old_ones() -> None:
    x, y = draw(30)
    old = start(x).add(x[:60], y[:60], 2)
    new = old.add(x[60:], y[60:], 3)
    assert torch.equal(new.products[:, :2], old.products)
    assert new.gram.shape == (MIN_UNITS, MIN_UNITS)


def test_ridge_does_not_favour_large_classes() -> None:
    x, y = draw(30, n_classes=2)
    rare = torch.cat([torch.arange(30), torch.arange(30, 33)])
    truth = torch.arange(2).repeat_interleave(200)
    fresh = draw(200, seed=1, n_classes=2)[0]
    labels = start(x).add(x[rare], y[rare], 2).score([fresh]).argmax(1)
    assert float((labels[truth == 1] == 1).double().mean()) > 0.8


def test_ridge_never_gives_a_class_that_it_has_not_seen() -> None:
    x, y = draw(30)
    ridge = start(x).add(x[30:], y[30:], 3)
    assert not ridge.has_all_classes
    assert bool((ridge.score([x]).argmax(1) > 0).all())
    assert ridge.add(x[:30], y[:30], 3).has_all_classes


def test_a_readout_that_is_right_outweighs_one_that_guesses() -> None:
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    right = torch.nn.functional.one_hot(y).float() + 0.5 * torch.randn(60, 3, generator=rng)
    guess = 1000 * torch.randn(60, 3, generator=rng)  # whatever the unit of its scores
    good, bad = weigh_scores([right, guess], y)
    assert good > 0
    assert good * float(right.std()) > 5 * bad * float(guess.std())


def test_weights_minimise_the_cross_entropy_with_the_prior() -> None:
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(30) % 3
    scores = [torch.randn(30, 3, generator=rng) + k * torch.eye(3)[y] for k in (1, 2)]
    units = torch.stack([score.double().std(1, correction=0).mean() for score in scores])

    def measure(weights: Tensor) -> float:
        total = sum(w * score.double() for w, score in zip(weights, scores, strict=True))
        entropy = torch.nn.functional.cross_entropy(total, y, reduction="sum")
        return float(entropy + (weights * units).log().square().sum() / 2)

    found = torch.tensor(weigh_scores(scores, y), dtype=torch.float64)
    for change in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.05), (1.0, 0.95)):
        assert measure(found) < measure(found * torch.tensor(change))


def test_without_labels_all_readouts_count_alike() -> None:
    assert weigh_scores([torch.ones(1, 2), torch.ones(1, 2)], torch.tensor([0])) == [1.0, 1.0]


def test_a_file_keeps_them_exactly_and_a_sign_in_one_bit() -> None:
    x, y = draw(30)
    ridge, lda = start(x).add(x, y, 3), Discriminant.fit([x], y, [centres(x, y)])
    assert ridge.arrays()["signs"].nbytes == MIN_UNITS  # of six rows, in one byte each
    for kept, again in (
        (ridge, RandomRidge.restore(ridge.arrays(), CPU)),
        (lda, Discriminant.restore(lda.arrays(), CPU)),
    ):
        assert torch.equal(kept.score([x]), again.score([x]))  # type: ignore[attr-defined]


def test_constant_inputs_work() -> None:
    x, y = torch.ones(6, 4), torch.tensor([0, 0, 0, 1, 1, 1])
    lda = Discriminant.fit([x], y, [centres(x, y)])
    for readout in (lda, start(x).add(x, y, 2)):
        assert bool(torch.isfinite(readout.score([x])).all())


def test_accuracy_is_the_mean_over_classes() -> None:
    readout = NearestPrototype(torch.tensor([[0.0], [1.0], [9.0]]))
    x, y = torch.tensor([[0.0], [0.1], [0.2], [0.3]]), torch.tensor([0, 0, 0, 1])
    assert measure_accuracy(readout, [x], y) == 0.5


def test_a_scale_makes_scores_probabilities() -> None:
    """The scale is that of the noise: scores are log-odds that were multiplied by something."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1.5, (4000, 3))
    p = np.exp(odds) / np.exp(odds).sum(1, keepdims=True)
    labels = torch.tensor([rng.choice(3, p=row) for row in p])
    for factor in (0.1, 1.0, 30.0):
        scale = find_scale(torch.from_numpy(odds * factor), labels)
        assert scale * factor == pytest.approx(1.0, rel=0.1)


def test_a_class_that_is_never_the_best_does_not_spoil_the_scale() -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.normal(0, 1, (50, 3)))
    scores[:, 2] = -torch.inf
    assert 0 < find_scale(scores, torch.zeros(50, dtype=torch.int64)) < np.inf


def test_ridge_bears_classes_without_any_variance() -> None:
    y = torch.arange(3).repeat_interleave(32)
    x = torch.tensor([-1.3, 0.1, 1.2])[y][:, None].expand(-1, 6)
    ridge = start(x).add(x, y, 3)
    assert measure_accuracy(ridge, [x], y) == 1.0


@pytest.mark.parametrize("n", [1, 40])  # fewer instances than dimensions, and more
def test_weights_of_lda_lie_in_memory_as_a_file_gives_them_back(n: int) -> None:
    """Else products with them are rounded otherwise, and a tie is decided otherwise."""
    x, y = draw(n)
    assert Discriminant.fit([x], y, [centres(x, y)]).weights.is_contiguous()


def test_a_ridge_without_instances_is_as_if_it_had_not_seen_them() -> None:
    x, y = draw(30)
    first, rest = torch.arange(len(y)) % 3 == 0, torch.arange(len(y)) % 3 > 0
    never = start(x).add(x[rest], y[rest], 3)
    without = start(x).add(x, y, 3).remove(x[first], y[first])
    assert torch.equal(never.counts, without.counts)
    torch.testing.assert_close(never.products, without.products, rtol=1e-4, atol=1e-2)
    torch.testing.assert_close(never.gram, without.gram, rtol=1e-4, atol=1e-2)


def test_a_ridge_forgets_a_class_wholly_if_all_of_it_is_there() -> None:
    x, y = draw(30)
    fresh, _ = draw(20, seed=1)
    never = start(x).add(x[y < 2], y[y < 2], 2)
    positions = torch.tensor([0, 1, -1])
    left = start(x).add(x, y, 3).remove_class(2, x[y == 2]).reassign(positions, 2)
    torch.testing.assert_close(never.score([fresh]), left.score([fresh]), rtol=1e-2, atol=1e-2)


def test_a_ridge_that_lacks_instances_keeps_the_covariance_of_the_other_classes() -> None:
    x, y = draw(30)

    def within(ridge: RandomRidge) -> Tensor:
        means = ridge.products / ridge.counts.clamp_min(1)
        return (ridge.gram - means @ ridge.products.T) / ridge.counts.sum()

    before = start(x).add(x, y, 3)
    after = before.remove_class(2, x[y == 2][:5])
    assert after.counts.tolist() == [30, 30, 0]
    torch.testing.assert_close(within(after), within(before), rtol=1e-3, atol=1e-3)
    fresh, truth = draw(50, seed=1)
    two = after.reassign(torch.tensor([1, 0, -1]), 2)
    right = (two.score([fresh[truth < 2]]).argmax(1) == 1 - truth[truth < 2]).float().mean()
    assert right > 0.9


def test_merged_classes_of_a_ridge_are_one() -> None:
    x, y = draw(30)
    merged = start(x).add(x, y, 3).reassign(torch.tensor([0, 1, 0]), 2)
    together = start(x).add(x, torch.tensor([0, 1, 0])[y], 2)
    torch.testing.assert_close(merged.products, together.products, rtol=1e-4, atol=1e-2)
    assert torch.equal(merged.counts, together.counts)
