"""Algorithm 1: the loss, and what each of its parameters does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cilf.errors import BadConfig
from cilf.learners.cilf import losses
from cilf.learners.cilf.embedding import Embedding, Labelled, Loss, choose_prototypes, fit_embedding
from cilf.nn.network import embed, make_network
from cilf.nn.prototypes import class_means
from cilf.nn.training import Training

from ...host_waits import as_on_gpu, count_waits


def blobs(n: int = 30, seed: int = 0) -> Labelled:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(6), n)
    centres = 3 * rng.normal(size=(6, 5))
    x = (centres[y] + rng.normal(size=(len(y), 5))).astype(np.float32)
    return Labelled(torch.from_numpy(x), torch.from_numpy(y))


def fit(loss: Loss, epochs: int = 3, training: Training | None = None) -> Embedding:
    network = make_network(
        "mlp", (5,), embedding_size=4, width=8, seed=0, device=torch.device("cpu")
    )
    optimiser = training or Training()
    return fit_embedding(network, blobs(), loss=loss, optimiser=optimiser, epochs=epochs, seed=0)


def test_training_gathers_classes_around_their_prototypes() -> None:
    x, y = blobs()
    before, after = fit(Loss(), epochs=0), fit(Loss(), epochs=10)
    for embedding, least, most in ((before, 0.0, 0.9), (after, 0.95, 1.0)):
        nearest = torch.cdist(embed(embedding.network, x), embedding.prototypes).argmin(1)
        assert least <= float((nearest == y).float().mean()) <= most


@pytest.mark.parametrize(
    "change",
    [{"alpha": 1.0}, {"margin": None}, {"negatives": 1}, {"lambda1": 0.0}, {"beta": 0.0}],
    ids=str,
)
def test_each_parameter_changes_what_is_learned(change: dict[str, Any]) -> None:
    triplets = {"margin": 5.0}
    usual, changed = fit(Loss(**triplets)).network, fit(Loss(**triplets | change)).network
    assert not torch.allclose(usual.head.weight, changed.head.weight, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [{"batch_size": 8}, {"learning_rate": 0.1}, {"weight_decay": 0.5}, {"clip": 0.01}],
    ids=str,
)
def test_each_parameter_of_training_changes_what_is_learned(change: dict[str, Any]) -> None:
    usual, changed = fit(Loss()), fit(Loss(), training=Training(**change))
    assert not torch.allclose(usual.network.head.weight, changed.network.head.weight, atol=1e-6)


def test_prototypes_are_exact_or_annealed() -> None:
    x, y = blobs()
    exact, anneal = fit(Loss()), fit(Loss(exact_prototypes=False))
    means, _ = class_means(embed(exact.network, x), y, 6)
    assert torch.allclose(exact.prototypes, means, atol=1e-5)
    assert torch.equal(exact.network.head.weight, anneal.network.head.weight)
    assert not torch.allclose(anneal.prototypes, means, atol=1e-3)


@pytest.mark.parametrize("margin", [None, 5.0])
def test_the_loss_is_the_weighted_sum_of_its_terms(margin: float | None) -> None:
    x, y = blobs(n=4)
    prototypes, old = torch.eye(6, 5), torch.ones(3, 5)
    loss = Loss(lambda1=0.5, lambda2=2.0, margin=margin)
    found = loss.measure(x, y, prototypes, torch.Generator().manual_seed(1), old)
    inter = losses.neighbour_cross_entropy(x, y, 0.3)
    if margin is not None:
        inter = losses.triplet_loss(x, y, margin, torch.Generator().manual_seed(1), n_negatives=4)
    intra = losses.prototype_cross_entropy(x, y, prototypes, 0.3)
    assert float(found) == pytest.approx(
        float(intra + 0.5 * inter + 2.0 * losses.prototype_drift(x, y, old))
    )


def test_an_embedding_that_is_not_finite_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"diverged .* lower training\.learning_rate"):
        choose_prototypes([torch.tensor([[float("nan")]])], torch.zeros(1, 1), Loss())


@pytest.mark.parametrize("batch_size", [16, 60])
def test_the_host_does_not_wait_for_a_gpu_in_a_batch(batch_size: int) -> None:
    def waits(epochs: int) -> int:
        training = Training(batch_size=batch_size)
        return count_waits(lambda: fit(Loss(), epochs=epochs, training=training))

    with as_on_gpu():
        assert waits(epochs=3) - waits(epochs=2) == 1  # for the loss of the epoch
