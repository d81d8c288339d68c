from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from cilf.nn import precision
from cilf.nn.precision import compute_in, uses_bf16

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(params=[True, False], ids=["new GPU", "old GPU"])
def has_bf16(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: request.param)
    return bool(request.param)


def test_auto_is_bf16_on_gpus_that_have_it_alone(has_bf16: bool) -> None:
    assert uses_bf16("auto", CUDA) == has_bf16
    assert not uses_bf16("auto", CPU)
    assert not uses_bf16("auto", torch.device("mps"))


@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_a_named_precision_holds_on_every_device(device: torch.device, has_bf16: bool) -> None:
    assert uses_bf16("bf16", device)
    assert not uses_bf16("float32", device)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("auto", torch.float32), ("float32", torch.float32), ("bf16", torch.bfloat16)],
)
def test_a_network_computes_in_the_precision(name: str, dtype: torch.dtype) -> None:
    layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    with compute_in(name, CPU):
        found = layer(x)
    assert found.dtype == dtype
    found.float().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32
    assert layer(x).dtype == torch.float32


SETTING, ON = precision.TF32


@pytest.fixture(params=[False, True], ids=["ieee", "tf32"])
def before(request: pytest.FixtureRequest) -> Iterator[str | bool]:
    at_first = read_setting()
    off = {"fp32_precision": "ieee", "allow_tf32": False}[SETTING]
    setattr(torch.backends.cuda.matmul, SETTING, ON if request.param else off)
    yield read_setting()
    setattr(torch.backends.cuda.matmul, SETTING, at_first)


def read_setting() -> str | bool:
    setting: str | bool = getattr(torch.backends.cuda.matmul, SETTING)
    return setting


def test_tf32_ends_with_the_block_and_with_an_error(before: str | bool) -> None:
    with precision._allow_tf32(CUDA):
        assert read_setting() == ON
    assert read_setting() == before

    def fail() -> None:
        with precision._allow_tf32(CUDA):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert read_setting() == before


def test_other_devices_leave_tf32_alone(before: str | bool) -> None:
    with compute_in("bf16", CPU):
        assert read_setting() == before
