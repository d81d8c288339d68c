from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.nn.backbones import Factory
from cilf.nn.network import (
    Network,
    as_tensor,
    backbone_features,
    embed,
    make_network,
    resolve_device,
    tensor_shape,
    to_numpy,
)

CPU = torch.device("cpu")
INSTANCES = [(5,), (8, 8), (8, 8, 3), (3, 2), (1, 1, 3)]
CHANNELS_LAST = torch.channels_last


def network(
    instance_shape: tuple[int, ...],
    backbone: str | Factory = "auto",
    *,
    seed: int = 0,
    size: int = 6,
) -> Network:
    return make_network(
        backbone, instance_shape, embedding_size=size, width=None, seed=seed, device=CPU
    )


def some(n: int, instance_shape: tuple[int, ...], dtype: str = "uint8") -> Array:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (n, *instance_shape)).astype(dtype)


def weights(net: Network) -> Tensor:
    return torch.cat([p.detach().flatten() for p in net.parameters()])


# ------------------------------------------------------------------------------- tensors


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 4))
def test_tensors_hold_every_value_where_torch_looks_for_it(shape: list[int], n: int) -> None:
    X = np.arange(n * int(np.prod(shape)), dtype=np.float32).reshape(n, *shape)
    x = as_tensor(X, CPU)
    assert tuple(x.shape[1:]) == tensor_shape(tuple(shape))
    for index in np.ndindex(*X.shape):
        row, *rest = index
        seen = rest if len(shape) == 1 else [rest[2] if len(rest) == 3 else 0, rest[0], rest[1]]
        assert x[(row, *seen)] == X[index]


def test_colour_images_stay_channels_last_down_to_the_batch_and_the_last_block() -> None:
    x = as_tensor(some(20, (8, 8, 3)), CPU)
    net = network((8, 8, 3))
    assert x.is_contiguous(memory_format=CHANNELS_LAST)
    batch = x[torch.randperm(20)[:7]]
    assert batch.is_contiguous(memory_format=CHANNELS_LAST)
    formats = []
    for layer in net.backbone.children():
        layer.register_forward_hook(
            lambda _, __, out: formats.append(
                out.ndim < 4 or out.is_contiguous(memory_format=CHANNELS_LAST)
            )
        )
    net(batch)
    assert len(formats) > 5
    assert all(formats)


def test_convolution_weights_are_channels_last() -> None:
    kernels = [p for p in network((8, 8, 3)).parameters() if p.ndim == 4]
    assert kernels
    assert all(kernel.is_contiguous(memory_format=CHANNELS_LAST) for kernel in kernels)


@pytest.mark.parametrize("flags", ["read-only", "fortran"])
def test_arrays_torch_cannot_share_are_copied(flags: str) -> None:
    X = some(3, (4, 4), "float32")
    odd = np.asfortranarray(X) if flags == "fortran" else X.copy()
    if flags == "read-only":
        odd.flags.writeable = False
    x = as_tensor(odd, CPU)
    x += 1
    assert np.array_equal(x[:, 0].numpy(), X + 1)
    assert np.array_equal(odd, X)


def test_numpy_copies_share_nothing_with_the_network() -> None:
    tensor = torch.ones(2, 3, requires_grad=True)
    array = to_numpy(tensor)
    array[:] = 5
    assert array.dtype == np.float32
    assert torch.equal(tensor, torch.ones(2, 3))
    assert to_numpy(tensor.double()).dtype == np.float32


# ------------------------------------------------------------------------------- scaling


