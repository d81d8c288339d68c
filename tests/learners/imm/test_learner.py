from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

import cilf
from cilf.core.random import torch_generator
from cilf.errors import BadConfig
from cilf.learners import Learner
from cilf.learners.imm.learner import LEAST_PRECISION, IMMMean, IMMMode, Transfer
from cilf.nn.fisher import diagonal_fisher
from cilf.nn.network import as_tensor

Kept = Callable[[Learner], Any]
CPU = torch.device("cpu")
QUICK = {"epochs": 2, "update_epochs": 2, "width": 4}
CONVOLUTION = "backbone.0.weight"
STATISTICS = "backbone.1.running_mean"


def digits(classes: tuple[int, ...], first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    raw = load_digits()
    rows = np.stack([np.flatnonzero(raw.target == label)[first:last] for label in classes], 1)
    rows = rows.ravel()
    return np.round(raw.images[rows] * (255 / 16)).astype(np.uint8), raw.target[rows]


TASKS = [
    digits((0, 4, 6), 0, 30),
    digits((2, 3), 0, 30),
    digits((4, 2), 30, 60),
    digits((7, 9), 0, 30),
]


def state(learner: IMMMean) -> dict[str, Tensor]:
    return {k: v.clone() for k, v in learner._network.state_dict().items()}


def record(learner: IMMMean) -> tuple[list[dict[str, Tensor]], list[dict[str, Tensor]]]:
    """Weights and precision of every task, kept while the learner goes through them."""
    learner.fit(*TASKS[0])
    weights, precision = [state(learner)], [dict(learner._tasks.newest.precision)]
    for X, y in TASKS[1:]:
        learner.update(X, y)
        weights.append(state(learner))
        precision.append(dict(learner._tasks.newest.precision))
    return weights, precision


@pytest.fixture(scope="module", params=[IMMMean, IMMMode])
def history(request: pytest.FixtureRequest) -> tuple[IMMMean, list, list]:
    learner = request.param(**QUICK)
    return learner, *record(learner)


def test_it_answers_with_the_merged_weights_of_all_tasks_that_were_kept(
    history: tuple[IMMMean, list, list],
) -> None:
    learner, weights, precision = history
    merged = learner._tasks.network.state_dict()
    for name in (CONVOLUTION, "backbone.9.weight", "backbone.1.weight", STATISTICS):
        above = sum(p[name] * w[name] for p, w in zip(precision, weights, strict=True))
        below = sum(p[name] for p in precision)
        assert torch.allclose(merged[name], above / below, atol=1e-6), name
    for row, first in enumerate([0, 0, 0, 1, 1, 3, 3]):  # the task that each class came with
        parts = [
            (p["head.weight"][row], w["head.weight"][row])
            for p, w in zip(precision[first:], weights[first:], strict=True)
        ]
        expected = sum(p * w for p, w in parts) / sum(p for p, _ in parts)
        assert torch.allclose(merged["head.weight"][row], expected, atol=1e-6)
    fresh, _ = digits((0, 2, 7), 100, 110)
    with torch.no_grad():
        logits = learner._tasks.network(as_tensor(fresh, CPU))
        last = learner._network(as_tensor(fresh, CPU))
    assert (learner.predict(fresh) == learner.classes_[logits.argmax(1).numpy()]).all()
    assert not torch.allclose(logits, last, atol=1e-3)


def test_the_mean_gives_all_tasks_the_same() -> None:
    learner = IMMMean(**QUICK).fit(*TASKS[0])
    assert all((p == 1).all() for p in learner._tasks.newest.precision.values())


def test_the_mode_goes_by_the_fisher_information_of_what_was_trained_on() -> None:
    X, y = digits((0, 4, 6), 0, 2)  # too few to hold any out
    learner = IMMMode(**QUICK).fit(X, y)
    precision = learner._tasks.newest.precision
    rng = torch_generator(0, "fit", "fisher")
    fisher = diagonal_fisher(learner._network, as_tensor(X, CPU), generator=rng)
    for name, values in fisher.items():
        assert torch.allclose(precision[name], values + LEAST_PRECISION)
    assert len({round(p.max().item(), 9) for p in fisher.values()}) > 5
    assert (precision[STATISTICS] == 1).all()


def test_a_task_starts_from_the_last_one_and_not_from_the_merged_weights(
    history: tuple[IMMMean, list, list],
) -> None:
    learner, weights, _ = history
    later = copy.deepcopy(learner).set_params(update_epochs=0).update(*digits((0,), 60, 70))
    name = CONVOLUTION
    assert torch.equal(later._network.state_dict()[name], weights[-1][name])
    assert not torch.allclose(
        learner._tasks.network.state_dict()[name], weights[-1][name], atol=1e-4
    )


def test_l2_transfer_holds_a_task_near_the_last_one(history: tuple[IMMMean, list, list]) -> None:
    learner, weights, _ = history
    ways = []
    for l2 in (0.0, 1000.0):
        later = copy.deepcopy(learner).set_params(transfer__l2=l2).update(*digits((8, 1), 0, 20))
        way = later._network.state_dict()[CONVOLUTION] - weights[-1][CONVOLUTION]
        ways.append(way.norm().item())
    assert ways[1] < 0.01 * ways[0]


def test_drop_transfer_takes_part_in_updates_only() -> None:
    plain, dropped = (
        IMMMean(**QUICK, transfer=Transfer(drop=drop)).fit(*TASKS[0]) for drop in (0.0, 0.8)
    )
    assert torch.equal(plain._network.head.weight, dropped._network.head.weight)
    for learner in (plain, dropped):
        learner.update(*TASKS[1])
    assert not torch.allclose(plain._network.head.weight, dropped._network.head.weight, atol=1e-3)
    assert not dropped._network.head._forward_hooks


def test_alpha_is_the_share_of_the_newest_task() -> None:
    learner = IMMMean(**QUICK, alpha=0.25)
    weights, _ = record(learner)
    name = CONVOLUTION
    expected = 0.25 * weights[3][name] + 0.25 * (
        weights[0][name] + weights[1][name] + weights[2][name]
    )
    assert torch.allclose(learner._tasks.network.state_dict()[name], expected, atol=1e-6)
    only_newest = IMMMean(**QUICK, alpha=1.0).fit(*TASKS[0]).update(*TASKS[1])
    for key, weight in only_newest._network.state_dict().items():
        assert torch.allclose(only_newest._tasks.network.state_dict()[key], weight, atol=1e-6)


@pytest.mark.parametrize("made_by", [IMMMean, IMMMode])
def test_without_replay_nothing_is_kept_but_sums_and_held_out_instances(
    made_by: type[IMMMean], memory: Kept, held_out: Kept
) -> None:
    learner = made_by(**QUICK, calibration_size=5).fit(*TASKS[0]).update(*TASKS[1])
    sizes = []
    for first in (30, 50, 70):
        learner.update(*digits((2, 3), first, first + 20))
        arrays, _ = learner._get_state()
        sizes.append({name: array.shape for name, array in arrays.items()})
        assert len(memory(learner).y) == 0
        assert held_out(learner).counts == [5] * 5
    assert sizes[0] == sizes[1] == sizes[2]
    n_weights = sum(w.numel() for w in learner._network.state_dict().values())
    assert (
        sum(
            np.prod(shape) for name, shape in sizes[0].items() if not name.startswith("calibration")
        )
        < 5.1 * n_weights
    )


def test_with_replay_the_memory_is_trained_on(memory: Kept) -> None:
    learner = IMMMean(**QUICK, replay=True, memory_size=20).fit(*TASKS[0]).update(*TASKS[1])
    assert len(memory(learner).y) == 20
    assert set(memory(learner).y.tolist()) == {0, 2, 3, 4, 6}


@pytest.mark.parametrize("n_updates", [0, 2])
@pytest.mark.parametrize("made_by", [IMMMean, IMMMode])
def test_a_loaded_learner_goes_on_as_the_saved_one(
    made_by: type[IMMMean], n_updates: int, tmp_path: Path
) -> None:
    learner = made_by(**QUICK, alpha=0.4).fit(*TASKS[0])
    for X, y in TASKS[1 : 1 + n_updates]:
        learner.update(X, y)
    learner.set_params(alpha=0.7)  # what is merged stays as it is until the next task
    learner.save(tmp_path / "model")
    loaded = cilf.load(tmp_path / "model")
    fresh, _ = digits((0, 2, 7, 5), 100, 110)
    for _ in range(2):
        assert np.array_equal(learner.detect(fresh).novelty, loaded.detect(fresh).novelty)
        assert np.array_equal(learner.embed(fresh), loaded.embed(fresh))
        for one in (learner, loaded):
            one.update(*digits((5, 0), 0, 10))


@pytest.mark.parametrize("made_by", [IMMMean, IMMMode])
def test_merging_keeps_old_classes_that_the_last_task_forgot(made_by: type[IMMMean]) -> None:
    learner = made_by(width=8, update_epochs=8).fit(*digits((0, 4, 6), 0, 60))
    learner.update(*digits((2, 3, 4), 60, 90))
    fresh, truth = digits((0, 6), 120, 160)
    with torch.no_grad():
        last = learner._network(as_tensor(fresh, CPU)).argmax(1).numpy()
    kept = np.mean(learner.predict(fresh) == truth)
    assert kept > np.mean(learner.classes_[last] == truth) + 0.2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", 1.5),
        ("transfer__drop", 1.0),
        ("transfer__l2", -1.0),
        ("fisher_size", 0),
    ],
)
def test_what_cannot_work_is_refused(name: str, value: float) -> None:
    with pytest.raises(BadConfig, match=name.split("__")[-1]):
        IMMMode().set_params(**{name: value}).fit(*TASKS[0])
