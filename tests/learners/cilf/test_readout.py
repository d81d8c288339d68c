"""The readout that a learner takes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF, load
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput
from cilf.learners.cilf.joint import Joint
from cilf.learners.cilf.readout import READOUTS
from cilf.nn.network import as_tensor
from cilf.nn.readouts import weigh_scores

QUICK: dict[str, Any] = {"epochs": 2, "update_epochs": 2, "calibration_size": 8}


def vectors(label: int, n: int, seed: int) -> Array:
    rng = np.random.default_rng([label, seed])
    return rng.normal(4 * np.eye(5)[label], 1.0, (n, 5)).astype(np.float32)


def task(labels: range, n: int, seed: int = 0) -> tuple[Array, Array]:
    X = np.concatenate([vectors(label, n, seed) for label in labels])
    return X, np.repeat([f"class {label}" for label in labels], n)


def test_all_decide_together_with_weights_from_the_calibration_part(tmp_path: Path) -> None:
    learner = CILF(**QUICK).fit(*task(range(3), 30)).update(*task(range(3, 4), 20))
    model, (X, y) = learner._model(), task(range(4), 20, seed=1)
    held_out = model.embedding.views(model.held_out.x)
    known = learner._readouts.known
    weights = weigh_scores([known[name].score(held_out) for name in READOUTS], model.held_out.y)
    assert learner._readouts.weights == dict(zip(READOUTS, weights, strict=True))
    views = model.embedding.views(as_tensor(X, torch.device("cpu")))
    total = sum(w * known[name].score(views) for name, w in zip(READOUTS, weights, strict=True))
    expected = learner.classes_[total.argmax(1).numpy()]  # type: ignore[union-attr]
    assert np.array_equal(learner.predict(X), expected)
    assert np.array_equal(learner.detect(X).label, expected)
    assert (expected == y).mean() > 0.8
    learner.save(tmp_path)
    assert np.array_equal(load(tmp_path).predict(X), expected)


@pytest.mark.parametrize("name", READOUTS)
def test_a_named_one_decides_in_predict_and_in_detect(name: str, tmp_path: Path) -> None:
    learner = CILF(readout=name, **QUICK).fit(*task(range(3), 30))
    learner.update(*task(range(3, 4), 20))
    X, y = task(range(4), 20, seed=1)
    views = learner._embedding().views(as_tensor(X, torch.device("cpu")))
    expected = learner.classes_[learner._readouts.known[name].score(views).argmax(1).numpy()]
    assert np.array_equal(learner.predict(X), expected)
    assert np.array_equal(learner.detect(X).label, expected)
    assert (expected == y).mean() > 0.8
    learner.save(tmp_path)
    assert np.array_equal(load(tmp_path).predict(X), expected)
    assert load(tmp_path).update(*task(range(4, 5), 20)).predict(X).tolist() == (
        learner.update(*task(range(4, 5), 20)).predict(X).tolist()
    )


def test_without_a_calibration_part_lda_is_taken() -> None:
    learner = CILF(**QUICK | {"calibration_size": 0}).fit(*task(range(3), 30))
    assert learner._readouts.weights == {"lda": 1.0}


def test_ridge_has_seen_every_training_instance_once() -> None:
    learner = CILF(**QUICK, memory_size=12).fit(*task(range(3), 30))
    first = learner._readouts.ridge
    learner.update(*task(range(3, 4), 20))
    second = learner._readouts.ridge
    assert first is not None
    assert second is not None
    new = learner._memory.X[learner._memory.y == 3]
    assert len(new) < 12  # the memory is small, but nothing that ridge has learned is lost
    units = second._activate(
        learner._embedding().views(torch.from_numpy(vectors(3, 20, 0)))[-1]
    ).sum(0)
    assert torch.equal(second.products[:, :3], first.products)
    assert bool((second.products[:, 3] <= units + 1e-3).all())  # without the calibration part
    assert float(second.products[:, 3].sum()) > 0.4 * float(units.sum())


def test_another_readout_may_be_named_before_an_update() -> None:
    learner = CILF(readout="prototype", **QUICK).fit(*task(range(3), 30))
    learner.set_params(readout="ridge").update(*task(range(3, 4), 20))
    X, y = task(range(4), 20, seed=1)
    assert (learner.predict(X) == y).mean() > 0.8


def test_ridge_can_start_at_an_update_of_a_learner_without_memory() -> None:
    learner = CILF(readout="prototype", memory_size=0, **QUICK).fit(*task(range(3), 30))
    learner.set_params(readout="ridge").update(*task(range(5), 30))
    X, y = task(range(5), 20, seed=1)
    assert (learner.predict(X) == y).mean() > 0.8


def test_ridge_has_no_part_while_there_is_a_class_that_it_has_not_seen() -> None:
    learner = CILF(readout="prototype", memory_size=0, **QUICK).fit(*task(range(3), 30))
    learner.set_params(readout="auto").update(*task(range(3, 5), 30))
    assert list(learner._readouts.weights) == ["lda", "prototype"]
    learner.update(*task(range(3), 30))
    assert list(learner._readouts.weights) == ["lda", "prototype", "ridge"]


def test_an_upper_bound_reads_out_all_that_it_keeps() -> None:
    learner = Joint(**QUICK, readout="ridge").fit(*task(range(3), 30))
    learner.update(*task(range(3, 4), 20))
    ridge = learner._readouts.ridge
    assert ridge is not None
    assert ridge.products.shape[1] == 4


def test_a_model_from_before_readouts_has_the_nearest_prototype() -> None:
    learner = CILF(readout="prototype", **QUICK).fit(*task(range(3), 30))
    arrays, plain = learner._get_state()
    older = copy.copy(learner)
    older._set_state(arrays, {key: plain[key] for key in plain if key != "readout"})
    X, _ = task(range(3), 10, seed=1)
    assert np.array_equal(older.predict(X), learner.predict(X))


@pytest.mark.parametrize("decides", ["lda", "ridge"])
def test_an_older_ridge_is_left_out_or_refused(decides: str) -> None:
    learner = CILF(**QUICK).fit(*task(range(3), 30))
    arrays, plain = learner._get_state()
    del arrays["readout.ridge.counts"]
    older = copy.copy(learner)
    if decides == "ridge":
        with pytest.raises(BadInput, match="older cilf: fit it again"):
            older._set_state(arrays, plain | {"readout": decides})
        return
    older._set_state(arrays, plain | {"readout": decides})
    X, y = task(range(4), 10, seed=1)
    assert (older.predict(X)[:30] == y[:30]).mean() > 0.8
    assert (older.update(*task(range(3, 4), 20)).predict(X) == y).mean() > 0.8
    assert "ridge" in older._readouts.weights


def test_a_readout_that_is_none_is_refused() -> None:
    with pytest.raises(BadConfig, match="unknown readout 'svm'"):
        CILF(readout="svm").fit(*task(range(3), 30))


def test_prototypes_decide_while_ridge_has_not_seen_a_class() -> None:
    """Ridge starts with an update, and no memory shows it the classes of the fit."""
    learner = CILF(readout="lda", memory_size=0, **QUICK).fit(*task(range(3), 30))
    learner.set_params(readout="ridge").update(*task(range(3, 4), 20))
    X, y = task(range(3), 20, seed=1)
    assert (learner.predict(X) == y).mean() > 0.5
