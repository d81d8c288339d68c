from __future__ import annotations

import json

import torch
from torch import nn

from cilf.nn.persistence import (
    load_weights,
    plain_architecture,
    restore_architecture,
    weight_arrays,
)


def own(shape: tuple[int, ...]) -> nn.Module:
    return nn.Linear(shape[0], 7)


def test_weights_and_buffers_come_back_in_evaluation_mode() -> None:
    module, other = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in range(2))
    module(torch.randn(8, 3))  # changes the running statistics
    arrays = weight_arrays(module, "one") | weight_arrays(nn.Linear(1, 1), "another")
    load_weights(other, arrays, "one")
    assert not other.training
    for name, value in module.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)


def test_an_architecture_comes_back_from_json() -> None:
    architecture = {"backbone": "mlp", "width": 12, "embedding_size": 3}
    stored = json.loads(json.dumps(plain_architecture(architecture)))
    assert restore_architecture(stored, "convnet") == architecture


def test_a_backbone_that_is_a_function_is_given_again() -> None:
    stored = json.loads(json.dumps(plain_architecture({"backbone": own, "width": None})))
    assert stored["backbone"] is None
    assert restore_architecture(stored, own) == {"backbone": own, "width": None}
