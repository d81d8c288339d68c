from __future__ import annotations

import pytest
import torch
from torch import Tensor

from cilf.learners.den.expandable import (
    ExpandableBlock,
    block_of,
    copy_frozen,
    dead_units,
    drifts,
    group_soft_threshold,
    make_block_network,
    soft_threshold,
    split_drifted,
    train_only,
    use_block,
)
from cilf.nn.network import backbone_features, make_network
from cilf.nn.training import Settings, epochs, shuffle_batches

N_FEATURES = 5


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def block_of_layers(*units: int, n_outputs: int = 3) -> ExpandableBlock:
    block = ExpandableBlock(N_FEATURES, [(*units, n_outputs)])
    block.reset(rng())
    with torch.no_grad():
        for bias in block.biases:
            bias.copy_(torch.randn(len(bias), generator=rng(1)))
    return block.eval()


def some_features(n: int = 40) -> Tensor:
    return torch.randn(n, N_FEATURES, generator=rng(2))


def sparse(block: ExpandableBlock, share: float = 0.7) -> ExpandableBlock:
    with torch.no_grad():
        for layer, weight in enumerate(block.weights):
            weight *= torch.rand(weight.shape, generator=rng(3 + layer)) > share
    return block


# ------------------------------------------------------------- soft thresholds


def test_soft_threshold_is_its_formula() -> None:
    weight = torch.randn(50, generator=rng())
    expected = [max(abs(w) - 0.4, 0.0) * (1 if w > 0 else -1) for w in weight.tolist()]
    assert soft_threshold(weight, 0.4).tolist() == pytest.approx(expected)


def test_soft_threshold_solves_its_problem() -> None:
    """It is the w nearest to v, with |w| as a penalty: no other w on a fine grid is better."""
    grid = torch.linspace(-3, 3, 6001)
    for value in (-1.7, -0.3, 0.0, 0.2, 2.1):
        cost = 0.5 * (grid - value) ** 2 + 0.5 * grid.abs()
        found = soft_threshold(torch.tensor([value]), 0.5).item()
        assert found == pytest.approx(grid[cost.argmin()].item(), abs=1e-3)


def test_group_soft_threshold_shortens_rows_and_keeps_their_direction() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0]])
    shorter = group_soft_threshold(rows, 0.5)
    assert torch.allclose(shorter[0], rows[0] * 4.5 / 5.0)
    assert shorter[1:].tolist() == [[0.0, -0.0], [0.0, 0.0]]
    assert torch.equal(group_soft_threshold(rows, 0.0), rows)


# ------------------------------------------------------------- stamps


@pytest.mark.parametrize("units", [(6,), (6, 4)])
def test_growing_leaves_earlier_outputs_as_they_are_bit_by_bit(units: tuple[int, ...]) -> None:
    block, x = block_of_layers(*units), some_features()
    before = block(x)
    for task in range(3):
        block.open_stamp(2, rng(task))
        block.add_units([33] * len(units), rng(task))
        with torch.no_grad():  # whatever new units learn
            for weight, new in zip(block.weights, block.new_weights(), strict=True):
                weight[new] = torch.randn(int(new.sum()), generator=rng(9))
        after = block(x)
        assert torch.equal(after[:, : before.shape[1]], before)
        assert after.shape[1] == before.shape[1] + 2
        before = after


def test_outputs_use_the_units_of_their_time_only() -> None:
    block, x = block_of_layers(6, 4), some_features()
    block.open_stamp(1, rng())
    block.add_units([2, 2], rng())
    h = torch.relu(block.scaling(x) @ block.weights[0][:6].T + block.biases[0][:6])
    h = torch.relu(h @ block.weights[1][:4, :6].T + block.biases[1][:4])
    expected = h @ block.weights[2][:3, :4].T + block.biases[2][:3]
    assert torch.allclose(block(x)[:, :3], expected, atol=1e-5)


def test_new_outputs_begin_with_the_mean_bias() -> None:
    block = block_of_layers(6)
    mean = block.biases[-1].mean()
    block.open_stamp(2, rng())
    assert torch.equal(block.biases[-1][3:], mean.expand(2))


def test_added_units_are_connected_to_new_outputs_and_not_to_older_ones() -> None:
    block = block_of_layers(6, 4)
    block.open_stamp(1, rng())
    block.add_units([2, 3], rng())
    assert block.stamps == [(6, 4, 3), (8, 7, 4)]
    assert not block.weights[1][:4, 6:].any()
    assert not block.weights[2][:3, 4:].any()
    assert block.weights[1][4:].all()
    assert block.weights[2][3:].all()


def test_dropping_dead_units_changes_no_output() -> None:
    block, x = block_of_layers(6, 4), some_features()
    block.open_stamp(1, rng())
    block.add_units([3, 3], rng())
    with torch.no_grad():
        block.weights[0][[6, 8]] = 0
        block.weights[1][5] = 0
    before = block(x)
    dead = dead_units(block)
    assert [units.tolist() for units in dead] == [[6, 8], [5]]
    for layer, units in enumerate(dead):
        block.drop_units(layer, units)
    assert block.stamps == [(6, 4, 3), (7, 6, 4)]
    assert torch.allclose(block(x), before, atol=1e-6)


def test_older_units_are_never_dead() -> None:
    block = block_of_layers(6)
    with torch.no_grad():
        block.weights[0].zero_()
    block.open_stamp(1, rng())
    assert [len(units) for units in dead_units(block)] == [0]


