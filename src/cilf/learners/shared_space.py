"""The clustering space of CILF, for the instances that another detector marks as novel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cilf.clustering.excess_mass import ExcessMass
from cilf.clustering.marked_instances import MarkedWindow, cluster_marked
from cilf.clustering.novel_clusters import Clustering
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
        found = cluster_marked(window, n_novel, k_max=k_max, rule=ExcessMass(), generator=generator)
        return found, to_numpy(window.points)

    def transform(self, is_marked: Bools) -> MarkedWindow:
        """The window in a space that is fitted to it and to the labelled instances."""
        labelled, held_out = self._choose_known()
        views = self.learn_views(labelled.X, torch_generator(self.seed, "inputs"))
        known, window = views(labelled.X), views(self.X)
        device = known[0].device
        classes, positions = np.unique(labelled.y, return_inverse=True)
        y = torch.from_numpy(positions).to(device)
        space = Space.fit(known, y, window)
        return MarkedWindow(
            points=space.transform(window),
            is_marked=torch.from_numpy(is_marked).to(device),
            known=space.transform([class_means(view, y, len(classes))[0] for view in known]),
            held_out=space.transform(views(held_out.X)),
            held_out_labels=torch.from_numpy(np.searchsorted(classes, held_out.y)).to(device),
            held_out_is_marked=torch.from_numpy(self.is_novel(held_out.X)).to(device),
        )

    def _choose_known(self) -> tuple[Memory, Memory]:
        """Labelled instances that the space is fitted to, and those to calibrate it by.

        Held-out instances stand for classes that the memory lacks. If none are held out, those of
        the memory calibrate the space.
        """
        memory, held_out = (
            Memory.empty(self.X) if kept is None else kept for kept in self.memories
        )
        lacking = held_out.rows(np.flatnonzero(~np.isin(held_out.y, memory.y)))
        labelled = memory.combine(lacking.X, lacking.y)
        if len(labelled) == 0:
            raise BadConfig(
                "space is 'shared', which needs labelled instances, and the learner keeps none: "
                "raise memory_size or calibration_size, or give 'own'."
            )
        return labelled, held_out if len(held_out) else labelled
