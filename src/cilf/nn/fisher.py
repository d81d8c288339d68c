"""The importance of each weight of a classifier: the diagonal of its Fisher matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def diagonal_fisher(
    network: nn.Module,
    x: Tensor,
    labels: Tensor | None = None,
    *,
    generator: torch.Generator,
    max_instances: int | None = None,
) -> dict[str, Tensor]:
    """Mean over instances of the squared gradient of log p(label | x), for each weight by name.

    The gradient is computed for each instance alone, since the mean gradient is near 0 after
    training. ``labels`` are the true labels. If they are None, the label of each instance is
    sampled from the network's own prediction, as in the definition of the Fisher matrix. Of more
    than ``max_instances`` instances a random sample is used. The network is in evaluation mode
    meanwhile. Without instances every value is 0.

    >>> layer = nn.Linear(1, 2, bias=False)
    >>> _ = nn.init.zeros_(layer.weight)  # both classes have p = 1/2: (x (1 - p)) ** 2 = 9 / 4
    >>> rng = torch.Generator().manual_seed(0)
    >>> diagonal_fisher(layer, torch.tensor([[3.0]]), generator=rng)["weight"].flatten().tolist()
    [2.25, 2.25]
    """
    weights = dict(network.named_parameters())
    sums = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    rows = _choose_rows(len(x), max_instances, generator)
    was_training = network.training
    network.eval()
    for row in rows:
        log_p = F.log_softmax(network(x[row : row + 1]), dim=1)[0]
        label = _sample_label(log_p, generator) if labels is None else int(labels[row])
        gradients = torch.autograd.grad(log_p[label], list(weights.values()), allow_unused=True)
        for name, gradient in zip(weights, gradients, strict=True):
            if gradient is not None:
                sums[name] += gradient.square()
    network.train(was_training)
    return {name: total / max(1, len(rows)) for name, total in sums.items()}


def _choose_rows(n: int, max_instances: int | None, generator: torch.Generator) -> list[int]:
    """All of ``n`` rows, or a random part of them."""
    if max_instances is None or n <= max_instances:
        return list(range(n))
    rows: list[int] = torch.randperm(n, generator=generator)[:max_instances].tolist()
    return rows


def _sample_label(log_p: Tensor, generator: torch.Generator) -> int:
    """A class from this distribution."""
    return int(torch.multinomial(log_p.detach().cpu().double().exp(), 1, generator=generator))