# ------------------------------------------------------------- the selected part


def walked(block: ExpandableBlock, outputs: list[int]) -> list[set[int]]:
    """Units that a walk down along non-zero weights meets, layer by layer from the top."""
    met = [set(outputs)]
    for weight in reversed(list(block.weights)):
        rows = weight.tolist()
        met.append({j for i in met[-1] for j, value in enumerate(rows[i]) if value != 0})
    return met[::-1]


@pytest.mark.parametrize("outputs", [[3], [4], [3, 4], [0, 2]])
def test_the_selected_part_is_what_a_walk_down_meets(outputs: list[int]) -> None:
    block = block_of_layers(9, 8)
    block.open_stamp(2, rng(1))
    block.add_units([2, 2], rng(1))
    masks = sparse(block, 0.8).find_subnetwork(torch.tensor(outputs))
    units = walked(block, outputs)
    assert 0 < len(units[1]) < 11  # neither nothing nor all
    for layer, mask in enumerate(masks[:-1]):
        old_in, old_out = (9 if layer else N_FEATURES), (9, 8)[layer]
        expected = {
            (i, j)
            for i in units[layer + 1]
            for j in units[layer]
            if layer == 0 or j < old_in or i >= old_out  # never from a later unit
        }
        assert {(i, j) for i, j in mask.nonzero().tolist()} == expected
    linked = {(i, j) for i in outputs for j, w in enumerate(block.weights[-1][i]) if w != 0}
    assert {(i, j) for i, j in masks[-1].nonzero().tolist()} == linked


def test_training_moves_the_chosen_weights_only() -> None:
    network = make_network(
        "mlp", (4,), embedding_size=3, width=8, seed=0, device=torch.device("cpu")
    )
    use_block(network, [(6, 4, 3)]).reset(rng())
    block = sparse(block_of(network), 0.3)
    x = torch.randn(30, 4, generator=rng())
    features = backbone_features(network, x)
    before, masks = copy_frozen(block), block.find_subnetwork(torch.tensor([1]))
    alone = make_block_network(network)
    assert torch.equal(alone(features), block(features))
    settings = Settings(epochs=2, learning_rate=0.1, weight_decay=0.0)
    batches = shuffle_batches(30, 10, rng(), x.device)
    with train_only(block, masks):
        for _ in epochs(
            alone, features, batches, lambda z, _: z.square().sum(), settings,
            seed=0, purpose="test",
        ):  # fmt: skip
            pass
    for now, old, mask in zip(block.weights, before.weights, masks, strict=True):
        assert torch.equal(now[~mask], old[~mask])
    assert not torch.equal(block.weights[-1][masks[-1]], before.weights[-1][masks[-1]])
    for now, old in zip(block.biases, before.biases, strict=True):
        assert torch.equal(now, old)
        assert now.requires_grad
    assert torch.equal(block.scaling.running_mean, before.scaling.running_mean)


# ------------------------------------------------------------- split and duplication


def drifted(*units: int) -> tuple[ExpandableBlock, ExpandableBlock]:
    """A block with a task at hand, whose unit i of each layer moved by i / 10, and before that."""
    block = block_of_layers(*units)
    before = copy_frozen(block)
    block.open_stamp(1, rng())
    with torch.no_grad():
        for weight, n in zip(block.weights[:-1], units, strict=True):
            weight[:, 0] += torch.arange(n) / 10
    return block, before


def test_drift_is_the_length_of_the_move() -> None:
    block, before = drifted(6)
    assert torch.allclose(drifts(block, before)[0], torch.arange(6) / 10, atol=1e-6)


def test_the_largest_drifts_are_split_and_restored_bit_by_bit() -> None:
    block, before = drifted(6)
    moved = block.weights[0].detach().clone()
    split = split_drifted(block, before, threshold=0.15, room=[2])
    assert split[0].tolist() == [5, 4]
    assert block.stamps == [(6, 3), (8, 4)]
    assert torch.equal(block.weights[0][[5, 4]], before.weights[0][[5, 4]])
    assert torch.equal(block.weights[0][6:], moved[[5, 4]])
    assert torch.equal(block.weights[0][:4], moved[:4])  # 2 and 3 drifted too: there was no room


def test_nothing_is_split_below_the_threshold() -> None:
    block, before = drifted(6)
    assert [len(units) for units in split_drifted(block, before, 0.6, [6])] == [0]
    assert block.stamps[-1] == (6, 4)


def test_splitting_all_that_moved_brings_back_old_outputs_and_keeps_the_new() -> None:
    block, before = drifted(6)
    x = some_features()
    new = block(x)[:, 3:]
    split_drifted(block, before, threshold=0.0, room=[6])
    assert torch.equal(block(x)[:, :3], before(x))
    assert torch.allclose(block(x)[:, 3:], new, atol=1e-5)


def test_copies_in_two_layers_are_connected_to_each_other() -> None:
    block, before = drifted(4, 3)
    x = some_features()
    with torch.no_grad():  # the first unit of a layer has not moved; let it not count
        block.weights[2][3, 0] = 0
    new = block(x)[:, 3:]
    split_drifted(block, before, threshold=0.0, room=[9, 9])
    assert block.stamps[-1] == (7, 5, 4)
    assert torch.equal(block(x)[:, :3], before(x))
    assert torch.allclose(block(x)[:, 3:], new, atol=1e-5)
    assert not block.weights[1][:3, 4:].any()  # older units see no copy
