"""CILF's clustering space, with the views and the marks of other learners."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF, load
from cilf.core.random import torch_generator
from cilf.core.types import Array, Bools
from cilf.errors import BadConfig
from cilf.learners import LEARNERS, Learner, make
from cilf.learners.novel_clustering import NovelClustering
from cilf.learners.shared_space import SharedSpace
from cilf.nn.memory import Memory
from cilf.nn.space import Space
from cilf.nn.views import Views, learn_views

Digits = Callable[[tuple[int, ...], int, int], tuple[Array, Array]]
KNOWN = (0, 1, 2)
CLUSTERING = sorted(
    name
    for name, learner in LEARNERS.items()
    if isinstance(learner().get_params().get("clustering"), NovelClustering)
)
QUICK: dict[str, dict[str, Any]] = {
    "cfo": {"gan__epochs": 1, "gan__width": 4, "counterfactuals__steps": 2, "open_epochs": 1},
    "iforest": {"contamination": 0.1},
}


def mark_all(X: Array) -> Bools:
    return np.ones(len(X), dtype=bool)


def plain_views(X: Array, generator: torch.Generator) -> Views:
    return lambda X: [torch.from_numpy(X)]


def blobs(*centres: float, n: int = 40, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, 1.0, size=(n, 4)) for c in centres]).astype(np.float32)


def make_space(
    X: Array,
    memory: Memory | None = None,
    held_out: Memory | None = None,
    is_novel: Callable[[Array], Bools] = mark_all,
) -> SharedSpace:
    return SharedSpace(X, (memory, held_out), plain_views, is_novel, seed=0)


def labelled(*centres: float, labels: tuple[int, ...], n: int = 40, seed: int = 0) -> Memory:
    return Memory(blobs(*centres, n=n, seed=seed), np.repeat(labels, n))


def test_with_everything_marked_a_window_is_clustered_as_cilf_does(digits: Digits) -> None:
    learner = CILF(epochs=6).fit(*digits(KNOWN, 0, 60))
    X, _ = digits((0, 1, 2, 3, 4), 60, 100)
    found = learner.detect(X)
    memory, held_out = learner._memories()
    learn = partial(learn_views, learner._network, inputs_only=False)
    space = SharedSpace(X, (memory, held_out), learn, mark_all, seed=learner.seed)
    rng = torch_generator(learner.seed, "detect", 0)
    (cluster, curve), points = space.cluster(mark_all(X), None, learner.detector.k_max, rng)
    np.testing.assert_allclose(points, found.embedding, atol=1e-4)
    assert abs(cluster.max() + 1 - found.n_novel) <= 1  # k-means has other starts
    assert list(curve) == list(found.curve)
    assert curve[0] == pytest.approx(found.curve[0])
    (cluster, _), _ = space.cluster(mark_all(X), 2, learner.detector.k_max, rng)
    found, novel = learner.detect(X, n_novel=2), cluster >= 0
    assert found.is_novel[novel].all()  # and a few more are, by CILF's threshold
    pairs = set(zip(cluster[novel].tolist(), found.cluster[novel].tolist(), strict=True))
    assert len(pairs) == 2


def test_the_space_has_the_defaults_of_cilf() -> None:
    shared, detector = Space.fit.__kwdefaults__, CILF().detector
    assert shared == {"size": detector.space_size, "whitening": detector.whitening}


@pytest.mark.parametrize("name", CLUSTERING)
def test_every_learner_that_clusters_novel_instances_can_do_so_in_the_shared_space(
    name: str, digits: Digits, tmp_path: Path
) -> None:
    learner = make(name, **QUICK.get(name, {})).fit(*digits(KNOWN, 0, 60))
    X, _ = digits((0, 1, 2, 3, 4), 60, 90)
    own = learner.detect(X)
    shared = copy.copy(learner).set_params(clustering__space="shared")
    found = shared.detect(X)
    assert np.array_equal(found.novelty, own.novelty)
    assert not (found.is_novel & ~own.is_novel).any()
    assert found.embedding is not None
    assert found.embedding.shape == (len(X), 64)
    assert shared.detect(X, n_novel=2).n_novel == 2
    _assert_equal_after_loading(shared, X, tmp_path / "model")


def _assert_equal_after_loading(learner: Learner, X: Array, folder: Path) -> None:
    learner.save(folder)
    one, other = learner.detect(X), load(folder).detect(X)
    assert one.cluster.tolist() == other.cluster.tolist()
    assert np.array_equal(one.embedding, other.embedding)


def test_classes_are_where_their_labelled_instances_are() -> None:
    X, memory = blobs(0.0, 30.0), labelled(0.0, 9.0, labels=(4, 2))
    window = make_space(X, memory, labelled(0.0, 9.0, labels=(4, 2), n=5)).transform(mark_all(X))
    assert window.held_out.labels.tolist() == [1] * 5 + [0] * 5
    for kept in (window.memory, window.held_out):
        assert torch.cdist(kept.points, window.known).argmin(1).tolist() == kept.labels.tolist()


def test_held_out_instances_stand_for_classes_that_the_memory_lacks() -> None:
    X = blobs(0.0, 30.0)
    held_out = labelled(0.0, 9.0, labels=(0, 1), n=5)
    without = make_space(X, None, held_out).transform(mark_all(X))
    partly = make_space(X, labelled(0.0, labels=(0,)), held_out).transform(mark_all(X))
    assert len(without.known) == len(partly.known) == 2
    assert len(partly.held_out.labels) == 10
    assert (len(without.memory.labels), len(partly.memory.labels)) == (0, 40)


def test_labelled_instances_have_the_marks_that_the_detector_gives_them() -> None:
    X, memory = blobs(0.0, 30.0), labelled(0.0, 9.0, labels=(0, 1))
    held_out = labelled(0.0, 9.0, labels=(0, 1), n=5, seed=1)
    window = make_space(X, memory, held_out, is_novel=lambda X: X[:, 0] > 9).transform(mark_all(X))
    assert window.memory_is_marked.tolist() == (memory.X[:, 0] > 9).tolist()
    assert window.held_out_is_marked.tolist() == (held_out.X[:, 0] > 9).tolist()


@pytest.mark.parametrize("has_held_out", [True, False])
def test_a_class_far_from_the_labelled_instances_is_counted(has_held_out: bool) -> None:
    memory = labelled(0.0, 9.0, labels=(0, 1), n=60)
    held_out = labelled(0.0, 9.0, labels=(0, 1), n=20, seed=1) if has_held_out else None
    rng = torch.Generator().manual_seed(0)
    for centres, n_novel in (((0.0, 9.0, 30.0), 1), ((0.0, 9.0), 0)):
        X = blobs(*centres, seed=2)
        (cluster, _), _ = make_space(X, memory, held_out).cluster(mark_all(X), None, None, rng)
        assert cluster.max() + 1 == n_novel


def test_a_learner_that_keeps_no_instances_is_refused() -> None:
    X = blobs(0.0)
    with pytest.raises(BadConfig, match=r"space is 'shared', which needs .* raise memory_size"):
        make_space(X).transform(mark_all(X))
