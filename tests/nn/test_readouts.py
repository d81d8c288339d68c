"""Readouts of known classes."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from torch import Tensor

from cilf.nn.prototypes import class_means
from cilf.nn.readouts import (
    N_UNITS,
    RIDGE_WEIGHT,
    SHRINKAGE,
    Discriminant,
    NearestPrototype,
    RandomRidge,
    measure_accuracy,
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
    penalty = RIDGE_WEIGHT * float((units.T @ units).diagonal().mean())
    theirs = Ridge(alpha=penalty, fit_intercept=False).fit(
        units, torch.nn.functional.one_hot(y).double()
    )
    np.testing.assert_allclose(together.score([x]), theirs.predict(units), atol=1e-4)
    torch.testing.assert_close(apart.score([x]), together.score([x]), rtol=1e-4, atol=1e-4)
    assert measure_accuracy(together, [x], y) > 0.9


def test_a_new_class_leaves_the_statistics_of_the_old_ones() -> None:
    x, y = draw(30)
    old = start(x).add(x[:60], y[:60], 2)
    new = old.add(x[60:], y[60:], 3)
    assert torch.equal(new.products[:, :2], old.products)
    assert new.gram.shape == (N_UNITS, N_UNITS)


def test_a_file_keeps_them_exactly_and_a_sign_in_one_bit() -> None:
    x, y = draw(30)
    ridge, lda = start(x).add(x, y, 3), Discriminant.fit([x], y, [centres(x, y)])
    assert ridge.arrays()["signs"].nbytes == N_UNITS  # of six rows, in one byte each
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
