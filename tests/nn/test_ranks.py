"""Two ranks compute what one process computes, with gloo on the CPU."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cilf.core import notices, progress
from cilf.nn.network import make_network
from cilf.nn.rank_processes import run_in_ranks
from cilf.nn.ranks import Group, use_global_statistics

from .rank_work import CPU, WORKS, train_all


@pytest.fixture(scope="module")
def heard() -> list[str]:
    return []


@pytest.fixture(scope="module")
def together(heard: list[str]) -> dict[str, Any]:
    """What two ranks have computed."""
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    notices.LOGGER.addHandler(handler)
    try:
        with progress.listen(lambda stage, done, total: heard.append(stage)):
            return run_in_ranks(train_all, devices=2)
    finally:
        notices.LOGGER.removeHandler(handler)


@pytest.mark.parametrize("name", ["prototypes", "unusual"])
def test_two_ranks_train_as_one_process(name: str, together: dict[str, Any]) -> None:
    alone, both = WORKS[name](), together[name]
    assert both["loss"] == pytest.approx(alone["loss"], rel=1e-5)
    assert alone.keys() == both.keys()
    for key in alone.keys() - {"loss", "classes"}:
        assert alone[key].shape == both[key].shape
        assert np.allclose(alone[key], both[key], rtol=1e-4, atol=1e-5), key
    assert alone["classes"] == both["classes"]  # batch normalisation is what it was


def test_the_result_is_that_of_the_first_rank(together: dict[str, Any]) -> None:
    assert together["rank"] == 0


def test_only_the_first_rank_is_heard(together: dict[str, Any], heard: list[str]) -> None:
    assert {"rank 0", "a notice of rank 0"} <= set(heard)
    assert not any("rank 1" in text for text in heard)
    assert heard.count("fit") == 4 + 3 + 2  # once for each epoch


def test_ranks_drop_other_units_and_do_it_again(together: dict[str, Any]) -> None:
    z = together["dropout"]["z"]
    assert not np.array_equal(z[:30], z[30:])
    assert np.array_equal(z, together["dropout again"]["z"])
    assert np.array_equal(z[:30], WORKS["dropout"]()["z"][:30])


@pytest.mark.parametrize("n", [0, 1, 5, 6])
def test_parts_are_the_batch_in_order(n: int) -> None:
    batch = torch.arange(n)
    parts = [Group(rank, 3).select_part(batch) for rank in range(3)]
    assert torch.equal(torch.cat(parts), batch)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_rank_computes_as_if_there_were_none() -> None:
    group, batch = Group(), torch.arange(3)
    assert group.select_part(batch) is batch
    assert group.gather(batch, 3) is batch
    network = make_network("mlp", (3,), embedding_size=2, width=4, seed=0, device=CPU)

    def step(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return rows, rows

    with group.average(network, step) as averaged:
        assert averaged is step


def test_layers_are_what_they_were_after_an_error() -> None:
    network = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(3)))
    kinds, names = list(map(type, network.modules())), list(network.state_dict())

    def fail() -> None:
        with use_global_statistics(network):
            assert list(network.state_dict()) == names
            assert list(map(type, network.modules())) != kinds
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(map(type, network.modules())) == kinds
