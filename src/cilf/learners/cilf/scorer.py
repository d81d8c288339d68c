"""What CILF computes for a prediction, as one module."""

from __future__ import annotations

from torch import Tensor, nn

from cilf.learners.cilf.embedding import Embedding
from cilf.learners.cilf.readout import Readouts


class Scorer(nn.Module):
    """Instances -> the score of each class by the readouts (n, c), and the embedding (n, d)."""

    def __init__(self, embedding: Embedding, readouts: Readouts) -> None:
        super().__init__()
        self.network, self.patches = embedding.network, embedding.patches
        self.embedding, self.readouts = embedding, readouts

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        views = self.embedding.views(x)
        return self.readouts.score(views), views[0]
