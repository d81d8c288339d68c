"""An encoder, a generator and a critic of images: an auto-encoder whose images look real.

An image is encoded as 4 x 4 cells, each a point on the unit sphere. The critic (a discriminator
with a bounded slope) tells images of random cells from real ones, and has the generator make
reconstructions that look real to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import progress
from cilf.core.random import isolated_torch
from cilf.errors import BadConfig
from cilf.nn import training

CELLS = 4  # to a side
SMALLEST, LARGEST = 8, 32  # sides of the images it works on, unless told otherwise
SLOPE = 0.2  # of the activations, below zero
BETAS = (0.5, 0.999)


@dataclass(frozen=True)
class Settings:
    """How to train the three networks; the weights are those of the terms of their losses."""

    epochs: int
    learning_rate: float
    reconstruction_weight: float = 1.0
    generator_weight: float = 0.01
    discriminator_weight: float = 0.01
    penalty: float = 10.0


class GAN(nn.Module):
    """The three networks, and how raw images of one shape are framed for them."""

    low: Tensor
    high: Tensor

    def __init__(
        self, shape: tuple[int, ...], *, image_size: int | None, latent_size: int, width: int
    ) -> None:
        super().__init__()
        channels, *sides = shape
        self.side = chosen_side(max(sides)) if image_size is None else image_size
        self.latent_size = latent_size
        self.outer = (sides[0], sides[1])  # of raw images
        self.inner, self.margins = placed(sides[0], sides[1], self.side)
        n_halvings = int(math.log2(self.side // CELLS))
        self.encoder = Encoder(channels, n_halvings, latent_size, width)
        self.generator = _generator(channels, n_halvings, latent_size, width)
        self.discriminator = Discriminator(channels, n_halvings, width)
        self.register_buffer("low", torch.zeros(channels))
        self.register_buffer("high", torch.ones(channels))

    def take_range(self, x: Tensor) -> None:
        """Values that the channels of raw images lie between, from these."""
        self.low.copy_(x.float().amin((0, 2, 3)))
        high = x.float().amax((0, 2, 3))
        self.high.copy_(torch.where(high > self.low, high, self.low + 1))

    def framed(self, x: Tensor) -> Tensor:
        """Raw images as (n, c, side, side) with values from 0 to 1: reduced if larger, padded."""
        low, high = self.low.view(1, -1, 1, 1), self.high.view(1, -1, 1, 1)
        images = ((x.float() - low) / (high - low)).clamp(0, 1)
        if self.inner != self.outer:
            images = F.interpolate(images, self.inner, mode="bilinear", antialias=True)
        return F.pad(images, self.margins, mode="replicate") if any(self.margins) else images

    def unframed(self, images: Tensor) -> Tensor:
        """What ``framed`` did, undone."""
        left, _, top, _ = self.margins
        images = images[:, :, top : top + self.inner[0], left : left + self.inner[1]]
        if self.inner != self.outer:
            images = F.interpolate(images, self.outer, mode="bilinear")
        low, high = self.low.view(1, -1, 1, 1), self.high.view(1, -1, 1, 1)
        return low + (high - low) * images

    def encoded(self, x: Tensor) -> Tensor:
        """Raw images -> their cells (n, latent size, 4, 4)."""
        cells: Tensor = self.encoder(self.framed(x))
        return cells

    def decoded(self, cells: Tensor) -> Tensor:
        """Cells -> raw images."""
        return self.unframed(self.generator(cells))


def make_gan(
    shape: tuple[int, ...],
    *,
    image_size: int | None,
    latent_size: int,
    width: int,
    seed: int,
    device: torch.device,
) -> GAN:
    """The networks for raw images of this shape (c, h, w), weights from the seed."""
    with isolated_torch(seed, "gan"):
        gan = GAN(shape, image_size=image_size, latent_size=latent_size, width=width)
    gan.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return gan.to(device)


def chosen_side(longest: int) -> int:
    """The power of two that holds images of this size; larger ones are reduced.

    >>> [chosen_side(longest) for longest in (8, 9, 28, 32, 96)]
    [8, 16, 32, 32, 32]
    """
    return min(LARGEST, max(SMALLEST, 1 << (longest - 1).bit_length()))


def placed(height: int, width: int, side: int) -> tuple[tuple[int, int], tuple[int, ...]]:
    """The size of an image that is reduced to fit into a square, and the margins around it.

    >>> placed(28, 28, 32)
    ((28, 28), (2, 2, 2, 2))
    >>> placed(64, 32, 32)
    ((32, 16), (8, 8, 0, 0))
    """
    reduced = min(1.0, side / max(height, width))
    inner = (max(1, round(reduced * height)), max(1, round(reduced * width)))
    down, right = side - inner[0], side - inner[1]
    return inner, (right // 2, right - right // 2, down // 2, down - down // 2)


# ----------------------------------------------------------------- the networks


class Encoder(nn.Module):
    """Three convolutions for each halving of the sides, down to 4 x 4 cells of length 1."""

    def __init__(self, channels: int, n_halvings: int, latent_size: int, width: int) -> None:
        super().__init__()
        layers = _halvings(channels, n_halvings, width, latent_size, normed=True)
        self.body = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        return on_sphere(self.body(images))


class Discriminator(nn.Module):
    """The encoder's layers without batch statistics (slopes are bounded for each image alone),
    and a linear one: large for real images."""

    def __init__(self, channels: int, n_halvings: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_halvings(channels, n_halvings, width, 2 * width, normed=False),
            nn.LeakyReLU(SLOPE),
            nn.Flatten(),
            nn.Linear(2 * width * CELLS**2, 1),
        )

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.body(images)[:, 0]
        return logits


def _halvings(
    channels: int, n_halvings: int, width: int, n_last: int, *, normed: bool
) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for stage in range(n_halvings):
        n_out = width if stage == 0 else 2 * width
        for stride in (1, 1, 2):
            is_last = stage == n_halvings - 1 and stride == 2
            wide = n_last if is_last else 2 * width if stride == 2 else n_out
            layers.append(nn.Conv2d(channels, wide, 3, stride, 1, bias=is_last or not normed))
            if not is_last:
                layers += [nn.BatchNorm2d(wide)] if normed else []
                layers.append(nn.LeakyReLU(SLOPE))
            channels = wide
    return layers


def _generator(channels: int, n_halvings: int, latent_size: int, width: int) -> nn.Sequential:
    """A convolution, and a transposed and a plain one for each doubling; values from 0 to 1."""
    layers = _block(nn.Conv2d(latent_size, 2 * width, 3, padding=1, bias=False))
    wide = 2 * width
    for stage in range(n_halvings):
        n_out = width if stage == n_halvings - 1 else 2 * width
        layers += _block(nn.ConvTranspose2d(wide, n_out, 4, 2, 1, bias=False))
        layers += _block(nn.Conv2d(n_out, n_out, 3, padding=1, bias=False))
        wide = n_out
    return nn.Sequential(*layers, nn.Conv2d(wide, channels, 3, padding=1), nn.Sigmoid())


def _block(convolution: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    return [convolution, nn.BatchNorm2d(convolution.out_channels), nn.LeakyReLU(SLOPE)]


def on_sphere(cells: Tensor) -> Tensor:
    """(n, latent size, h, w), each of the h x w cells brought to length 1."""
    return F.normalize(cells, dim=1)


def random_cells(n: int, latent_size: int, draws: torch.Generator) -> Tensor:
    """Cells drawn evenly from the sphere."""
    return on_sphere(torch.randn(n, latent_size, CELLS, CELLS, generator=draws))


# ----------------------------------------------------------------- losses


def discriminator_loss(of_made: Tensor, of_real: Tensor, real_weight: float) -> Tensor:
    """Low where made images have low logits and real ones high."""
    return F.softplus(of_made).mean() + real_weight * F.softplus(-of_real).mean()


def gradient_penalty(
    discriminator: nn.Module, real: Tensor, made: Tensor, draws: torch.Generator
) -> Tensor:
    """Mean of (slope - 1)² at a random point between each real image and a made one.

    The slope is the length of the gradient over all values of the image.
    """
    share = torch.rand(len(real), 1, 1, 1, generator=draws).to(real.device)
    between = (share * real + (1 - share) * made).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
    slope = (gradient.square().flatten(1).sum(1) + 1e-12).sqrt()  # smooth where it is zero
    return (slope - 1).square().mean()


def generator_loss(
    images: Tensor, reconstructed: Tensor, logits: Tensor, settings: Settings
) -> Tensor:
    """Reconstructions that are close, and look real: low with small L1 and high logits."""
    distance = (images - reconstructed).abs().mean()
    return settings.reconstruction_weight * distance - settings.generator_weight * logits.mean()


# ----------------------------------------------------------------- training


def train_gan(
    gan: GAN,
    x: Tensor,
    settings: Settings,
    *,
    batch_size: int,
    draws: torch.Generator,
    purpose: str,
) -> None:
    """Train the three networks on raw images; they come back in evaluation mode."""
    made_by = [*gan.encoder.parameters(), *gan.generator.parameters()]
    maker = torch.optim.Adam(made_by, settings.learning_rate, BETAS)
    critic = torch.optim.Adam(gan.discriminator.parameters(), settings.learning_rate, BETAS)
    batches = training.shuffled(len(x), batch_size, draws, x.device)
    for number in range(settings.epochs):
        for rows in batches(number):
            images = gan.framed(x[rows])
            _step(critic, _critics_loss(gan, images, settings, draws))
            loss = _makers_loss(gan, images, settings)
            _step(maker, loss)
        if not math.isfinite(float(loss.detach())):
            raise BadConfig(
                f"{purpose}: the loss became {float(loss.detach())} in epoch {number + 1}: lower "
                "gan_learning_rate."
            )
        progress.report(purpose, number + 1, settings.epochs)
    gan.eval()


def _critics_loss(gan: GAN, images: Tensor, settings: Settings, draws: torch.Generator) -> Tensor:
    gan.eval()  # the generator's statistics stay those of encoded images
    with torch.no_grad():
        cells = random_cells(len(images), gan.latent_size, draws).to(images.device)
        made = gan.generator(cells)
    critic = gan.discriminator
    told_apart = discriminator_loss(critic(made), critic(images), settings.discriminator_weight)
    return told_apart + settings.penalty * gradient_penalty(critic, images, made, draws)


def _makers_loss(gan: GAN, images: Tensor, settings: Settings) -> Tensor:
    gan.train()
    reconstructed = gan.generator(gan.encoder(images))
    return generator_loss(images, reconstructed, gan.discriminator(reconstructed), settings)


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    loss.backward(inputs=parameters)  # type: ignore[no-untyped-call]
    optimizer.step()
