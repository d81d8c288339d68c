"""An encoder, a generator and a critic of images: an auto-encoder whose images look real.

An image is encoded as 4 x 4 cells, each a point on the unit sphere. The critic (a discriminator
with a bounded slope) tells images of random cells from real ones, and has the generator make
reconstructions that look real to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import progress, validation
from cilf.core.parameters import Part
from cilf.core.random import isolated_torch
from cilf.errors import BadConfig
from cilf.nn import training

CELLS = 4  # to a side
SMALLEST, LARGEST = 8, 32  # sides of the images it works on, unless told otherwise
SLOPE = 0.2  # of the activations, below zero
BETAS = (0.5, 0.999)


def _check_image_size(name: str, value: Any) -> None:
    if validation.whole_number(name, value, least=SMALLEST).bit_count() != 1:
        raise BadConfig(f"{name} is {value}: give a power of two (8, 16, 32, ...).")


@dataclass(frozen=True, kw_only=True, repr=False)
class GANSettings(Part):
    """The networks of a GAN, and their training.

    Parameters
    ----------
    epochs : int, default=30
        Number of passes over the data in the initial training.
    update_epochs : int, default=3
        Number of passes over the data in an update.
    learning_rate : float, default=0.0001
        Learning rate of all networks.
    width : int, default=64
        Number of channels of the first layer of each network.
    latent_size : int, default=64
        Dimension of each of the 4 x 4 cells that encode an image.
    image_size : int or None, default=None
        Side of the images that the GAN works on, a power of two. None is the smallest one that
        holds the instances, from 8 to 32.
    reconstruction_weight : float, default=1.0
        Weight of the distance between an image and its reconstruction.
    generator_weight : float, default=0.01
        Weight of the discriminator's logits in the loss of the generator.
    discriminator_weight : float, default=0.01
        Weight of real images in the loss of the discriminator.
    penalty : float, default=10.0
        Weight of the penalty on the slope of the discriminator.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["epochs", "update_epochs"], validation.whole(0)),
        **dict.fromkeys(["width", "latent_size"], validation.whole(1)),
        "image_size": validation.optional(_check_image_size),
        **dict.fromkeys(
            ["learning_rate", "reconstruction_weight", "generator_weight", "discriminator_weight",
             "penalty"],
            validation.in_range(0.0),
        ),
    }  # fmt: skip

    epochs: int = 30
    update_epochs: int = 3
    learning_rate: float = 1e-4
    width: int = 64
    latent_size: int = 64
    image_size: int | None = None
    reconstruction_weight: float = 1.0
    generator_weight: float = 0.01
    discriminator_weight: float = 0.01
    penalty: float = 10.0

    def architecture(self) -> dict[str, Any]:
        """The arguments of :func:`make_gan` that fix the networks."""
        return {
            "image_size": self.image_size,
            "latent_size": self.latent_size,
            "width": self.width,
        }


