from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cilf.learners.imm.moments import Moments, mix


def layer_with(weight: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


def regression(rng: np.random.Generator, scale: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs at right angles to each other, which make the loss separate by weight; targets."""
    directions, _ = np.linalg.qr(rng.normal(size=(12, 3)))
    return directions * np.array(scale), rng.normal(size=12)


def test_the_mode_is_the_joint_optimum_of_quadratic_losses_and_the_mean_is_not() -> None:
    rng = np.random.default_rng(0)
    tasks = [regression(rng, scale) for scale in ([5.0, 0.1, 1.0], [0.2, 3.0, 1.0], [1, 1, 9.0])]
    modes, means, alone = [], [], []
    for X, y in tasks:
        alone.append(np.linalg.lstsq(X, y, rcond=None)[0])
        network = layer_with(torch.from_numpy(alone[-1][None]))
        curvature = torch.from_numpy(np.square(X).sum(0)[None])
        modes.append(Moments.of(network, {"weight": curvature}))
        means.append(Moments.of(network))
    together = np.linalg.lstsq(
        np.concatenate([X for X, _ in tasks]), np.concatenate([y for _, y in tasks]), rcond=None
    )[0]
    by_mode = modes[0].combine(modes[1]).combine(modes[2]).merge_weights()["weight"].numpy()[0]
    by_mean = means[0].combine(means[1]).combine(means[2]).merge_weights()["weight"].numpy()[0]
    assert by_mode == pytest.approx(together, abs=1e-12)
    assert by_mean == pytest.approx(np.mean(alone, axis=0), abs=1e-12)
    assert np.abs(by_mean - together).max() > 0.1


@pytest.mark.parametrize("alpha", [None, 0.2, 1 / 3, 1.0])
@pytest.mark.parametrize("by_mode", [False, True])
def test_running_sums_say_what_keeping_all_tasks_would(alpha: float | None, by_mode: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    outputs = [2, 2, 4, 5]  # two come with the third task, one with the fourth
    tasks = [torch.randn(n, 3, generator=rng, dtype=torch.float64) for n in outputs]
    precision = [torch.rand(n, 3, generator=rng, dtype=torch.float64) + 0.1 for n in outputs]
    if not by_mode:
        precision = [torch.ones_like(p) for p in precision]

    earlier: Moments | None = None
    for weight, p in zip(tasks[:-1], precision[:-1], strict=True):
        task = Moments.of(layer_with(weight), {"weight": p})
        earlier = task if earlier is None else earlier.combine(task)
    newest = Moments.of(layer_with(tasks[-1]), {"weight": precision[-1]})
    merged = mix(earlier, newest, alpha).merge_weights()["weight"]

    shares = [1 / 4] * 4 if alpha is None else [(1 - alpha) / 3] * 3 + [alpha]
    for row in range(5):
        had = [k for k in range(4) if outputs[k] > row]
        above = sum(shares[k] * precision[k][row] * tasks[k][row] for k in had)
        below = sum(shares[k] * precision[k][row] for k in had)
        assert torch.allclose(merged[row], torch.as_tensor(above / below), rtol=1e-12)


def test_an_output_of_the_newest_task_alone_keeps_its_weights() -> None:
    old, new = torch.ones(1, 2), torch.tensor([[3.0, 3.0], [7.0, 8.0]])
    merged = (
        Moments.of(layer_with(old)).combine(Moments.of(layer_with(new))).merge_weights()["weight"]
    )
    assert merged.tolist() == [[2.0, 2.0], [7.0, 8.0]]


def test_running_statistics_are_merged_by_their_mean_and_counts_are_left_out() -> None:
    one, two = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
    for layer, mean, var in [(one, 1.0, 2.0), (two, 5.0, 4.0)]:
        layer.running_mean = torch.tensor([mean])
        layer.running_var = torch.tensor([var])
    sure = Moments.of(one, {"weight": torch.tensor([9.0]), "bias": torch.tensor([9.0])})
    merged = sure.combine(Moments.of(two)).merge_weights()
    assert merged["running_mean"].item() == 3.0
    assert merged["running_var"].item() == 3.0
    assert "num_batches_tracked" not in merged


def test_one_task_is_merged_to_itself() -> None:
    weight = torch.tensor([[0.1, -0.7]])
    task = Moments.of(layer_with(weight), {"weight": torch.tensor([[3.0, 1e-8]])})
    assert torch.allclose(mix(None, task, 0.3).merge_weights()["weight"], weight)


def test_sums_come_back_from_arrays() -> None:
    task = Moments.of(layer_with(torch.tensor([[0.1, -0.7]]))).scale(0.3)
    back = Moments.restore(task.arrays("sums"), "sums", 1, torch.device("cpu"))
    assert list(back.weighted) == list(back.precision) == ["weight"]
    assert torch.equal(back.weighted["weight"], task.weighted["weight"])
    assert torch.equal(back.precision["weight"], task.precision["weight"])


def test_joining_changes_neither_part() -> None:
    one, two = (Moments.of(layer_with(torch.full((1, 1), value))) for value in (1.0, 2.0))
    one.combine(two)
    assert one.weighted["weight"].item() == 1.0
    assert two.weighted["weight"].item() == 2.0
