from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor, nn

from cilf.nn.fisher import diagonal_fisher
from cilf.nn.network import make_network

Untouched = Callable[[], AbstractContextManager[None]]


def softmax_model(n_classes: int = 3) -> tuple[nn.Linear, Tensor]:
    """A linear softmax model in double precision, and instances."""
    rng = torch.Generator().manual_seed(1)
    layer = nn.Linear(4, n_classes).double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.randn(weight.shape, generator=rng))
    return layer, torch.randn(50, 4, generator=rng, dtype=torch.float64)


def test_with_true_labels_it_is_the_closed_form_of_a_softmax_model(rng: torch.Generator) -> None:
    layer, x = softmax_model()
    labels = torch.arange(50) % 3
    fisher = diagonal_fisher(layer, x, labels, generator=rng)
    off = (nn.functional.one_hot(labels, 3) - layer(x).softmax(1)).square()  # (n, classes)
    assert torch.allclose(fisher["weight"], off.T @ x.square() / 50, rtol=1e-12)
    assert torch.allclose(fisher["bias"], off.mean(0), rtol=1e-12)


def test_drawn_labels_come_near_the_expected_fisher_of_a_logistic_model(
    rng: torch.Generator,
) -> None:
    layer, x = softmax_model(n_classes=2)
    x = x.repeat(20, 1)
    fisher = diagonal_fisher(layer, x, generator=rng)
    p = layer(x).softmax(1)[:, 0].detach()
    expected = ((p * (1 - p))[:, None] * x.square()).mean(0)  # of either class
    assert torch.allclose(fisher["weight"], expected.expand(2, 4), rtol=0.2)
    assert torch.allclose(fisher["bias"], (p * (1 - p)).mean().expand(2), rtol=0.2)


def test_opposite_gradients_do_not_cancel(rng: torch.Generator) -> None:
    layer = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(layer.weight)
    x, labels = torch.tensor([[2.0], [2.0]]), torch.tensor([0, 1])  # the mean gradient is 0
    fisher = diagonal_fisher(layer, x, labels, generator=rng)
    assert fisher["weight"].flatten().tolist() == [1.0, 1.0]


def test_weights_without_influence_do_not_matter(rng: torch.Generator) -> None:
    layer, x = softmax_model()
    x[:, 2] = 0.0
    layer.unused = nn.Linear(4, 4).double()
    fisher = diagonal_fisher(layer, x, generator=rng)
    assert torch.equal(fisher["unused.weight"], torch.zeros(4, 4, dtype=torch.float64))
    assert fisher["weight"][:, 2].tolist() == [0.0] * 3
    assert (fisher["weight"][:, [0, 1, 3]] > 0).all()


def test_it_does_not_depend_on_company_and_leaves_the_network_as_it_was(
    rng: torch.Generator, untouched: Untouched
) -> None:
    network = make_network(
        "mlp", (4,), embedding_size=3, width=8, seed=0, device=torch.device("cpu")
    )
    x, labels = torch.randn(6, 4, generator=rng), torch.arange(6) % 3
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with untouched():
        together = diagonal_fisher(network, x, labels, generator=rng)
        alone = [
            diagonal_fisher(network, x[[i]], labels[[i]], generator=rng)["head.weight"]
            for i in range(6)
        ]
    assert torch.allclose(together["head.weight"], torch.stack(alone).mean(0))
    assert network.training
    assert all(weight.grad is None for weight in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("max_instances", [50, 51])
def test_few_instances_are_all_used(rng: torch.Generator, max_instances: int) -> None:
    layer, x = softmax_model()
    labels = torch.arange(50) % 3
    every = diagonal_fisher(layer, x, labels, generator=rng)["weight"]
    assert torch.equal(
        diagonal_fisher(layer, x, labels, generator=rng, max_instances=max_instances)["weight"],
        every,
    )


def test_a_random_part_stands_for_all(rng: torch.Generator) -> None:
    layer, x = softmax_model()
    labels = torch.arange(50) % 3
    one = diagonal_fisher(layer, x, labels, generator=rng, max_instances=1)["bias"]
    singles = [diagonal_fisher(layer, x[[i]], labels[[i]], generator=rng) for i in range(50)]
    same = [i for i, single in enumerate(singles) if torch.equal(single["bias"], one)]
    assert len(same) == 1
    assert same != [0]


def test_without_instances_nothing_matters(rng: torch.Generator) -> None:
    layer, x = softmax_model()
    fisher = diagonal_fisher(layer, x[:0], generator=rng)
    assert all(torch.count_nonzero(value) == 0 for value in fisher.values())


def test_the_generator_decides(rng: torch.Generator) -> None:
    layer, x = softmax_model()
    first, again, other = (
        diagonal_fisher(layer, x, generator=torch.Generator().manual_seed(seed))["weight"]
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
