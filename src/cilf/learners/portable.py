"""A fitted learner as one module, from instances to everything that a prediction has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.clustering.p_values import Ranking
from cilf.core import Label


class PortableModule(nn.Module):
    """Instances -> label, probability, novelty_p, score and embedding.

    ``label`` is a position in the list of classes, ``probability`` (n, c) that of each class for
    an instance of a known class, ``novelty_p`` the p-value of the instance alone.
    """

    outputs: ClassVar[tuple[str, ...]] = ("label", "probability", "novelty_p", "score", "embedding")

    def __init__(
        self,
        encoder: nn.Module | None,
        scorer: nn.Module,
        ranking: Ranking | None,
        scale: float,
    ) -> None:
        super().__init__()
        self.encoder, self.scorer = encoder, scorer
        self.ranking, self.scale = ranking, scale

    def forward(self, instances: Tensor) -> tuple[Tensor, ...]:
        x = _channels_first(instances)
        if self.encoder is not None:
            x = _normalize(self.encoder(x))
        score, embedding = self.scorer(x)
        place = embedding if self.encoder is None else x
        if self.ranking is None:
            novelty_p = torch.ones_like(score[:, 0])
        else:
            novelty_p = self.ranking.rank(place).p
        probability = F.softmax(score * self.scale, dim=1)
        return score.argmax(1), probability, novelty_p, score, embedding


def _channels_first(instances: Tensor) -> Tensor:
    """Vectors as they are; images (n, h, w) or (n, h, w, c) as (n, c, h, w)."""
    if instances.ndim == 3:
        return instances.unsqueeze(1)
    return instances.permute(0, 3, 1, 2) if instances.ndim == 4 else instances


def _normalize(features: Tensor) -> Tensor:
    """Bring features of a frozen network to one length."""
    lengths = torch.linalg.vector_norm(features, dim=1, keepdim=True)
    scaled: Tensor = features * (float(np.sqrt(features.shape[1])) / lengths.clamp_min(1e-12))
    return scaled


@dataclass(frozen=True)
class Portable:
    """A learner for an export.

    Attributes:
        module: (n, ...) float32 instances, as users give them, to ``PortableModule.outputs``.
        shape: the shape of one instance.
        classes: the names of the classes.
    """

    module: PortableModule
    shape: tuple[int, ...]
    classes: tuple[Label, ...]
