"""The readouts of CILF, and the choice among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cilf.core.types import Array, Ints
from cilf.learners.cilf.embedding import Embedding, Labelled
from cilf.nn.readouts import (
    Discriminant,
    NearestPrototype,
    RandomRidge,
    Readout,
    measure_accuracy,
)
from cilf.nn.views import view_inputs

AUTO, PROTOTYPE, LDA, RIDGE = "auto", "prototype", "lda", "ridge"
READOUTS = (LDA, PROTOTYPE, RIDGE)  # of equally accurate ones the first is taken
PREFIX = "readout"  # of their arrays in a file


@dataclass(frozen=True)
class Readouts:
    """The readouts that a learner may take, and the name of the one that decides."""

    known: Mapping[str, Readout]
    chosen: str

    def label(self, views: Sequence[Tensor]) -> Ints:
        """The known class of each instance."""
        return self.known[self.chosen].score(views).argmax(1).cpu().numpy()

    @property
    def ridge(self) -> RandomRidge | None:
        found = self.known.get(RIDGE)
        return found if isinstance(found, RandomRidge) else None

    def arrays(self) -> dict[str, Array]:
        """What a file keeps of them. Prototypes are kept elsewhere."""
        return {
            f"{PREFIX}.{name}.{key}": array
            for name, readout in self.known.items()
            if isinstance(readout, Discriminant | RandomRidge)
            for key, array in readout.arrays().items()
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], prototypes: Tensor, chosen: str) -> Readouts:
        """The readouts of a file."""
        known: dict[str, Readout] = {PROTOTYPE: NearestPrototype(prototypes)}
        for name, kind in ((LDA, Discriminant), (RIDGE, RandomRidge)):
            start = f"{PREFIX}.{name}."
            own = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            if own:
                known[name] = kind.restore(own, prototypes.device)
        return cls(known, chosen)


def learn_readouts(
    wanted: str,
    embedding: Embedding,
    memory: Labelled,
    held_out: Labelled,
    *,
    unseen: Labelled,
    ridge: RandomRidge | None,
    rng: np.random.Generator,
) -> Readouts:
    """Learn one readout, or all, and choose the most accurate on held-out instances.

    ``unseen`` are the labelled instances that ``ridge`` has not seen. LDA has its covariance from
    the memory. LDA is chosen if nothing is held out. Ridge regression favours large classes, so it
    is not chosen if a class has no held-out instance that would show it.
    """
    known: dict[str, Readout] = {PROTOTYPE: NearestPrototype(embedding.prototypes)}
    if wanted in (AUTO, LDA):
        views = embedding.views(memory.x)
        known[LDA] = Discriminant.fit(views, memory.y, embedding.centres)
    if wanted in (AUTO, RIDGE):
        inputs = view_inputs(embedding.network.scale, embedding.patches, unseen.x)
        start = RandomRidge.start(inputs, rng) if ridge is None else ridge
        known[RIDGE] = start.add(inputs, unseen.y, len(embedding.prototypes))
    if wanted != AUTO:
        return Readouts(known, wanted)
    if len(held_out.y) == 0:
        return Readouts(known, LDA)
    views = embedding.views(held_out.x)
    is_shown = len(torch.unique(held_out.y)) == len(embedding.prototypes)
    names = READOUTS if is_shown else (LDA, PROTOTYPE)
    accuracy = {name: measure_accuracy(known[name], views, held_out.y) for name in names}
    return Readouts(known, max(names, key=lambda name: accuracy[name]))
