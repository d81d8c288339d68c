from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core.progress import listen
from cilf.errors import BadConfig
from cilf.learners.cfo import gan as gans
from cilf.learners.cfo.gan import GAN, GANSettings, make_gan, train_gan

CPU = torch.device("cpu")


FAST = GANSettings(learning_rate=0.1)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(shape: tuple[int, int, int] = (1, 8, 8), image_size: int | None = None) -> GAN:
    return make_gan(shape, image_size=image_size, latent_size=6, width=4, seed=0, device=CPU)


def stripes(n: int = 24) -> Tensor:
    """Raw 8 x 8 images with values from 0 to 200, bright rows or bright columns."""
    x = torch.zeros(n, 1, 8, 8)
    x[: n // 2, :, ::2] = 200
    x[n // 2 :, :, :, ::2] = 200
    return x


# ----------------------------------------------------------------- shapes and frames


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 50, 20), (1, 3, 7)])
def test_images_of_any_shape_come_back_in_it(shape: tuple[int, int, int]) -> None:
    made = small(shape).eval()
    x = torch.rand(3, *shape)
    cells = made.encode(x)
    assert cells.shape == (3, 6, 4, 4)
    assert made.decode(cells).shape == x.shape
    assert made.discriminator(made.frame(x)).shape == (3,)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (2, 5, 7), (3, 32, 30)])
def test_framing_is_undone_exactly_for_images_that_fit(shape: tuple[int, int, int]) -> None:
    made = small(shape)
    x = torch.randint(0, 256, (4, *shape), generator=rng(), dtype=torch.uint8)
    made.take_range(x)
    framed = made.frame(x)
    assert framed.shape[2] == framed.shape[3] == made.side
    assert (framed.min(), framed.max()) == (0, 1)
    torch.testing.assert_close(made.unframe(framed), x.float(), atol=1e-3, rtol=0)


def test_what_is_too_large_is_reduced() -> None:
    made = small((1, 64, 32))
    ramp = torch.linspace(0, 1, 64)[None, None, :, None].expand(1, 1, 64, 32)
    assert made.frame(ramp).shape == (1, 1, 32, 32)
    torch.testing.assert_close(made.unframe(made.frame(ramp)), ramp, atol=0.02, rtol=0)


def test_constant_channels_have_a_range() -> None:
    made = small()
    made.take_range(torch.full((2, 1, 8, 8), 7.0))
    assert made.frame(torch.full((1, 1, 8, 8), 7.0)).abs().max() == 0


def test_the_size_can_be_chosen() -> None:
    assert (small().side, small(image_size=16).side) == (8, 16)
    assert small((1, 28, 28), image_size=8).frame(torch.rand(1, 1, 28, 28)).shape[2:] == (8, 8)


# ----------------------------------------------------------------- cells on the sphere


@pytest.mark.parametrize("training", [True, False])
def test_every_encoded_cell_has_length_1(training: bool) -> None:
    made = small((1, 16, 16)).train(training)
    cells = made.encode(torch.rand(5, 1, 16, 16, generator=rng())).detach()
    for image in cells:
        for row in range(4):
            for column in range(4):
                length = math.sqrt(float(image[:, row, column].square().sum()))
                assert length == pytest.approx(1, abs=1e-5)


def test_random_cells_lie_on_the_sphere_in_all_directions() -> None:
    cells = gans.random_cells(200, 3, rng())
    torch.testing.assert_close(cells.norm(dim=1), torch.ones(200, 4, 4))
    assert cells.mean((0, 2, 3)).abs().max() < 0.05


def test_discriminator_looks_at_each_image_alone() -> None:
    made, x = small().train(), torch.rand(4, 1, 8, 8, generator=rng())
    alone = torch.cat([made.discriminator(x[i : i + 1]) for i in range(4)])
    torch.testing.assert_close(made.discriminator(x), alone)


# ----------------------------------------------------------------- losses


def softplus(value: float) -> float:
    return math.log(1 + math.exp(value))


def test_discriminator_loss_by_hand() -> None:
    loss = gans.discriminator_loss(torch.tensor([0.5, -2.0]), torch.tensor([1.0, 3.0]), 0.01)
    of_made = (softplus(0.5) + softplus(-2.0)) / 2
    of_real = (softplus(-1.0) + softplus(-3.0)) / 2
    assert loss.item() == pytest.approx(of_made + 0.01 * of_real)


def test_generator_loss_by_hand() -> None:
    images = torch.tensor([[[[0.0, 1.0]]], [[[0.5, 0.5]]]])
    reconstructed = torch.tensor([[[[0.2, 0.6]]], [[[0.5, 1.0]]]])
    settings = GANSettings(reconstruction_weight=2.0, generator_weight=0.1)
    loss = gans.generator_loss(images, reconstructed, torch.tensor([3.0, -1.0]), settings)
    assert loss.item() == pytest.approx(2.0 * (0.2 + 0.4 + 0.0 + 0.5) / 4 - 0.1 * (3.0 - 1.0) / 2)


