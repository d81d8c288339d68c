"""The readouts of CILF, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cilf.core.types import Array, Ints
from cilf.errors import BadInput
from cilf.learners.cilf.embedding import Embedding, Labelled
from cilf.nn.readouts import Discriminant, NearestPrototype, RandomRidge, Readout, weigh_scores
from cilf.nn.views import view_inputs

AUTO, PROTOTYPE, LDA, RIDGE = "auto", "prototype", "lda", "ridge"
READOUTS = (LDA, PROTOTYPE, RIDGE)
PREFIX = "readout"  # of their arrays in a file


@dataclass(frozen=True)
class Readouts:
    """The readouts that a learner has, and the weights of those that decide."""

    known: Mapping[str, Readout]
    weights: Mapping[str, float]

    def score(self, views: Sequence[Tensor]) -> Tensor:
        """The weighted sum of the scores of each class: (n, c)."""
        scores = [weight * self.known[name].score(views) for name, weight in self.weights.items()]
        return torch.stack(scores).sum(0)

    def label(self, views: Sequence[Tensor]) -> Ints:
        """The known class of each instance: that of the largest score."""
        return self.score(views).argmax(1).cpu().numpy()

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
    def restore(
        cls, arrays: Mapping[str, Array], prototypes: Tensor, decides: str | Mapping[str, float]
    ) -> Readouts:
        """The readouts of a file, which says what ``decides``: weights, or in older ones a name.

        The ridge of an older file lacks the sizes of classes. It is left out, and the next update
        starts a new one.
        """
        known: dict[str, Readout] = {PROTOTYPE: NearestPrototype(prototypes)}
        for name, kind in ((LDA, Discriminant), (RIDGE, RandomRidge)):
            start = f"{PREFIX}.{name}."
            own = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            if own.keys() >= set(kind.kept):
                known[name] = kind.restore(own, prototypes.device)
        weights = {decides: 1.0} if isinstance(decides, str) else decides
        if not weights.keys() <= known.keys():
            raise BadInput(
                "the model reads out by a ridge regression of an older cilf: fit it again."
            )
        return cls(known, weights)


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
    """Learn one readout, or all with weights by which held-out instances are told best.

    ``unseen`` are the labelled instances that ``ridge`` has not seen. LDA has its covariance from
    the memory, and decides alone if nothing is held out. Ridge has no part while there is a class
    that it has not seen. If it alone is wanted, the prototypes then decide.
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
        misses_class = wanted == RIDGE and not _sees_all(known[RIDGE])
        return Readouts(known, {PROTOTYPE if misses_class else wanted: 1.0})
    if len(held_out.y) == 0:
        return Readouts(known, {LDA: 1.0})
    names = [name for name in READOUTS if name != RIDGE or _sees_all(known[RIDGE])]
    views = embedding.views(held_out.x)
    weights = weigh_scores([known[name].score(views) for name in names], held_out.y)
    return Readouts(known, dict(zip(names, weights, strict=True)))


def _sees_all(readout: Readout) -> bool:
    return isinstance(readout, RandomRidge) and readout.has_all_classes
