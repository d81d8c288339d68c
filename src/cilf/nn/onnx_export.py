"""Networks as ONNX files, which run without PyTorch.

The tracer sees what a module does with one batch, and the file has dynamic batches. Sizes of images
are fixed, so that pooling to a size and resizing are products with constant matrices.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.onnx.utils import register_custom_op_symbolic, unregister_custom_op_symbolic

from cilf.core.extras import optional
from cilf.errors import BadInput

OPSET = 17
N_TRACED = 2  # instances of the batch that is traced; with one, its axis could be taken for fixed
INPUT = "instances"


def export_module(
    module: nn.Module, shape: tuple[int, ...], outputs: Sequence[str], about: Mapping[str, str]
) -> bytes:
    """The ONNX file of a module, from (n, ...) float32 instances of this shape to its outputs.

    ``about`` becomes the metadata of the file.
    """
    onnx = optional("onnx", extra="onnx", purpose="an export to ONNX")
    example = torch.zeros(N_TRACED, *shape)
    module.eval()
    with torch.no_grad(), _own_operators(), _quiet_tracing(), TemporaryDirectory() as folder:
        module(example)  # what is computed once, at the first use, is no part of the trace
        file = Path(folder) / "model.onnx"
        try:
            torch.onnx.export(
                module, (example,), file, dynamo=False, opset_version=OPSET,
                input_names=[INPUT], output_names=list(outputs),
                dynamic_axes={name: {0: "n"} for name in (INPUT, *outputs)},
            )  # fmt: skip
        except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BadInput(
                f"the network of the model cannot be written as ONNX ({reason}): fit the model "
                "with another backbone."
            ) from error
        model = onnx.load(file)
    onnx.helper.set_model_props(model, dict(about))
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


@contextmanager
def _quiet_tracing() -> Iterator[None]:
    """Without warnings, since sizes shall be constants, and without a print of what failed."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _own_operators() -> Iterator[None]:
    """Write some operators of PyTorch as ``OPERATORS`` says, inside the block."""
    for name, write in OPERATORS.items():
        register_custom_op_symbolic(name, write, OPSET)
    try:
        yield
    finally:
        for name in OPERATORS:
            unregister_custom_op_symbolic(name, OPSET)


# ------------------------------------------------------------------------------- operators


def _write_pool(g: Any, x: Any, size: Any) -> Any:
    return _resample(g, x, lambda axis, side: F.adaptive_avg_pool1d(axis, side))


def _write_resize(g: Any, x: Any, size: Any, align_corners: Any, *scales: Any) -> Any:
    return _resample(g, x, _resize_axis)


def _resize_axis(axis: Tensor, side: int) -> Tensor:
    size = (axis.shape[1], side)
    return F.interpolate(axis[None], size, mode="bilinear", align_corners=False, antialias=True)[0]


def _resample(g: Any, x: Any, resample: Callable[[Tensor, int], Tensor]) -> Any:
    """The operator as products: down the columns of each image, and across its rows."""
    traced = g.original_node  # its sizes are those of the example
    before, after = (
        value.type().varyingSizes()[-2:] for value in (next(traced.inputs()), traced.output())
    )
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        weights = resample(torch.eye(old)[None], new)[0]  # (old, new)
        if axis == 0:
            x = g.op("MatMul", _constant(g, weights.T), x)
        else:
            x = g.op("MatMul", x, _constant(g, weights))
    return x


def _write_searchsorted(g: Any, ordered: Any, values: Any, *options: Any) -> Any:
    """The number of smaller ones."""
    column = g.op("Unsqueeze", values, _constant(g, torch.tensor([1])))
    smaller = g.op("Less", ordered, column)
    one = _constant(g, torch.tensor([1]))
    return g.op("ReduceSum", g.op("Cast", smaller, to_i=7), one, keepdims_i=0)  # 7 is int64


def _write_split(g: Any, x: Any, size: Any, axis: Any, _outputs: int = 1) -> Any:
    """The whole: pieces bound the memory of long batches, and change no result."""
    return x


def _constant(g: Any, value: Tensor) -> Any:
    return g.op("Constant", value_t=value.contiguous())


OPERATORS: dict[str, Callable[..., Any]] = {
    "aten::adaptive_avg_pool2d": _write_pool,
    "aten::_upsample_bilinear2d_aa": _write_resize,
    "aten::searchsorted": _write_searchsorted,
    "aten::split": _write_split,
}
