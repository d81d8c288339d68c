from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import cilf
from cilf.core.types import Array
from cilf.learners.den.block_task import Expansion
from cilf.learners.den.expandable import ExpandableBlock, block_of
from cilf.learners.den.learner import DEN, sigmoid_uncertainty

CENTRES = np.random.default_rng(5).normal(size=(5, 6)) * 4


def blobs(*classes: int, n: int = 30, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = np.repeat(classes, n)
    return rng.normal(CENTRES[y], 1.0).astype(np.float32), y


def den(**changed: object) -> DEN:
    """A small one, fitted on two classes."""
    usual: dict[str, object] = {"epochs": 5, "width": 16, "expansion__hidden_units": 8}
    usual |= {"update_epochs": 40, "training__update_learning_rate": 0.05}
    return DEN().set_params(**(usual | nest(changed))).fit(*blobs(0, 1))


def nest(changes: dict[str, object]) -> dict[str, object]:
    """Parameters of the expansion by their full names."""
    own = Expansion().get_params()
    return {f"expansion__{k}" if k in own else k: v for k, v in changes.items()}


def block(learner: DEN) -> ExpandableBlock:
    return block_of(learner._network)


# ------------------------------------------------------------- growing


def test_it_grows_only_when_the_loss_stays_high() -> None:
    never_dropped = {"split_threshold": 1e9, "group_lasso": 0.0}
    low = den(loss_threshold=0.8, **never_dropped).update(*blobs(2, 3))
    assert block(low).stamps == [(8, 2), (8, 4)]
    high = den(loss_threshold=1e-6, **never_dropped).update(*blobs(2, 3))
    assert block(high).stamps == [(8, 2), (18, 4)]


def test_a_strong_group_lasso_drops_every_unit() -> None:
    learner = den(loss_threshold=1e-6, split_threshold=1e9, group_lasso=1e3).update(*blobs(2, 3))
    assert block(learner).stamps == [(8, 2), (8, 4)]


def test_the_group_lasso_drops_useless_units_and_keeps_useful_ones() -> None:
    """Of twenty added units two classes need a few; more pressure leaves fewer."""
    sizes = [
        block(
            den(loss_threshold=1e-6, split_threshold=1e9, ex_k=20, group_lasso=by, pull=8.0)
            .update(*blobs(2, 3))
        ).stamps[-1][0] - 8
        for by in (0.0, 0.04, 1e3)
    ]  # fmt: skip
    assert sizes[0] == 20
    assert 0 < sizes[1] < 20
    assert sizes[2] == 0


@pytest.mark.parametrize("layers", [1, 2])
def test_no_layer_gets_more_units_than_it_may(layers: int) -> None:
    learner = den(
        loss_threshold=1e-6, split_threshold=0.0, group_lasso=0.0, max_units=21, pull=0.0,
        hidden_layers=layers,
    )  # fmt: skip
    for label in (2, 3, 4):
        learner.update(*blobs(label))
    assert block(learner).stamps[-1] == (21,) * layers + (5,)


def test_an_update_without_new_classes_adds_nothing() -> None:
    learner = den(loss_threshold=1e-6, split_threshold=0.0, pull=0.0)
    weights = [weight.detach().clone() for weight in block(learner).weights]
    learner.update(*blobs(0, 1, seed=1))
    assert block(learner).stamps == [(8, 2)]
    assert not torch.equal(block(learner).weights[0], weights[0])  # it did learn


# ------------------------------------------------------------- keeping


def test_without_drift_old_outputs_stay_bit_by_bit() -> None:
    """Nothing is selected for retraining where L1 cuts all weights: only added units learn."""
    learner = den(loss_threshold=1e-6, split_threshold=0.0, group_lasso=0.1)
    learner.set_params(expansion__l1=1e6)
    X, _ = blobs(0, 1, 2, 3, seed=1)
    before = learner._outputs(X)[0]
    learner.update(*blobs(2, 3))
    assert block(learner).stamps[-1][0] > 8
    assert torch.equal(learner._outputs(X)[0][:, :2], before)


def test_drifted_units_are_restored_bit_by_bit_and_with_them_the_old_outputs() -> None:
    learner = den(loss_threshold=1e-6, split_threshold=0.0, pull=0.0, ex_k=8)
    X, _ = blobs(0, 1, 2, seed=1)
    before, weights = learner._outputs(X)[0], block(learner).weights[0].detach().clone()
    learner.update(*blobs(2))
    assert block(learner).stamps[-1][0] > 8
    assert torch.equal(block(learner).weights[0][:8], weights)
    assert torch.equal(learner._outputs(X)[0][:, :2], before)


def test_without_a_split_the_units_drift_less_with_a_stronger_pull() -> None:
    moves = []
    for pull in (0.0, 0.5, 5.0, 1e30):
        learner = den(loss_threshold=1e-6, split_threshold=1e9, ex_k=0)
        weights = block(learner).weights[0].detach().clone()
        learner.set_params(expansion__pull=pull).update(*blobs(2))
        moves.append((block(learner).weights[0] - weights).norm().item())
    assert moves[0] > moves[1] > moves[2] > 0
    assert moves[3] == 0


def test_the_backbone_is_frozen_after_the_first_classes() -> None:
    learner = den()
    before = {k: v.clone() for k, v in learner._network.backbone.state_dict().items()}
    scaling = block(learner).scaling.running_mean.clone()
    learner.update(*blobs(2)).update(*blobs(0, 3))
    after = learner._network.backbone.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert torch.equal(block(learner).scaling.running_mean, scaling)


def test_with_a_memory_old_and_new_classes_are_told_apart() -> None:
    learner = den(epochs=20, replay=True).update(*blobs(2, 3)).update(*blobs(4))
    X, y = blobs(0, 1, 2, 3, 4, seed=1)
    assert np.mean(learner.predict(X) == y) > 0.8


def test_l1_makes_weights_zero() -> None:
    zeros = [
        [(weight == 0).float().mean().item() for weight in block(den(l1=l1)).weights]
        for l1 in (0.0, 0.3)
    ]
    assert zeros[0] == [0.0, 0.0]
    assert zeros[1][0] > 0.3


def test_replayed_instances_are_negatives_of_the_new_class() -> None:
    X, _ = blobs(0, 1, seed=1)
    shown = [
        den(replay=replay).update(*blobs(2))._outputs(X)[0][:, 2].mean().item()
        for replay in (False, True)
    ]
    assert shown[1] < shown[0] - 1


# ------------------------------------------------------------- the rest


def test_stamps_are_kept_in_files(tmp_path: Path) -> None:
    learner = den(loss_threshold=1e-6).update(*blobs(2)).update(*blobs(3))
    learner.save(tmp_path / "model")
    loaded = cilf.load(tmp_path / "model")
    assert isinstance(loaded, DEN)
    assert block(loaded).stamps == block(learner).stamps
    assert len(block(loaded).stamps) == 3
    X, _ = blobs(0, 1, 2, 3, 4, seed=1)
    assert torch.equal(loaded._outputs(X)[0], learner._outputs(X)[0])
    for each in (learner, loaded):
        each.update(*blobs(4))
    assert torch.equal(loaded._outputs(X)[0], learner._outputs(X)[0])


def test_uncertain_is_what_no_output_claims() -> None:
    logits = torch.tensor([[0.0, -9.0], [-3.0, -3.0], [5.0, 5.0]])
    assert sigmoid_uncertainty(logits).tolist() == pytest.approx(
        [0.5, 0.952574, 0.0066929], rel=1e-4
    )
