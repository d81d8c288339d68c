"""The clustering space of CILF, for the instances that another detector marks as novel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cilf.clustering.marked_instances import MarkedWindow, cluster_marked
from cilf.clustering.novel_clusters import Clustering
from cilf.clustering.p_values import Labelled
from cilf.clustering.unexplained_mass import UnexplainedMass
from cilf.core.random import torch_generator
from cilf.core.types import Array, Bools, Floats
from cilf.errors import BadConfig
from cilf.nn.memory import Memory
from cilf.nn.network import to_numpy
from cilf.nn.prototypes import class_means
from cilf.nn.space import Space
from cilf.nn.views import Views

OWN, SHARED = SPACES = ("own", "shared")


@dataclass(frozen=True)
class SharedSpace:
    """The space that CILF would cluster a window in, with the views of another learner.

    It is computed when it is used, from the instances that the learner keeps. So a learner stores
    nothing for it.
    """

    X: Array  # the window
    memories: tuple[Memory | None, Memory | None]  # to train on, and held out
    learn_views: Callable[[Array, torch.Generator], Views]
    is_novel: Callable[[Array], Bools]  # what the detector marks
    seed: int

    def cluster(
        self, is_marked: Bools, n_novel: int | None, k_max: int | None, generator: torch.Generator
    ) -> tuple[Clustering, Floats]:
        """The clusters of the marked instances, counted as CILF does, and the window's points."""
        window = self.transform(is_marked)
        found = cluster_marked(
            window, n_novel, k_max=k_max, rule=UnexplainedMass(), generator=generator
        )
        return found, to_numpy(window.points)

    def transform(self, is_marked: Bools) -> MarkedWindow:
        """The window in a space that is fitted to it and to the labelled instances."""
        memory, held_out = self._choose_known()
        everything = memory.combine(held_out.X, held_out.y)
        classes = np.unique(everything.y)
        located = _stand_in(memory, held_out)
        views = self.learn_views(located.X, torch_generator(self.seed, "inputs"))
        window, known = views(self.X), views(everything.X)
        device = window[0].device
        y, located_y = (
            torch.from_numpy(np.searchsorted(classes, kept.y)).to(device)
            for kept in (everything, located)
        )
        centres = [class_means(view, located_y, len(classes))[0] for view in views(located.X)]
        space = Space.fit(known, y, window, centres)
        places, n = space.transform(known), len(memory)
        wrong = torch.from_numpy(self.is_novel(everything.X)).to(device)
        return MarkedWindow(
            points=space.transform(window),
            is_marked=torch.from_numpy(is_marked).to(device),
            known=space.transform(centres),
            memory=Labelled(places[:n], y[:n]),
            memory_is_marked=wrong[:n],
            held_out=Labelled(places[n:], y[n:]),
            held_out_is_marked=wrong[n:],
        )

    def _choose_known(self) -> tuple[Memory, Memory]:
        """The labelled instances that training saw, and those that it did not see."""
        memory, held_out = (
            Memory.empty(self.X) if kept is None else kept for kept in self.memories
        )
        if len(memory) + len(held_out) == 0:
            raise BadConfig(
                "space is 'shared', which needs labelled instances, and the learner keeps none: "
                "raise memory_size or calibration_size, or give 'own'."
            )
        return memory, held_out


def _stand_in(memory: Memory, held_out: Memory) -> Memory:
    """The memory, with held-out instances of the classes that it lacks."""
    lacking = held_out.rows(np.flatnonzero(~np.isin(held_out.y, memory.y)))
    return memory.combine(lacking.X, lacking.y)
