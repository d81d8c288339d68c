from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from cilf.core import notices
from cilf.errors import BadConfig
from cilf.learners.lacu_svm.learner import LACUSVM
from cilf.learners.lacu_svm.machine import (
    Costs,
)

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]
KNOWN = [(-3, 0), (3, 0), (0, 3)]
NOVEL = (0, -4)
EXACT = Costs(C=1.0, C_window=None, ramp=-0.3, eta=1.3, rho_margin=0.1, tolerance=1e-7)


def around(points: list[tuple[float, float]], n: int = 20, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(point, 0.8, size=(n, 2)) for point in points])


@pytest.fixture
def learner() -> LACUSVM:
    return LACUSVM().fit(around(KNOWN), np.repeat(["left", "right", "top"], 20))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_without_a_window_it_is_scikit_learns_machine(kernel: str) -> None:
    X, y = around(KNOWN, n=30), np.repeat([0, 1, 2], 30)
    learner = LACUSVM(kernel=kernel, iterations=0, costs=Costs(tolerance=1e-6)).fit(X, y)
    z = learner.embed(X)
    one_by_one = [
        SVC(kernel=kernel, gamma=1 / 2, coef0=0.0, tol=1e-6).fit(z, y == label)
        for label in range(3)
    ]
    window = around([*KNOWN, NOVEL], seed=2)
    points = learner.embed(window)
    decisions = np.stack([svm.decision_function(points) for svm in one_by_one], axis=1)
    assert learner.predict(window).tolist() == decisions.argmax(1).tolist()
    np.testing.assert_allclose(learner.detect(window).novelty, -decisions.max(1), atol=1e-3)


def test_marks_what_no_machine_wants(learner: LACUSVM) -> None:
    window = around([*KNOWN, NOVEL], seed=3)
    found = learner.detect(window)
    truth = np.repeat([False, False, False, True], 20)
    marked = found.novelty > 0
    assert marked[truth].mean() > 0.9
    assert marked[~truth].mean() < 0.1
    assert found.is_novel.tolist() == marked.tolist()
    names = np.repeat(["left", "right", "top"], 20)
    assert (found.label[~truth] == names).mean() > 0.9


def test_the_window_counts_and_predictions_do_not_know_it(learner: LACUSVM) -> None:
    window = around([*KNOWN, NOVEL], seed=3)
    before = learner.predict(window)
    alone = learner.detect(window[:20], n_novel=0)
    together = learner.detect(window, n_novel=0)
    assert np.abs(alone.novelty - together.novelty[:20]).max() > 0.05
    assert learner.predict(window).tolist() == before.tolist()


def test_windows_larger_than_its_sample_are_judged_whole(
    learner: LACUSVM, caplog: pytest.LogCaptureFixture
) -> None:
    window = around([*KNOWN, NOVEL], n=50, seed=4)
    truth = np.repeat([False, False, False, True], 50)
    learner.set_params(max_window=60, max_labelled=45)
    notices.forget()
    found = learner.detect(window, n_novel=1)
    learner.detect(window[:150], n_novel=1)
    assert [record.message.split("=")[0].split()[-1] for record in caplog.records] == [
        "max_labelled",
        "max_window",
    ]
    assert roc_auc_score(truth, found.novelty) > 0.95
    notices.forget()
    caplog.clear()
    learner.set_params(max_window=200, max_labelled=60).detect(window, n_novel=1)
    assert not caplog.records


def test_what_the_memory_leaves_out_of_training_is_said(caplog: pytest.LogCaptureFixture) -> None:
    notices.forget()
    labelled = around(KNOWN), np.repeat(["left", "right", "top"], 20)
    LACUSVM(memory_size=60).fit(*labelled)
    assert not caplog.records
    LACUSVM(memory_size=45).fit(*labelled)
    assert "memory_size=45" in caplog.text


def test_the_kernel_is_fixed_by_fit(learner: LACUSVM) -> None:
    window = around([*KNOWN, NOVEL], seed=3)
    before = learner.detect(window, n_novel=0).novelty
    learner.set_params(kernel="linear", gamma=3.0)
    assert learner.detect(window, n_novel=0).novelty.tolist() == before.tolist()


def test_a_class_that_was_not_remembered_is_never_predicted() -> None:
    learner = LACUSVM(memory_size=2).fit(around(KNOWN), np.repeat(["left", "right", "top"], 20))
    window = around(KNOWN, seed=1)
    assert set(learner.predict(window).tolist()) == {"left", "right"}
    assert np.isfinite(learner.detect(window).novelty).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("costs__C", 0.0),
        ("costs__C_window", -1.0),
        ("costs__ramp", 0.5),
        ("costs__eta", 0.9),
        ("costs__rho_margin", -0.1),
        ("iterations", 1.5),
        ("kernel", "sigmoid"),
        ("gamma", 0),
        ("degree", 0),
        ("max_window", 0),
        ("max_labelled", 1),
        ("memory_size", 1),
        ("costs__tolerance", "small"),
    ],
)
def test_parameters_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name.replace("__", ".")):
        LACUSVM().set_params(**{name: value}).fit(around(KNOWN), ["a", "b", "c"] * 20)
