"""Mixed precision: the network computes in bfloat16 where the device is fast with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

AUTO, FLOAT32, BF16 = "auto", "float32", "bf16"
PRECISIONS = (AUTO, FLOAT32, BF16)
PRODUCTS = torch.backends.cuda.matmul
# The setting of TF32 and its value; torch before 2.9 has another one.
TF32: tuple[str, str | bool] = (
    ("fp32_precision", "tf32") if hasattr(PRODUCTS, "fp32_precision") else ("allow_tf32", True)
)


@contextmanager
def compute_in(precision: str, device: torch.device) -> Iterator[None]:
    """Compute in this precision inside the block. Weights and their gradients stay float32.

    On CUDA devices the products that autocast leaves in float32 are computed with TF32. The
    setting of TF32 is global, so it is put back at the end of the block.

    >>> layer, x = torch.nn.Linear(2, 1), torch.zeros(1, 2)
    >>> with compute_in("bf16", torch.device("cpu")):
    ...     layer(x).dtype
    torch.bfloat16
    """
    if not uses_bf16(precision, device):
        yield
        return
    with torch.autocast(device.type, torch.bfloat16), _allow_tf32(device):
        yield


def uses_bf16(precision: str, device: torch.device) -> bool:
    """Whether a network on this device computes in bfloat16.

    "auto" does so on CUDA devices that have it. On the CPU bfloat16 is slower than float32.

    >>> cpu = torch.device("cpu")
    >>> uses_bf16("auto", cpu), uses_bf16("bf16", cpu)
    (False, True)
    """
    if precision == AUTO:
        return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return precision == BF16


@contextmanager
def _allow_tf32(device: torch.device) -> Iterator[None]:
    if device.type != "cuda":
        yield
        return
    setting, value = TF32
    before = getattr(PRODUCTS, setting)
    setattr(PRODUCTS, setting, value)
    try:
        yield
    finally:
        setattr(PRODUCTS, setting, before)
