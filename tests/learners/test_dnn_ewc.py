from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from torch import Tensor

from cilf.core.random import torch_generator
from cilf.errors import BadConfig
from cilf.learners import load
from cilf.learners.dnn_base import DNNBase
from cilf.learners.dnn_ewc import DNNEWC, Consolidation
from cilf.nn.anchors import Anchors
from cilf.nn.fisher import diagonal_fisher
from cilf.nn.network import as_tensor

KNOWN, NOVEL, LATER = (0, 4, 6), 2, 3
TRUE = Consolidation(fisher_labels="true")
SILENT = 5  # a feature that old classes do not have


def digits(classes: tuple[int, ...], first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    raw = load_digits()
    rows = np.stack([np.flatnonzero(raw.target == label)[first:last] for label in classes], 1)
    rows = rows.ravel()
    X = raw.data[rows].astype(np.float32)
    X[:, SILENT] = 3.0 * (raw.target[rows] == NOVEL)
    return X, raw.target[rows]


@pytest.fixture(scope="module")
def learner() -> DNNEWC:
    """All that it was trained on stays in its memory, so that a test can see it."""
    learner = DNNEWC(epochs=5, width=16, replay=True, consolidation=TRUE)
    return learner.fit(*digits(KNOWN, 0, 40))


def updated(learner: DNNEWC, label: int = NOVEL, **parameters: object) -> DNNEWC:
    return copy.deepcopy(learner).set_params(**parameters).update(*digits((label,), 0, 30))


def fisher(learner: DNNEWC) -> dict[str, Tensor]:
    """Of all it was trained on last, with true labels."""
    x = as_tensor(learner._memory.X, torch.device("cpu"))
    labels = torch.from_numpy(learner._memory.y)
    return diagonal_fisher(learner._network, x, labels, generator=torch.Generator())


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert torch.allclose(values, other[name], rtol=1e-4, atol=1e-9), name


def test_after_fit_weights_are_anchored_by_the_fisher_of_what_was_trained_on(
    learner: DNNEWC,
) -> None:
    assert_same(learner._anchors.weights, dict(learner._network.named_parameters()))
    assert_same(learner._anchors.importance, fisher(learner))
    assert max(values.max().item() for values in learner._anchors.importance.values()) > 0


def test_labels_are_sampled_from_the_network_or_true() -> None:
    learner = DNNEWC(epochs=2, width=8, replay=True, seed=3).fit(*digits(KNOWN, 0, 40))
    x = as_tensor(learner._memory.X, torch.device("cpu"))
    rng = torch_generator(3, "fit", "fisher")
    sampled = diagonal_fisher(learner._network, x, generator=rng)
    # A memory is in the order of classes, so its labels are other rng: of the same size.
    ours, theirs = learner._anchors.importance["head.bias"], sampled["head.bias"]
    assert 0.2 < (ours.sum() / theirs.sum()).item() < 5
    assert not torch.allclose(ours, fisher(learner)["head.bias"], rtol=0.05)


def test_online_importance_adds_up_and_anchors_are_the_last_weights(learner: DNNEWC) -> None:
    later = updated(learner, consolidation__mode="online", consolidation__decay=0.25)
    assert_same(later._anchors.weights, dict(later._network.named_parameters()))
    expected = fisher(later)
    for name, before in learner._anchors.importance.items():
        expected[name][tuple(map(slice, before.shape))] += 0.25 * before
    assert_same(later._anchors.importance, expected)


def test_separate_penalties_are_kept_as_one_of_the_same_slope(learner: DNNEWC) -> None:
    later = updated(learner, consolidation__mode="separate")
    windows = [
        Anchors.of(learner._network, fisher(learner)),
        Anchors.of(later._network, fisher(later)),
    ]
    somewhere = copy.deepcopy(later._network)
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in somewhere.parameters():
            weight += torch.randn(weight.shape, generator=rng)
    weights = list(somewhere.parameters())
    direct = sum(window.distance(somewhere) for window in windows)
    kept = later._anchors.distance(somewhere)
    slopes = [torch.autograd.grad(value, weights) for value in (direct, kept)]
    for name, one, other in zip(dict(somewhere.named_parameters()), *slopes, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-6), name


def test_three_windows_are_as_large_in_memory_as_two(learner: DNNEWC) -> None:
    two = updated(learner)
    three = updated(two, LATER)
    assert three._anchors.arrays("a").keys() == two._anchors.arrays("a").keys()
    assert three._anchors.weights["head.weight"].shape == (5, 16)


def test_a_huge_weight_does_not_move_what_mattered_and_frees_what_did_not(
    learner: DNNEWC,
) -> None:
    later = updated(learner, consolidation__weight=1e30, replay=False)
    network = dict(later._network.named_parameters())
    for name, before in learner._network.named_parameters():
        assert torch.isfinite(network[name]).all()
        now = network[name][tuple(map(slice, before.shape))]
        mattered = learner._anchors.importance[name] > 1e-20
        assert mattered.any()
        assert torch.allclose(now[mattered], before[mattered], atol=1e-5), name
    name = "backbone.1.weight"  # of the first layer, which sees the silent feature
    silent = learner._anchors.importance[name][:, SILENT]
    assert torch.count_nonzero(silent) == 0
    moved = network[name] - dict(learner._network.named_parameters())[name]
    assert moved[:, SILENT].abs().max() > 1e-3
    assert np.mean(later.predict(digits((NOVEL,), 130, 160)[0]) == NOVEL) > 0.5


def test_without_weight_it_is_dnn_base(learner: DNNEWC) -> None:
    base = DNNBase(epochs=5, width=16, replay=True)
    base.fit(*digits(KNOWN, 0, 40)).update(*digits((NOVEL,), 0, 30))
    assert (
        Anchors.of(base._network)
        .distance(updated(learner, consolidation__weight=0.0)._network)
        .item()
        == 0.0
    )


def test_the_fisher_is_clipped(learner: DNNEWC) -> None:
    clipped = clone(learner).set_params(consolidation__fisher_clip=1e-4).fit(*digits(KNOWN, 0, 40))
    for name, values in clipped._anchors.importance.items():
        assert torch.equal(values, learner._anchors.importance[name].clamp(max=1e-4))
    assert max(values.max().item() for values in learner._anchors.importance.values()) > 1e-3


def test_few_instances_can_stand_for_all(learner: DNNEWC) -> None:
    few = clone(learner).set_params(consolidation__fisher_size=5).fit(*digits(KNOWN, 0, 40))
    assert torch.equal(few._network.head.weight, learner._network.head.weight)
    ours, all_of_them = few._anchors.importance, learner._anchors.importance
    assert not torch.allclose(ours["head.weight"], all_of_them["head.weight"], rtol=0.1)


@pytest.mark.parametrize("mode", ["separate", "online"])
def test_a_loaded_learner_remembers_what_mattered(
    learner: DNNEWC, mode: str, tmp_path: Path
) -> None:
    later = updated(learner, consolidation__mode=mode)
    later.save(tmp_path / "model")
    back = load(tmp_path / "model")
    for kind in ("weights", "importance"):
        ours, stored = (getattr(one._anchors, kind) for one in (later, back))
        assert ours.keys() == stored.keys()
        assert all(torch.equal(ours[name], stored[name]) for name in ours)
    weights = [updated(one, LATER)._network.head.weight for one in (later, back)]
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    ("name", "value"),
    [("weight", -1.0), ("mode", "both"), ("decay", 1.5), ("fisher_labels", "own"),
     ("fisher_size", 0), ("fisher_clip", -1.0)],
)  # fmt: skip
def test_what_cannot_work_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name):
        DNNEWC().set_params(**{f"consolidation__{name}": value}).fit(*digits(KNOWN, 0, 5))