class Quadratic(nn.Module):
    """D(x) = a/2 ||x||² : its slope at x is a ||x||."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.a / 2 * x.square().flatten(1).sum(1)


def test_gradient_penalty_by_hand() -> None:
    real = torch.rand(3, 2, 2, 2, generator=rng(1))
    made = torch.rand(3, 2, 2, 2, generator=rng(2))
    share = torch.rand(3, 1, 1, 1, generator=rng(7))
    critic = Quadratic()
    penalty = gans.gradient_penalty(critic, real, made, rng(7))
    lengths = [math.sqrt(float(p.square().sum())) for p in share * real + (1 - share) * made]
    assert penalty.item() == pytest.approx(sum((2 * s - 1) ** 2 for s in lengths) / 3, rel=1e-5)
    penalty.backward()
    by_a = sum(2 * (2 * s - 1) * s for s in lengths) / 3
    assert critic.a.grad.item() == pytest.approx(by_a, rel=1e-5)


def test_gradient_penalty_is_smooth_where_there_is_no_slope() -> None:
    critic = Quadratic()
    origin = torch.zeros(2, 1, 2, 2)
    penalty = gans.gradient_penalty(critic, origin, origin, rng())
    penalty.backward()
    assert penalty.item() == pytest.approx(1, abs=1e-4)
    assert torch.isfinite(critic.a.grad)


# ----------------------------------------------------------------- training


def reconstruction_error(made: GAN, x: Tensor) -> float:
    with torch.no_grad():
        return (F.l1_loss(made.decode(made.encode(x)), x) / 200).item()


def trained(epochs: int, seed: int = 0) -> GAN:
    made, x = small(), stripes()
    made.take_range(x)
    settings = GANSettings(learning_rate=0.01)
    train_gan(made, x, settings, epochs=epochs, batch_size=8, rng=rng(seed), purpose="fit")
    return made


def test_training_makes_reconstructions_close_and_ends_in_evaluation_mode() -> None:
    before, after = trained(0), trained(15)
    assert not after.training
    assert reconstruction_error(after, stripes()) < 0.4 * reconstruction_error(before, stripes())


def test_training_follows_its_generator() -> None:
    one, same, other = trained(2), trained(2), trained(2, seed=1)
    for name, weights in one.state_dict().items():
        assert torch.equal(weights, same.state_dict()[name])
    assert not torch.equal(one.generator[0].weight, other.generator[0].weight)


def test_each_optimizer_moves_its_own_networks() -> None:
    made, settings = small(), FAST
    images = made.frame(stripes(6))
    critic = torch.optim.SGD(made.discriminator.parameters(), 0.1)
    gans._step(critic, gans._critic_loss(made, images, settings, rng()))
    grads = {name for name, p in made.named_parameters() if p.grad is not None}
    assert grads == {n for n, _ in made.named_parameters() if n.startswith("discriminator")}
    critic.zero_grad(set_to_none=True)
    maker = torch.optim.SGD([*made.encoder.parameters(), *made.generator.parameters()], 0.1)
    gans._step(maker, gans._maker_loss(made, images, settings))
    grads = {name for name, p in made.named_parameters() if p.grad is not None}
    assert grads == {n for n, _ in made.named_parameters() if not n.startswith("discriminator")}


def test_the_critic_loss_is_telling_apart_and_the_penalty_on_its_slope() -> None:
    made, images, same_rng = small().eval(), stripes(6) / 200, rng(3)
    with torch.no_grad():
        imagined = made.generator(gans.random_cells(6, made.latent_size, same_rng))
        of_made, of_real = made.discriminator(imagined), made.discriminator(images)
    told_apart = gans.discriminator_loss(of_made, of_real, 0.5).item()
    penalty = gans.gradient_penalty(made.discriminator, images, imagined, same_rng).item()
    assert penalty > 0.1
    for weight in (0.0, 10.0):
        settings = GANSettings(discriminator_weight=0.5, penalty=weight)
        loss = gans._critic_loss(made, images, settings, rng(3)).item()
        assert loss == pytest.approx(told_apart + weight * penalty, rel=1e-5)


def test_training_moves_all_three_networks() -> None:
    before, after = trained(0), trained(1)
    for part in ("encoder", "generator", "discriminator"):
        weights, moved = (list(each.get_submodule(part).parameters()) for each in (before, after))
        assert not any(torch.equal(one, two) for one, two in zip(weights, moved, strict=True))


def test_a_critics_step_lowers_its_loss() -> None:
    made, settings, images = small(), FAST, stripes(6) / 200
    critic = torch.optim.SGD(made.discriminator.parameters(), 1e-3)
    before = gans._critic_loss(made, images, settings, rng())
    gans._step(critic, before)
    assert gans._critic_loss(made, images, settings, rng()).item() < before.item()


def test_sampled_images_leave_the_generators_statistics() -> None:
    made = small()
    kept = {name: value.clone() for name, value in made.named_buffers()}
    gans._critic_loss(made, stripes(6) / 200, FAST, rng())
    for name, value in made.named_buffers():
        assert torch.equal(value, kept[name])


def test_progress_is_told() -> None:
    heard: list[tuple[str, int, int]] = []
    with listen(lambda *said: heard.append(said)):
        trained(2)
    assert heard == [("fit", 1, 2), ("fit", 2, 2)]


def test_a_loss_that_is_not_finite_says_what_to_lower() -> None:
    made = small()
    with torch.no_grad():
        made.generator[0].weight.fill_(torch.nan)
    with pytest.raises(BadConfig, match=r"lower gan\.learning_rate"):
        train_gan(made, stripes(4), FAST, epochs=1, batch_size=4, rng=rng(), purpose="fit")
