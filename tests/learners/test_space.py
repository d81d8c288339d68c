"""The space that is clustered."""

import pytest
import torch

from cilf.learners.space import Space


def test_views_spread_equally_and_the_embedding_comes_back() -> None:
    draws = torch.Generator().manual_seed(0)
    embedding = 0.1 * torch.randn(200, 3, generator=draws)
    features = 50 * torch.randn(200, 8, generator=draws)
    space = Space.fitted([embedding, features])
    points = space.join([embedding, features])
    for part in (points[:, :3], points[:, 3:]):
        spread = (part - part.mean(0)).square().sum(1).mean().sqrt()
        assert float(spread) == pytest.approx(1.0, rel=1e-4)
    assert torch.allclose(space.embeddings(points, 3), embedding)


def test_the_embedding_alone_is_itself() -> None:
    embedding = 7 * torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Space.fitted([embedding]).join([embedding]), embedding)


def test_constant_views_have_scale_one() -> None:
    assert Space.fitted([torch.ones(5, 2), torch.zeros(5, 2)]) == Space((1.0, 1.0))
