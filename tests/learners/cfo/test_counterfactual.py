from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.learners.cfo.counterfactual import (
    Counterfactuals,
    one_against_rest,
    open_scores,
    pad_none,
    surprise_of_none,
)
from cilf.learners.cfo.gan import GAN, make_gan

LOGITS = torch.tensor([[2.0, -1.0], [-3.0, -4.0], [0.0, 0.0]])


def probabilities(logits: list[float]) -> list[float]:
    """Softmax with a logit of 0 behind the others."""
    odds = [math.exp(logit) for logit in [*logits, 0.0]]
    return [one / sum(odds) for one in odds]


def test_none_has_a_logit_of_zero() -> None:
    assert pad_none(LOGITS).tolist() == [[2, -1, 0], [-3, -4, 0], [0, 0, 0]]


def test_surprise_of_none_by_hand() -> None:
    expected = [-math.log(probabilities(row)[-1]) for row in LOGITS.tolist()]
    assert surprise_of_none(LOGITS).tolist() == pytest.approx(expected, rel=1e-6)


def test_open_score_by_hand() -> None:
    expected = []
    for row in LOGITS.tolist():
        *known, none = probabilities(row)
        expected.append(none - max(known))
    assert open_scores(LOGITS).tolist() == pytest.approx(expected, rel=1e-6)
    assert expected[0] < 0 < expected[1]
    assert expected[2] == pytest.approx(0)


def test_open_scores_of_sure_classifiers_still_differ() -> None:
    surer, sure = open_scores(torch.tensor([[25.0, 0.0], [24.0, 0.0]])).tolist()
    assert -1 <= surer < sure


def test_one_against_rest_by_hand() -> None:
    def softplus(value: float) -> float:
        return math.log(1 + math.exp(value))

    loss = one_against_rest(
        torch.tensor([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]]), torch.tensor([0, 2])
    )
    first = softplus(-2.0) + softplus(-1.0) + softplus(0.5)
    second = softplus(0.0) + softplus(3.0) + softplus(2.0)
    assert float(loss) == pytest.approx((first + second) / 6, rel=1e-6)


# ----------------------------------------------------------------- the descent


def fresh_gan() -> GAN:
    device = torch.device("cpu")
    made = make_gan((1, 8, 8), image_size=None, latent_size=4, width=4, seed=0, device=device)
    return made.eval()


def brightness(images: Tensor) -> Tensor:
    """Two logits: how bright the left half and the right half are (an untrained generator makes
    images that hardly differ)."""
    return 50 * torch.stack([half.mean((1, 2, 3)) - 0.4 for half in images.split(4, dim=3)], dim=1)


def images(n: int = 3) -> Tensor:
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def found(x: Tensor, steps: int, speed: float = 0.1, distance_weight: float = 1.0) -> Tensor:
    descent = Counterfactuals(steps=steps, speed=speed, distance_weight=distance_weight)
    return descent.descend(fresh_gan(), brightness, x)


def test_no_step_is_the_reconstruction() -> None:
    made, x = fresh_gan(), images()
    assert torch.equal(found(x, steps=0), made.decode(made.encode(x)).detach())


def test_steps_are_those_of_one_image_written_out() -> None:
    made, x = fresh_gan(), images(1)
    start = made.encode(x).detach()
    cells = start
    for _ in range(3):
        cells = cells.clone().requires_grad_()
        left, right = brightness(made.decode(cells))[0]
        loss = torch.log(1 + left.exp() + right.exp())
        for there, was in zip(cells.flatten(), start.flatten(), strict=True):
            loss = loss + 0.7 * (there - was) ** 2
        loss.backward()
        moved = cells.detach() - 0.3 * cells.grad
        for row in range(4):
            for column in range(4):
                moved[0, :, row, column] /= moved[0, :, row, column].square().sum().sqrt()
        cells = moved
    expected = made.decode(cells).detach()
    torch.testing.assert_close(found(x, 3, speed=0.3, distance_weight=0.7), expected)


def test_each_image_descends_for_itself() -> None:
    x = images(4)
    alone = torch.cat([found(x[i : i + 1], steps=4) for i in range(4)])
    torch.testing.assert_close(found(x, steps=4), alone)


def test_distance_holds_it_back() -> None:
    x = images()
    start = found(x, steps=0)
    near, far = (found(x, 30, distance_weight=weight) for weight in (4.0, 0.0))
    assert F.mse_loss(near, start) < 0.5 * F.mse_loss(far, start)
    surprises = [surprise_of_none(brightness(made)) for made in (far, near, start)]
    assert (surprises[0] < surprises[1]).all()
    assert (surprises[1] < surprises[2]).all()


def test_networks_get_no_gradients() -> None:
    made = fresh_gan()
    Counterfactuals(steps=2, speed=0.1, distance_weight=1.0).descend(made, brightness, images())
    assert all(p.grad is None for p in made.parameters())