class GAN(nn.Module):
    """The three networks, and the frame that raw images of one shape are brought to."""

    low: Tensor
    high: Tensor

    def __init__(
        self, shape: tuple[int, ...], *, image_size: int | None, latent_size: int, width: int
    ) -> None:
        super().__init__()
        channels, *sides = shape
        self.side = choose_side(max(sides)) if image_size is None else image_size
        self.latent_size = latent_size
        self.outer = (sides[0], sides[1])  # of raw images
        self.inner, self.margins = fit_into_square(sides[0], sides[1], self.side)
        n_halvings = int(math.log2(self.side // CELLS))
        self.encoder = Encoder(channels, n_halvings, latent_size, width)
        self.generator = _generator(channels, n_halvings, latent_size, width)
        self.discriminator = Discriminator(channels, n_halvings, width)
        self.register_buffer("low", torch.zeros(channels))
        self.register_buffer("high", torch.ones(channels))

    def take_range(self, x: Tensor) -> None:
        """Take the smallest and largest value of each channel from these raw images."""
        self.low.copy_(x.float().amin((0, 2, 3)))
        high = x.float().amax((0, 2, 3))
        self.high.copy_(torch.where(high > self.low, high, self.low + 1))

    def frame(self, x: Tensor) -> Tensor:
        """Raw images as (n, c, side, side) with values from 0 to 1: reduced if larger, padded."""
        low, high = self.low.view(1, -1, 1, 1), self.high.view(1, -1, 1, 1)
        images = ((x.float() - low) / (high - low)).clamp(0, 1)
        if self.inner != self.outer:
            images = F.interpolate(images, self.inner, mode="bilinear", antialias=True)
        return F.pad(images, self.margins, mode="replicate") if any(self.margins) else images

    def unframe(self, images: Tensor) -> Tensor:
        """Undo ``frame``."""
        left, _, top, _ = self.margins
        images = images[:, :, top : top + self.inner[0], left : left + self.inner[1]]
        if self.inner != self.outer:
            images = F.interpolate(images, self.outer, mode="bilinear")
        low, high = self.low.view(1, -1, 1, 1), self.high.view(1, -1, 1, 1)
        return low + (high - low) * images

    def encode(self, x: Tensor) -> Tensor:
        """Cells (n, latent size, 4, 4) of raw images."""
        cells: Tensor = self.encoder(self.frame(x))
        return cells

    def decode(self, cells: Tensor) -> Tensor:
        """Raw images of cells."""
        return self.unframe(self.generator(cells))


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


def choose_side(longest: int) -> int:
    """The power of two that holds images of this size; larger ones are reduced.

    >>> [choose_side(longest) for longest in (8, 9, 28, 32, 96)]
    [8, 16, 32, 32, 32]
    """
    return min(LARGEST, max(SMALLEST, 1 << (longest - 1).bit_length()))


def fit_into_square(height: int, width: int, side: int) -> tuple[tuple[int, int], tuple[int, ...]]:
    """The size of an image that is reduced to fit into a square, and the margins around it.

    >>> fit_into_square(28, 28, 32)
    ((28, 28), (2, 2, 2, 2))
    >>> fit_into_square(64, 32, 32)
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
        return normalize_cells(self.body(images))


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


def normalize_cells(cells: Tensor) -> Tensor:
    """Bring each of the h x w cells of (n, latent size, h, w) to length 1."""
    return F.normalize(cells, dim=1)


def random_cells(n: int, latent_size: int, rng: torch.Generator) -> Tensor:
    """Cells from the uniform distribution on the sphere."""
    shape = (n, latent_size, CELLS, CELLS)
    return normalize_cells(torch.randn(shape, generator=rng, device=rng.device))


# ----------------------------------------------------------------- losses


def discriminator_loss(of_made: Tensor, of_real: Tensor, real_weight: float) -> Tensor:
    """Low where made images have low logits and real ones high."""
    return F.softplus(of_made).mean() + real_weight * F.softplus(-of_real).mean()


def gradient_penalty(
    discriminator: nn.Module, real: Tensor, made: Tensor, rng: torch.Generator
) -> Tensor:
    """Mean of (slope - 1)² at a random point between each real image and a made one.

    The slope is the length of the gradient over all values of the image.
    """
    share = torch.rand(len(real), 1, 1, 1, generator=rng, device=rng.device).to(real.device)
    between = (share * real + (1 - share) * made).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
    slope = (gradient.square().flatten(1).sum(1) + 1e-12).sqrt()  # smooth where it is zero
    return (slope - 1).square().mean()


def generator_loss(
    images: Tensor, reconstructed: Tensor, logits: Tensor, settings: GANSettings
) -> Tensor:
    """Low for reconstructions that are close (small L1) and look real (high logits)."""
    distance = (images - reconstructed).abs().mean()
    return settings.reconstruction_weight * distance - settings.generator_weight * logits.mean()


# ----------------------------------------------------------------- training


def train_gan(
    gan: GAN,
    x: Tensor,
    settings: GANSettings,
    *,
    epochs: int,
    batch_size: int,
    rng: torch.Generator,
    purpose: str,
) -> None:
    """Train the three networks on raw images; they come back in evaluation mode."""
    weights = [*gan.encoder.parameters(), *gan.generator.parameters()]
    maker = torch.optim.Adam(weights, settings.learning_rate, BETAS)
    critic = torch.optim.Adam(gan.discriminator.parameters(), settings.learning_rate, BETAS)
    batches = training.shuffle_batches(len(x), batch_size, rng, x.device)
    for number in range(epochs):
        for rows in batches(number):
            images = gan.frame(x[rows])
            _step(critic, _critic_loss(gan, images, settings, rng))
            loss = _maker_loss(gan, images, settings)
            _step(maker, loss)
        if not math.isfinite(float(loss.detach())):
            raise BadConfig(
                f"{purpose}: the loss became {float(loss.detach())} in epoch {number + 1}: lower "
                "gan.learning_rate."
            )
        progress.report(purpose, number + 1, epochs)
    gan.eval()


def _critic_loss(gan: GAN, images: Tensor, settings: GANSettings, rng: torch.Generator) -> Tensor:
    gan.eval()  # the generator's statistics stay those of encoded images
    with torch.no_grad():
        cells = random_cells(len(images), gan.latent_size, rng).to(images.device)
        made = gan.generator(cells)
    critic = gan.discriminator
    discrimination = discriminator_loss(critic(made), critic(images), settings.discriminator_weight)
    return discrimination + settings.penalty * gradient_penalty(critic, images, made, rng)


def _maker_loss(gan: GAN, images: Tensor, settings: GANSettings) -> Tensor:
    gan.train()
    reconstructed = gan.generator(gan.encoder(images))
    return generator_loss(images, reconstructed, gan.discriminator(reconstructed), settings)


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    loss.backward(inputs=parameters)  # type: ignore[no-untyped-call]
    optimizer.step()
