"""What a file computes is what the module computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.clustering.p_values import rank
from cilf.errors import BadInput
from cilf.nn.onnx_export import export_module

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


class Function(nn.Module):
    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


FUNCTIONS = {
    "pool, no factor": ((2, 7, 5), lambda x: F.adaptive_avg_pool2d(x, (3, 2))),
    "pool to one": ((2, 7, 5), lambda x: F.adaptive_avg_pool2d(x, 1)),
    "enlarge": (
        (3, 8, 6),
        lambda x: F.interpolate(x, (20, 13), mode="bilinear", antialias=True),
    ),
    "shrink": (
        (3, 20, 13),
        lambda x: F.interpolate(x, (8, 6), mode="bilinear", antialias=True),
    ),
    "rank": ((1,), lambda x: rank(torch.tensor([0.3, -0.2, 0.5]), x[:, 0])),
    "pieces": ((3,), lambda x: torch.cat([2 * piece for piece in torch.split(x, 4)])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_operator_of_ours_gives_what_torch_gives(name: str) -> None:
    shape, function = FUNCTIONS[name]
    content = export_module(Function(function), shape, ["y"], {"classes": "[]"})
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for n in (1, 7):  # not as many as were traced
        x = torch.randn(n, *shape, generator=torch.Generator().manual_seed(n))
        (found,) = session.run(None, {"instances": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), function(x), atol=1e-5, rtol=1e-5)
    assert session.get_modelmeta().custom_metadata_map == {"classes": "[]"}


def test_what_has_no_operator_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match=r"cannot be written as ONNX \(.+\): fit the model"):
        export_module(Function(torch.special.i0e), (3,), ["y"], {})
    assert capsys.readouterr().out == ""
