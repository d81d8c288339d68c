from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cilf.checks.data import task
from cilf.core.progress import listen
from cilf.errors import BadConfig, BadInput
from cilf.learners import Learner, load
from cilf.learners.cfo.counterfactual import Counterfactuals, surprise_of_none
from cilf.learners.cfo.gan import GANSettings
from cilf.learners.cfo.learner import CFO, add_made_up
from cilf.nn import training
from cilf.nn.network import as_tensor
from cilf.nn.training import Training

Kept = Callable[[Learner], Any]
SMALL = {
    "training": Training(batch_size=16),
    "gan": GANSettings(epochs=20, width=8, latent_size=16, learning_rate=0.005),
    "counterfactuals": Counterfactuals(steps=20),
    "open_epochs": 5,
    "open_learning_rate": 0.01,
}


@pytest.fixture(scope="module")
def learner() -> CFO:
    return CFO(**SMALL).fit(*task().initial)


@pytest.fixture(scope="module")
def before() -> CFO:
    """The classifier of K classes, which has not seen a counterfactual."""
    return CFO(**(SMALL | {"open_epochs": 0})).fit(*task().initial)


def p_none(learner: CFO, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return (-surprise_of_none(learner._network(x))).exp()


def generate(
    learner: CFO, batches: Sequence[torch.Tensor], descent: Counterfactuals | None = None
) -> torch.Tensor:
    descent = descent or learner.counterfactuals
    return descent.generate(learner._gan, learner._network, batches, purpose="x")


# ----------------------------------------------------------------- counterfactuals


def test_counterfactuals_look_like_none_and_stay_near_their_start(before: CFO) -> None:
    x = as_tensor(task().fresh.X[task().fresh.y == 0], torch.device("cpu"))
    with torch.no_grad():
        start = before._gan.decode(before._gan.encode(x))
    made = Counterfactuals(steps=20).descend(before._gan, before._network, x)
    assert (p_none(before, made) > p_none(before, start)).all()
    assert p_none(before, start).mean() < 0.1
    assert p_none(before, made).mean() > 0.3
    others = as_tensor(task().initial.X[: len(x)], torch.device("cpu"))
    to_start = (made - x.float()).flatten(1).norm(dim=1)
    to_others = (others.float() - x.float()).flatten(1).norm(dim=1)
    assert to_start.mean() < 0.75 * to_others.mean()


def test_counterfactuals_are_images_of_the_same_type(learner: CFO) -> None:
    X = task().initial.X
    for instances in (X, X.astype(np.float32) / 255):
        x = as_tensor(instances, torch.device("cpu"))
        made = generate(learner, [x])
        assert (made.dtype, made.shape[1:]) == (x.dtype, x.shape[1:])


def test_the_descent_is_the_one_asked_for(before: CFO) -> None:
    x = as_tensor(task().initial.X[:12].astype(np.float32), torch.device("cpu"))
    seen: list[torch.Tensor] = []
    for steps, speed, weight in [(4, 0.1, 1.0), (4, 0.1, 5.0), (4, 0.02, 1.0), (2, 0.1, 1.0)]:
        descent = Counterfactuals(steps=steps, speed=speed, distance_weight=weight)
        made = descent.descend(before._gan, before._network, x)
        assert all((made - other).abs().max() > 1.0 for other in seen)  # of 255 grey values
        seen.append(made)


def test_each_image_serves_once_and_batches_are_the_limit(learner: CFO) -> None:
    x = as_tensor(task().initial.X, torch.device("cpu"))
    few, many = Counterfactuals(batches=3, steps=1), Counterfactuals(batches=50, steps=1)
    assert len(generate(learner, torch.split(x, 10), few)) == 30
    assert len(generate(learner, torch.split(x, 64), many)) == len(x)


def test_batches_hold_as_many_made_up_images_as_real_ones() -> None:
    rng = torch.Generator().manual_seed(0)
    real = training.shuffle_batches(10, 4, rng, torch.device("cpu"))
    seen = [rows.tolist() for rows in add_made_up(real, 10, 6, rng)(0)]
    assert sorted(row for rows in seen for row in rows if row < 10) == list(range(10))
    for rows in seen:
        half = len(rows) // 2
        assert max(rows[:half]) < 10 <= min(rows[half:])
        assert max(rows) < 16


def test_training_on_them_teaches_none_of_the_known(before: CFO, learner: CFO) -> None:
    X, y = task().initial
    made = generate(before, torch.split(as_tensor(X, torch.device("cpu")), 16))
    assert p_none(learner, made).mean() > p_none(before, made).mean() + 0.1
    assert (learner.predict(X) == y).mean() > 0.95


# ----------------------------------------------------------------- updates


def weights_of(learner: CFO) -> list[torch.Tensor]:
    return [weights.clone() for weights in learner._gan.parameters()]


def same(one: list[torch.Tensor], two: list[torch.Tensor]) -> list[bool]:
    return [torch.equal(a, b) for a, b in zip(one, two, strict=True)]


def test_an_update_goes_on_with_a_copy_of_the_gan(learner: CFO) -> None:
    first = weights_of(learner)
    quick = {"update_epochs": 1, "open_epochs": 1, "counterfactuals__steps": 1}
    later = copy.copy(learner).set_params(**quick, gan__update_epochs=0).update(*task().answers)
    assert all(same(weights_of(later), first))
    later = copy.copy(learner).set_params(**quick, gan__update_epochs=1).update(*task().answers)
    assert not any(same(weights_of(later), first))
    assert all(same(weights_of(learner), first))


# ----------------------------------------------------------------- what it says


def test_novelty_and_threshold_by_hand(learner: CFO, held_out: Kept) -> None:
    def scores(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            logits = learner._network(as_tensor(X, torch.device("cpu"))).double().numpy()
        odds = np.exp(np.concatenate([logits, np.zeros((len(logits), 1))], axis=1))
        p = odds / odds.sum(1, keepdims=True)
        return p[:, -1] - p[:, :-1].max(1)

    X = task().window.X
    found = learner.detect(X)
    np.testing.assert_allclose(found.novelty, scores(X), atol=1e-5)
    threshold = np.quantile(scores(held_out(learner).X), 0.95)
    assert (found.is_novel == (found.novelty > threshold)).all()
    assert 0 < found.is_novel.sum() < len(X)


def test_all_held_out_instances_may_be_accepted(learner: CFO, held_out: Kept) -> None:
    strict, loose = (copy.copy(learner).set_params(accepted_share=share) for share in (0.5, 1.0))
    X = held_out(learner).X
    assert not loose.detect(X).is_novel.any()
    assert strict.detect(X).is_novel.sum() == len(X) // 2


def test_calibration_instances_are_not_trained_on(
    learner: CFO, memory: Kept, held_out: Kept
) -> None:
    def seen(X: np.ndarray) -> set[bytes]:
        return {image.tobytes() for image in X}

    replayed, kept_out = seen(memory(learner).X), seen(held_out(learner).X)
    assert not replayed & kept_out
    assert replayed | kept_out == seen(task().initial.X)


# ----------------------------------------------------------------- images, files, parameters


@pytest.mark.parametrize("shape", [(12, 9), (9, 9, 3), (40, 36)])
def test_images_of_other_sizes_and_in_colour(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((16, *shape))
    X[:8, :5] += 1
    quick = CFO(epochs=3).set_params(**CFO.check_parameters)
    quick.fit(X, ["a"] * 8 + ["b"] * 8).update(X[:6] + 2, ["c"] * 6)
    assert quick.detect(X, n_novel=1).n_novel == 1


@pytest.mark.parametrize("X", [np.eye(6), ["one", "two", "three", "four", "five", "six"]])
def test_only_images_are_taken(X: object) -> None:
    with pytest.raises(BadInput, match=r"X holds .*, which CFO does not .*: give \(n, h, w\) grey"):
        CFO().fit(X, ["a", "b"] * 3)


def test_colour_images_are_not_seen_through_a_frozen_network() -> None:
    assert CFO().features_for(np.zeros((2, 64, 64, 3), dtype=np.uint8)) is None
    with pytest.raises(BadConfig, match="makes vectors of images"):
        CFO(backbone="efficientnet-lite0").fit(*task().initial)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gan.epochs", -1), ("gan.width", 0), ("gan.latent_size", 1.5), ("gan.image_size", 12),
     ("gan.image_size", 4), ("counterfactuals.steps", None), ("counterfactuals.speed", -0.1),
     ("counterfactuals.batches", 0), ("accepted_share", 1.1)],
)  # fmt: skip
def test_parameters_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name):
        CFO().set_params(**{name.replace(".", "__"): value}).fit(*task().initial)


