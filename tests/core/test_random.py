from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from cilf.core.random import (
    derive_seed,
    generator,
    isolated_torch,
    move_generator,
    torch_generator,
)

PURPOSES: list[tuple[str | int, ...]] = [("fit",), ("update",), ("update", 1), ("update", 2)]


def global_states() -> list[Any]:
    numpy_state = np.random.get_state()  # noqa: NPY002 - the global generator is what is watched
    return [random.getstate(), numpy_state[1].tobytes(), torch.get_rng_state().numpy().tobytes()]


@contextmanager
def untouched() -> Iterator[None]:
    """Disturb the global generators, so that none is in the state a fixed seed would leave."""
    random.random()
    np.random.random()  # noqa: NPY002 - as above
    torch.rand(1)
    before = global_states()
    yield
    assert global_states() == before


def draw_numpy(seed: int, *purpose: str | int) -> Any:
    return generator(seed, *purpose).integers(2**62)


def draw_torch(seed: int, *purpose: str | int) -> Any:
    return torch.randint(2**62, (1,), generator=torch_generator(seed, *purpose)).item()


def draw_isolated(seed: int, *purpose: str | int) -> Any:
    with isolated_torch(seed, *purpose):
        return torch.randint(2**62, (1,)).item()


SOURCES = pytest.mark.parametrize("draw", [draw_numpy, draw_torch, draw_isolated, derive_seed])


@SOURCES
def test_seed_and_purpose_decide(draw: Callable[..., Any]) -> None:
    draws = [draw(seed, *purpose) for seed, purpose in itertools.product(range(20), PURPOSES)]
    again = [draw(seed, *purpose) for seed, purpose in itertools.product(range(20), PURPOSES)]
    assert draws == again
    assert len(set(draws)) == len(draws)


@SOURCES
def test_the_global_generators_stay_untouched(draw: Callable[..., Any]) -> None:
    with untouched():
        draw(0, "fit", 3)


@SOURCES
def test_the_global_generators_have_no_influence(draw: Callable[..., Any]) -> None:
    before = draw(7, "fit")
    random.random()
    np.random.random()  # noqa: NPY002 - as above
    torch.rand(1)
    assert draw(7, "fit") == before


def test_derived_seeds_fit_into_31_bits() -> None:
    seeds = [derive_seed(seed, "weights") for seed in range(200)]
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert max(seeds) > 2**30  # and use them


def test_modules_made_in_isolation_have_the_weights_of_their_seed() -> None:
    def weights(seed: int) -> torch.Tensor:
        with isolated_torch(seed, "weights"):
            return torch.nn.Linear(3, 2).weight.detach()

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


def test_isolation_ends_with_an_error_too() -> None:
    def fail() -> None:
        with isolated_torch(0, "weights"):
            torch.rand(5)
            raise RuntimeError("stop")

    with untouched(), pytest.raises(RuntimeError, match="stop"):
        fail()


def test_isolation_nests() -> None:
    with isolated_torch(0, "outer"):
        torch.rand(1)
        expected = torch.rand(1)
    with isolated_torch(0, "outer"):
        torch.rand(1)
        with isolated_torch(1, "inner"):
            torch.rand(3)
        assert torch.equal(torch.rand(1), expected)


def test_a_device_is_no_part_of_the_seed() -> None:
    named = torch_generator(3, "fit", device=torch.device("cpu"))
    assert named.initial_seed() == torch_generator(3, "fit").initial_seed()
    assert named.device == torch_generator(3, "fit").device == torch.device("cpu")


def test_a_generator_that_is_on_the_device_already_is_not_replaced() -> None:
    generator = torch_generator(0, "draws")
    assert move_generator(generator, torch.device("cpu")) is generator