@pytest.mark.parametrize("instance_shape", INSTANCES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_standardised_inputs_have_mean_zero_and_deviation_one_in_each_channel(
    instance_shape: tuple[int, ...], dtype: str
) -> None:
    X = some(50, instance_shape, dtype)
    net = network(instance_shape, lambda shape: nn.Flatten())
    net.standardise(as_tensor(X, CPU))
    scaled = net.features(as_tensor(X, CPU)).numpy().reshape(50, len(net.mean), -1)
    for channel in range(len(net.mean)):
        assert scaled[:, channel].mean() == pytest.approx(0, abs=1e-4)
        assert scaled[:, channel].std() == pytest.approx(1, abs=1e-4)


def test_constant_features_are_centred_and_not_blown_up() -> None:
    X = some(30, (3,), "float32")
    X[:, 1] = 1e6 / 3  # a float32 mean of this is a little off, its deviation a little above zero
    net = network((3,), lambda shape: nn.Flatten())
    net.standardise(as_tensor(X, CPU))
    assert net.std[1] == 1
    assert net.features(as_tensor(X, CPU))[:, 1].abs().max() < 1


def test_scaling_is_part_of_what_a_network_saves() -> None:
    net = network((3,))
    net.standardise(as_tensor(some(30, (3,)), CPU))
    other = network((3,), seed=1)
    other.load_state_dict(net.state_dict())
    X = as_tensor(some(4, (3,)), CPU)
    assert torch.equal(embed(other, X), embed(net, X))


# ------------------------------------------------------------------------------- embedding


@pytest.mark.parametrize("instance_shape", INSTANCES)
def test_embedding_size_is_as_asked(instance_shape: tuple[int, ...]) -> None:
    z = embed(network(instance_shape, size=7), as_tensor(some(4, instance_shape), CPU))
    assert z.shape == (4, 7)
    assert not z.requires_grad


@pytest.mark.parametrize("instance_shape", INSTANCES)
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_batches_make_no_difference(instance_shape: tuple[int, ...], batch_size: int) -> None:
    net = network(instance_shape)
    x = as_tensor(some(9, instance_shape), CPU)
    net.standardise(x)
    net.train()
    net(x)  # so that running statistics differ from those of a batch
    one_by_one = torch.cat([embed(net, x[i : i + 1]) for i in range(len(x))])
    assert torch.allclose(embed(net, x, batch_size), one_by_one, atol=1e-4)


def test_embedding_is_the_head_on_the_features() -> None:
    net = network((8, 8))
    x = as_tensor(some(5, (8, 8)), CPU)
    z, features = embed(net, x), backbone_features(net, x)
    assert torch.allclose(features @ net.head.weight.T + net.head.bias, z, atol=1e-5)


@pytest.mark.parametrize("instance_shape", INSTANCES)
def test_no_instances_have_an_empty_embedding(instance_shape: tuple[int, ...]) -> None:
    empty = as_tensor(some(0, instance_shape), CPU)
    assert embed(network(instance_shape), empty).shape == (0, 6)


@pytest.mark.parametrize("training", [True, False])
def test_embedding_leaves_mode_and_statistics_as_they_were(training: bool) -> None:
    net = network((8, 8)).train(training)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    embed(net, as_tensor(some(5, (8, 8)), CPU))
    assert net.training == training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


# ------------------------------------------------------------------------------- seed, parts


def test_the_seed_decides_the_weights() -> None:
    assert torch.equal(weights(network((8, 8))), weights(network((8, 8))))
    assert not torch.equal(weights(network((8, 8))), weights(network((8, 8), seed=1)))


def test_global_generators_have_no_influence_and_stay_untouched(
    untouched: Callable[[], AbstractContextManager[None]],
) -> None:
    before = weights(network((8, 8)))
    with untouched():
        again = network((8, 8))
    assert torch.equal(weights(again), before)


def test_an_own_backbone_gets_a_head_that_fits() -> None:
    net = network((4, 5, 3), lambda shape: nn.Sequential(nn.Flatten(), nn.Linear(60, 11)))
    assert net.head.in_features == 11
    assert net(torch.zeros(2, 3, 4, 5)).shape == (2, 6)


def test_an_own_backbone_gets_its_weights_from_the_seed() -> None:
    def factory(shape: tuple[int, ...]) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(4))

    assert torch.equal(weights(network((3,), factory)), weights(network((3,), factory)))


class Pair(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return x, x


@pytest.mark.parametrize(
    ("backbone", "found"),
    [
        (nn.Identity, r"\(1, 3, 4, 5\)"),
        (lambda: nn.Flatten(0), r"\(60,\)"),
        (Pair, "tuple"),
    ],
)
def test_an_own_backbone_with_a_wrong_output_is_refused(
    backbone: Callable[[], nn.Module], found: str
) -> None:
    with pytest.raises(BadConfig, match=rf"backbone gives {found} for .* shape \(3, 4, 5\)"):
        network((4, 5, 3), lambda shape: backbone())


# ------------------------------------------------------------------------------- device


def test_auto_is_a_device_that_works() -> None:
    device = resolve_device("auto")
    assert device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert network((3,)).to(device).device.type == device.type


@pytest.mark.parametrize(("given_name", "nearest"), [("cpuu", "cpu"), ("cudo:1", "cuda")])
def test_an_unknown_device_is_answered_with_the_nearest(given_name: str, nearest: str) -> None:
    with pytest.raises(BadConfig, match=rf"unknown device .*did you mean '{nearest}'\?"):
        resolve_device(given_name)


@pytest.mark.parametrize("absent", ["cpu:none", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(absent: str) -> None:
    with pytest.raises(BadConfig, match=f"device '{absent}' cannot be used here.*give 'cpu'"):
        resolve_device(absent)


def test_something_else_than_a_name_is_refused() -> None:
    with pytest.raises(BadConfig, match="unknown device 'None'"):
        resolve_device(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_inputs_are_scaled_whatever_their_unit(scale: float) -> None:
    x = torch.tensor([[1.0], [2.0], [3.0]]) * scale
    network = make_network("mlp", (1,), embedding_size=2, width=4, seed=0, device=CPU)
    network.standardise(x)
    root = 1.5**0.5
    torch.testing.assert_close(network.scale(x), torch.tensor([[-root], [0.0], [root]]))


def test_inputs_however_far_away_have_an_embedding_whose_square_is_finite() -> None:
    network = make_network("mlp", (1,), embedding_size=2, width=4, seed=0, device=CPU)
    z = embed(network, torch.tensor([[1e38], [-1e38]]))
    assert z.square().sum().isfinite()


@pytest.mark.parametrize("length", [1.0, 6**0.5])
def test_directions_share_one_deviation(length: float) -> None:
    X = some(50, (6,), "float32") * np.array([5, 1, 1, 1, 1, 0.1], dtype=np.float32)
    net = network((6,), lambda shape: nn.Flatten())
    net.standardise(as_tensor(X, CPU))
    assert len(set(net.std.tolist())) == 6
    X *= length / np.linalg.norm(X, axis=1, keepdims=True)
    net.standardise(as_tensor(X, CPU))
    common = float(np.sqrt(((X - X.mean(0)) ** 2).mean()))
    np.testing.assert_allclose(net.std.numpy(), common, rtol=1e-4)
