from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners import Learner
from cilf.learners.odin import ODIN, odin_scores
from cilf.nn.network import Network, as_tensor, embed, make_network

Digits = Callable[[tuple[int, ...], int, int], tuple[Array, Array]]
Kept = Callable[[Learner], Any]
CPU = torch.device("cpu")
KNOWN, NOVEL = (0, 4, 6), 2


@pytest.fixture(scope="module")
def learner(digits: Digits) -> ODIN:
    return ODIN(epochs=10, update_epochs=10, width=8).fit(*digits(KNOWN, 0, 60))


@pytest.fixture(scope="module")
def known(digits: Digits) -> Tensor:
    return as_tensor(digits(KNOWN, 100, 130)[0], CPU)


def smooth() -> tuple[Network, Tensor]:
    """A network in double precision whose gradient finite differences can follow, and inputs."""

    def factory(shape: tuple[int, ...]) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh())

    network = make_network(factory, (4,), embedding_size=3, width=None, seed=0, device=CPU)
    x = 3 * torch.randn(10, 4, generator=torch.Generator().manual_seed(0)) + 1
    network.standardise(x)
    network.double().eval()
    return network, x


def tempered(network: Network, scaled: Tensor, temperature: float) -> Tensor:
    with torch.no_grad():
        odds = (network.embed_scaled(scaled) / temperature).exp()
    return (odds / odds.sum(1, keepdim=True)).amax(1)


def test_without_temperature_and_step_it_is_the_largest_probability(
    learner: ODIN, known: Tensor
) -> None:
    expected = embed(learner._network, known).softmax(1).amax(1)
    assert torch.equal(odin_scores(learner._network, known, 1.0, 0.0), expected)


@pytest.mark.parametrize("temperature", [1.0, 10.0, 1000.0])
def test_the_step_raises_the_score_of_every_instance(
    learner: ODIN, known: Tensor, temperature: float
) -> None:
    plain = odin_scores(learner._network, known, temperature, 0.0)
    moved = odin_scores(learner._network, known, temperature, 0.01)
    assert (moved > plain)[plain < 1 - 1e-6].all()
    assert int((plain < 1 - 1e-6).sum()) > 5


@pytest.mark.parametrize("temperature", [1.0, 10.0, 1000.0])
def test_the_step_goes_where_finite_differences_say(temperature: float) -> None:
    network, x = smooth()
    scaled, epsilon = network.scale(x), 0.05
    direction = torch.zeros_like(scaled)
    for column in range(scaled.shape[1]):
        beside = torch.zeros_like(scaled)
        beside[:, column] = 1e-5
        ahead = tempered(network, scaled + beside, temperature)
        behind = tempered(network, scaled - beside, temperature)
        direction[:, column] = (ahead - behind).sign()
    expected = tempered(network, scaled + epsilon * direction, temperature)
    scores = odin_scores(network, x, temperature, epsilon)
    assert torch.allclose(scores, expected, rtol=1e-12, atol=0)
    assert (scores > tempered(network, scaled, temperature)).all()


def test_scores_are_those_of_single_instances(learner: ODIN, known: Tensor) -> None:
    together = odin_scores(learner._network, known, 10.0, 0.001)
    alone = [odin_scores(learner._network, row[None], 10.0, 0.001) for row in known]
    assert torch.allclose(together, torch.cat(alone), atol=1e-6)


def test_scoring_leaves_no_gradients(learner: ODIN, known: Tensor) -> None:
    network = copy.deepcopy(learner._network)
    network.zero_grad(set_to_none=True)
    odin_scores(network, known, 1000.0, 0.0014)
    assert all(weights.grad is None for weights in network.parameters())


def test_novelty_is_the_score_at_its_temperature_and_step(learner: ODIN, digits: Digits) -> None:
    X = digits((*KNOWN, NOVEL), 130, 140)[0]
    x = as_tensor(X, CPU)
    seen: list[np.ndarray] = []
    for temperature, epsilon in [(1.0, 0.0), (1.0, 0.05), (4.0, 0.0), (4.0, 0.05)]:
        changed = copy.copy(learner).set_params(temperature=temperature, epsilon=epsilon)
        expected = -odin_scores(learner._network, x, temperature, epsilon).numpy()
        np.testing.assert_allclose(changed.detect(X).novelty, expected, rtol=1e-6)
        assert all(np.abs(expected - other).max() > 0.01 for other in seen)
        seen.append(expected)


@pytest.mark.parametrize("accepted", [0.5, 0.9, 0.95, 1.0])
def test_the_threshold_accepts_the_announced_share_of_held_out_instances(
    learner: ODIN, accepted: float, held_out: Kept
) -> None:
    kept = held_out(learner)
    assert kept.counts == [20, 20, 20]
    marked = copy.copy(learner).set_params(accepted_share=accepted).detect(kept.X).is_novel
    assert int(marked.sum()) == pytest.approx((1 - accepted) * len(kept.y), abs=1)


def test_without_held_out_instances_nothing_is_novel(digits: Digits, held_out: Kept) -> None:
    X, y = digits(KNOWN, 0, 2)  # too few to keep any out of training
    learner = ODIN(epochs=0).fit(X, y)
    assert len(held_out(learner).y) == 0
    assert learner.detect(digits((NOVEL,), 0, 10)[0]).n_novel == 0


def test_held_out_instances_are_not_trained_on(learner: ODIN, memory: Kept, held_out: Kept) -> None:
    trained = {image.tobytes() for image in memory(learner).X}
    assert len(trained) == 120
    assert not trained & {image.tobytes() for image in held_out(learner).X}


def test_an_update_learns_the_class_and_holds_part_of_it_out(
    learner: ODIN, digits: Digits, held_out: Kept
) -> None:
    X, y = digits((NOVEL,), 0, 30)
    fresh, truth = digits((*KNOWN, NOVEL), 130, 160)
    before = learner.detect(fresh)
    later = copy.deepcopy(learner).update(X, y)
    assert held_out(later).counts == [20, 10, 20, 20]  # of digits 0, 2, 4 and 6
    assert np.mean(later.predict(fresh) == truth) > 0.9
    new = truth == NOVEL
    assert later.detect(fresh).is_novel[new].mean() < before.is_novel[new].mean()


def test_paper_clusters_known_and_novel_together() -> None:
    assert (
        ODIN.paper(seed=3).get_params()
        == ODIN().set_params(seed=3, clustering__cluster_all=True).get_params()
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 0.0), ("epsilon", -0.1), ("accepted_share", 1.5), ("calibration_size", 0)],
)
def test_what_cannot_work_is_refused(name: str, value: float, digits: Digits) -> None:
    with pytest.raises(BadConfig, match=name):
        ODIN(**{name: value}).fit(*digits(KNOWN, 0, 5))
