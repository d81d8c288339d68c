from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from cilf.checks.data import task
from cilf.core.progress import listening
from cilf.errors import BadConfig, BadInput
from cilf.learners.cfo.counterfactual import counterfactuals, surprise_of_none
from cilf.learners.cfo.learner import CFO, with_as_many
from cilf.nn import training
from cilf.nn.network import as_tensor
from cilf.nn.training import Training

SMALL = {
    "training": Training(batch_size=16), "gan_epochs": 20, "gan_width": 8, "latent_size": 16,
    "steps": 20, "gan_learning_rate": 0.005, "open_epochs": 5, "open_learning_rate": 0.01,
}  # fmt: skip


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


# ----------------------------------------------------------------- counterfactuals


def test_counterfactuals_look_like_none_and_stay_near_their_start(before: CFO) -> None:
    x = as_tensor(task().fresh.X[task().fresh.y == 0], torch.device("cpu"))
    with torch.no_grad():
        start = before._gan.decoded(before._gan.encoded(x))
    made = counterfactuals(
        before._gan, before._network, x, steps=20, speed=0.1, distance_weight=1.0
    )
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
        made = learner._made_up(learner._network, learner._gan, x, "x")
        assert (made.dtype, made.shape[1:]) == (x.dtype, x.shape[1:])


def test_the_descent_is_the_one_asked_for(before: CFO) -> None:
    x = as_tensor(task().initial.X[:12].astype(np.float32), torch.device("cpu"))
    seen: list[torch.Tensor] = []
    for steps, speed, weight in [(4, 0.1, 1.0), (4, 0.1, 5.0), (4, 0.02, 1.0), (2, 0.1, 1.0)]:
        asked = CFO(
            training=Training(batch_size=12), steps=steps, speed=speed, distance_weight=weight
        )
        made = asked._made_up(before._network, before._gan, x, "x")
        expected = counterfactuals(
            before._gan, before._network, x, steps=steps, speed=speed, distance_weight=weight
        )
        torch.testing.assert_close(made, expected)
        assert all((made - other).abs().max() > 1.0 for other in seen)  # of 255 grey values
        seen.append(made)


def test_each_image_serves_once_and_batches_are_the_limit(learner: CFO) -> None:
    x = as_tensor(task().initial.X, torch.device("cpu"))
    few = CFO(training=Training(batch_size=10), counterfactual_batches=3, steps=1)
    assert len(few._made_up(learner._network, learner._gan, x, "x")) == 30
    many = CFO(training=Training(batch_size=64), counterfactual_batches=50, steps=1)
    assert len(many._made_up(learner._network, learner._gan, x, "x")) == len(x)


def test_batches_hold_as_many_made_up_images_as_real_ones() -> None:
    draws = torch.Generator().manual_seed(0)
    real = training.shuffled(10, 4, draws, torch.device("cpu"))
    seen = [rows.tolist() for rows in with_as_many(real, 10, 6, draws)(0)]
    assert sorted(row for rows in seen for row in rows if row < 10) == list(range(10))
    for rows in seen:
        half = len(rows) // 2
        assert max(rows[:half]) < 10 <= min(rows[half:])
        assert max(rows) < 16


def test_training_on_them_teaches_none_of_the_known(before: CFO, learner: CFO) -> None:
    X, y = task().initial
    made = before._made_up(before._network, before._gan, as_tensor(X, torch.device("cpu")), "x")
    assert p_none(learner, made).mean() > p_none(before, made).mean() + 0.1
    assert (learner.predict(X) == y).mean() > 0.95


# ----------------------------------------------------------------- updates


def weights_of(learner: CFO) -> list[torch.Tensor]:
    return [weights.clone() for weights in learner._gan.parameters()]


def same(one: list[torch.Tensor], two: list[torch.Tensor]) -> list[bool]:
    return [torch.equal(a, b) for a, b in zip(one, two, strict=True)]


