"""Weights of a network after several tasks, merged into one: by their mean, or by the mode.

Each task gives a Gaussian over the weights. Its mean is the weights, its precision their
importance. Their product is largest at the mean of the weights, weighted by precision, which
approximates the mode of their mixture. With equal precisions it is the plain mean. Both need only
sums over tasks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cilf.core.types import Array
from cilf.nn.network import Network


@dataclass(frozen=True)
class Moments:
    """Sums over tasks. Their size does not depend on the number of tasks.

    A task adds nothing to outputs that came later.
    """

    weighted: Mapping[str, Tensor]  # sum of precision * weight
    precision: Mapping[str, Tensor]  # sum of precision
    n_tasks: int = 1

    @classmethod
    def of(cls, network: nn.Module, precision: Mapping[str, Tensor] | None = None) -> Moments:
        """The moments of one task. Values without a precision have precision 1."""
        weights = {k: v for k, v in network.state_dict().items() if v.is_floating_point()}
        given = precision or {}
        counts = {k: given[k] if k in given else torch.ones_like(v) for k, v in weights.items()}
        return cls({k: counts[k] * weights[k] for k in weights}, counts)

    def combine(self, later: Moments) -> Moments:
        """The moments of these and of later tasks, which may have more outputs."""
        return Moments(
            _add(self.weighted, later.weighted),
            _add(self.precision, later.precision),
            self.n_tasks + later.n_tasks,
        )

    def scale(self, share: float) -> Moments:
        """The moments multiplied by ``share``."""
        return Moments(
            {name: share * total for name, total in self.weighted.items()},
            {name: share * total for name, total in self.precision.items()},
            self.n_tasks,
        )

    def merge_weights(self) -> dict[str, Tensor]:
        """The weights that stand for all tasks.

        >>> one, two = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.constant_(one.weight, 2.0), nn.init.constant_(two.weight, 6.0)
        >>> Moments.of(one).combine(Moments.of(two)).merge_weights()["weight"].item()
        4.0
        >>> sure = Moments.of(one, {"weight": torch.tensor([[3.0]])})
        >>> sure.combine(Moments.of(two)).merge_weights()["weight"].item()
        3.0
        """
        return {name: total / self.precision[name] for name, total in self.weighted.items()}

    def arrays(self, name: str) -> dict[str, Array]:
        """The sums as they are stored under this name."""
        parts = {"weighted": self.weighted, "precision": self.precision}
        return {
            f"{name}.{part}.{weight}": total.cpu().numpy()
            for part, totals in parts.items()
            for weight, total in totals.items()
        }

    @classmethod
    def restore(
        cls, arrays: Mapping[str, Array], name: str, n_tasks: int, device: torch.device
    ) -> Moments:
        """The sums that are stored under this name."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {
                key.removeprefix(prefix): torch.from_numpy(total).to(device)
                for key, total in arrays.items()
                if key.startswith(prefix)
            }

        return cls(part(f"{name}.weighted."), part(f"{name}.precision."), n_tasks)


def mix(earlier: Moments | None, newest: Moments, alpha: float | None) -> Moments:
    """The moments of all tasks; the newest has the share ``alpha``, the others share the rest.

    None gives all tasks the same share.
    """
    if earlier is None:
        return newest
    if alpha is None:
        return earlier.combine(newest)
    return earlier.scale((1 - alpha) / earlier.n_tasks).combine(newest.scale(alpha))


@dataclass(frozen=True)
class MergedTasks:
    """The moments of all tasks, and the network whose weights are merged from them."""

    earlier: Moments | None  # of all tasks but the newest
    newest: Moments
    alpha: float | None  # the share that the newest task was merged with
    network: Network

    @classmethod
    def merge(
        cls, network: Network, earlier: Moments | None, newest: Moments, alpha: float | None
    ) -> MergedTasks:
        """Merge all tasks into a copy of the network of the newest one."""
        merged = copy.deepcopy(network)
        merged.load_state_dict(network.state_dict() | mix(earlier, newest, alpha).merge_weights())
        return cls(earlier, newest, alpha, merged)

    def add(self, network: Network, newest: Moments, alpha: float | None) -> MergedTasks:
        """Merge these tasks and a new one."""
        earlier = self.newest if self.earlier is None else self.earlier.combine(self.newest)
        return self.merge(network, earlier, newest, alpha)

    def arrays(self) -> dict[str, Array]:
        """The moments as they are stored."""
        earlier = {} if self.earlier is None else self.earlier.arrays("earlier")
        return self.newest.arrays("newest") | earlier

    @classmethod
    def restore(
        cls, arrays: Mapping[str, Array], network: Network, n_earlier: int, alpha: float | None
    ) -> MergedTasks:
        """Merge the stored tasks; ``network`` is that of the newest one."""
        earlier = Moments.restore(arrays, "earlier", n_earlier, network.device)
        newest = Moments.restore(arrays, "newest", 1, network.device)
        return cls.merge(network, earlier if n_earlier else None, newest, alpha)


def _add(earlier: Mapping[str, Tensor], later: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sums of two mappings; the earlier tensors may lack outputs of the later ones."""
    totals = {name: total.clone() for name, total in later.items()}
    for name, total in earlier.items():
        totals[name][tuple(slice(n) for n in total.shape)] += total
    return totals