def test_parameters_changed_after_the_fit_do_not_reach_the_gan(
    learner: CFO, tmp_path: Path
) -> None:
    changed = copy.copy(learner).set_params(gan__width=3, gan__latent_size=5, gan__image_size=32)
    changed.save(tmp_path / "model")
    again = load(tmp_path / "model")
    x = as_tensor(task().window.X, torch.device("cpu"))
    with torch.no_grad():
        assert torch.equal(again._gan.encode(x), learner._gan.encode(x))


def test_defaults_are_the_papers() -> None:
    usual = CFO()
    assert (usual.training.batch_size, usual.open_epochs) == (64, 3)
    assert usual.gan == GANSettings(
        epochs=30, latent_size=64, learning_rate=1e-4, penalty=10.0, generator_weight=0.01,
        discriminator_weight=0.01, reconstruction_weight=1.0,
    )  # fmt: skip
    assert usual.counterfactuals == Counterfactuals(
        batches=50, steps=100, speed=0.1, distance_weight=1.0
    )
    clustered = CFO().set_params(seed=2, clustering__cluster_all=True)
    assert CFO.paper(seed=2).get_params() == clustered.get_params()


def test_every_stage_tells_its_progress() -> None:
    stages: list[str] = []
    quick = CFO(epochs=1).set_params(**CFO.check_parameters)
    with listen(lambda stage, done, total: stages.append(stage)):
        quick.fit(*task().initial)
    assert stages == [
        "fit", "fit: images", "fit: counterfactuals", "fit: none of the known",
    ]  # fmt: skip