def test_an_update_goes_on_with_a_copy_of_the_gan(learner: CFO) -> None:
    first = weights_of(learner)
    quick = {"update_epochs": 1, "open_epochs": 1, "steps": 1}
    later = copy.copy(learner).set_params(**quick, update_gan_epochs=0).update(*task().answers)
    assert all(same(weights_of(later), first))
    later = copy.copy(learner).set_params(**quick, update_gan_epochs=1).update(*task().answers)
    assert not any(same(weights_of(later), first))
    assert all(same(weights_of(learner), first))


# ----------------------------------------------------------------- what it says


def test_novelty_and_threshold_by_hand(learner: CFO) -> None:
    def scores(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            logits = learner._network(as_tensor(X, torch.device("cpu"))).double().numpy()
        odds = np.exp(np.concatenate([logits, np.zeros((len(logits), 1))], axis=1))
        p = odds / odds.sum(1, keepdims=True)
        return p[:, -1] - p[:, :-1].max(1)

    X = task().window.X
    marks = learner._mark(X)
    np.testing.assert_allclose(marks.novelty, scores(X), atol=1e-5)
    held_out = np.sort(scores(learner._calibration.X))
    assert (marks.marked == (marks.novelty > np.quantile(held_out, 0.95))).all()
    assert 0 < marks.marked.sum() < len(X)


def test_all_held_out_instances_may_be_accepted(learner: CFO) -> None:
    strict, loose = CFO(accepted=0.5), CFO(accepted=1.0)
    for other in (strict, loose):
        other.__dict__.update({k: v for k, v in vars(learner).items() if k.startswith("_")})
    X = learner._calibration.X
    assert not loose._mark(X).marked.any()
    assert strict._mark(X).marked.sum() == len(X) // 2


def test_calibration_instances_are_not_trained_on(learner: CFO) -> None:
    def seen(X: np.ndarray) -> set[bytes]:
        return {image.tobytes() for image in X}

    memory, held_out = seen(learner._memory.X), seen(learner._calibration.X)
    assert not memory & held_out
    assert memory | held_out == seen(task().initial.X)


# ----------------------------------------------------------------- images, files, parameters


@pytest.mark.parametrize("shape", [(12, 9), (9, 9, 3), (40, 36)])
def test_images_of_other_sizes_and_in_colour(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((16, *shape))
    X[:8, :5] += 1
    quick = CFO(**(CFO.check_parameters | {"epochs": 3, "gan_epochs": 1, "steps": 2}))
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
    [("gan_epochs", -1), ("gan_width", 0), ("latent_size", 1.5), ("steps", None), ("speed", -0.1),
     ("image_size", 12), ("image_size", 4), ("accepted", 1.1), ("counterfactual_batches", 0)],
)  # fmt: skip
def test_parameters_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name):
        CFO().set_params(**{name: value}).fit(*task().initial)


def test_parameters_changed_after_the_fit_do_not_reach_the_gan(learner: CFO) -> None:
    arrays, plain = learner._get_state()
    again = CFO(gan_width=3, latent_size=5, image_size=32)
    again._shape = learner._shape
    again._set_state(arrays, plain)
    x = as_tensor(task().window.X, torch.device("cpu"))
    with torch.no_grad():
        assert torch.equal(again._gan.encoded(x), learner._gan.encoded(x))


def test_defaults_are_the_papers() -> None:
    usual = CFO().get_params()
    stated = {
        "gan_epochs": 30, "latent_size": 64, "training__batch_size": 64, "steps": 100, "speed": 0.1,
        "distance_weight": 1.0, "counterfactual_batches": 50, "open_epochs": 3,
        "generator_weight": 0.01, "discriminator_weight": 0.01, "reconstruction_weight": 1.0,
        "gan_learning_rate": 1e-4, "penalty": 10.0,
    }  # fmt: skip
    assert {name: usual[name] for name in stated} == stated
    assert CFO.paper(seed=2).get_params() == CFO(seed=2, cluster_all=True).get_params()


def test_every_stage_tells_its_progress() -> None:
    stages: list[str] = []
    quick = CFO(**(CFO.check_parameters | {"epochs": 1, "gan_epochs": 1, "open_epochs": 1}))
    with listening(lambda stage, done, total: stages.append(stage)):
        quick.fit(*task().initial)
    assert stages == [
        "fit", "fit: images", "fit: counterfactuals", "fit: none of the known",
    ]  # fmt: skip
