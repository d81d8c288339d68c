from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.svm import OneClassSVM

from cilf import load
from cilf.core import notices
from cilf.errors import BadConfig
from cilf.learners.one_svm import OneSVM, fit_machines, kernel_width, sample_rows

CORNERS = {"a": (-8.0, -8.0), "b": (8.0, -8.0)}


def around(points: list[tuple[float, float]], n: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(point, 1.0, size=(n, 2)) for point in points])


def known(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return around(list(CORNERS.values()), n, seed), np.repeat(list(CORNERS), n)


@pytest.fixture
def learner() -> OneSVM:
    return OneSVM().fit(*known())


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_decision_values_are_those_of_scikit_learn(kernel: str) -> None:
    X, y = known()
    window = around([(0, 8), (8, -8)], seed=1)
    learner = OneSVM(kernel=kernel, nu=0.3, gamma=0.7).fit(X, y)
    z, seen = learner.embed(X), learner.embed(window)
    values = [
        OneClassSVM(kernel=kernel, nu=0.3, gamma=0.7).fit(z[y == name]).decision_function(seen)
        for name in CORNERS
    ]
    best = np.max(values, axis=0)
    found = learner.detect(window)
    # multipliers of both classes sum to 0.3 * 40
    np.testing.assert_allclose(found.novelty, -best / 12, rtol=1e-6)
    assert (found.is_novel == (best < 0)).all()
    assert found.label.tolist() == np.array(list(CORNERS))[np.argmax(values, axis=0)].tolist()
    assert learner.predict(window).tolist() == found.label.tolist()


def test_decision_values_are_those_of_the_dual(learner: OneSVM) -> None:
    """sum_i alpha_i k(x_i, x) - rho with multipliers between 0 and 1 / (nu n) that sum to one."""
    z = learner.embed(around([(1, 2), (-8, -7)], n=3, seed=1)).astype(np.float64)
    gamma = kernel_width(learner.embed(known()[0]), "scale")
    for machine in learner._machines:
        alpha = machine.svm.dual_coef_[0] / machine.mass
        assert alpha.sum() == pytest.approx(1)
        assert alpha.max() <= 1 / (0.1 * 40) + 1e-9
        support = machine.svm.support_vectors_
        kernel = [[np.exp(-gamma * np.square(row - s).sum()) for s in support] for row in z]
        # where the multiplier is not at a bound, the machine's surface passes
        on_surface = support[(alpha > 1e-6) & (alpha < 1 / 4 - 1e-6)]
        rho = np.exp(-gamma * np.square(on_surface[0] - support).sum(1)) @ alpha
        np.testing.assert_allclose(machine.decisions(z), kernel @ alpha - rho, atol=1e-3)


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5, 0.9])
def test_nu_bounds_the_share_of_a_class_that_is_left_outside(nu: float) -> None:
    X, y = known(n=200)
    z = OneSVM().fit(X, y).embed(X)
    positions = (y == "b").astype(np.int64)
    for machine in fit_machines(z, positions, kernel="rbf", nu=nu, gamma="scale"):
        own = z[positions == machine.label]
        outside = (machine.decisions(own) < -1e-4).mean()
        assert outside <= nu
        assert len(machine.svm.support_) / len(own) >= nu  # the other half of the theorem
        assert outside > nu - 0.05  # and with many instances both meet


def test_classes_of_different_sizes_are_compared_on_one_scale() -> None:
    """Midway between two classes that differ in size alone, decision values are alike."""
    X = np.concatenate([around([(-3, 0)], n=400), around([(3, 0)], n=50, seed=1)])
    learner = OneSVM(nu=0.5).fit(X, ["many"] * 400 + ["few"] * 50)
    small = [[2.0, 0.0], [3.0, 1.0], [4.0, 0.0], [3.0, -1.0]]
    assert set(learner.predict(small).tolist()) == {"few"}
    raw = [
        m.svm.decision_function(learner.embed(np.array([[1.0, 0.0]])))[0] for m in learner._machines
    ]
    scaled = [m.decisions(learner.embed(np.array([[1.0, 0.0]])))[0] for m in learner._machines]
    assert raw[0] < raw[1]  # scikit-learn's grow with the class: far outside of the large one
    assert abs(scaled[0] - scaled[1]) < abs(raw[0] - raw[1])


def test_finds_several_novel_classes(learner: OneSVM) -> None:
    found = learner.detect(around([(0, 30), (-40, 0), (40, 40)], seed=1))
    assert found.n_novel == 3
    assert adjusted_rand_score(np.repeat([0, 1, 2], 40), found.cluster) == 1.0


def test_a_new_class_is_known_after_an_update(learner: OneSVM) -> None:
    window = around([*CORNERS.values(), (0, 20)], seed=1)
    assert learner.detect(window).is_novel[80:].all()
    learner.update(around([(0, 20)], seed=2), ["c"] * 40)
    after = learner.detect(window)
    assert after.is_novel[80:].mean() < 0.4
    assert learner.predict(window).tolist() == np.repeat(["a", "b", "c"], 40).tolist()
    assert learner.detect(around([(-40, 40)], seed=3)).is_novel.all()


def test_an_update_fits_to_the_memory_and_the_new_labels() -> None:
    learner = OneSVM(memory_size=10).fit(*known())
    assert np.bincount(learner._sample.y).tolist() == [40, 40]
    X = around([(0, 20), (8, -8)], n=7, seed=2).astype(np.float32)
    learner.update(X, ["c"] * 7 + ["b"] * 7)
    sample = learner._sample
    assert np.bincount(sample.y).tolist() == [5, 5 + 7, 7]
    assert sample.X[sample.y == 2].tolist() == X[:7].tolist()
    first = known()[0].astype(np.float32).tolist()
    assert all(row in first for row in sample.X[sample.y == 0].tolist())
    again = fit_machines(learner.embed(sample.X), sample.y, kernel="rbf", nu=0.1, gamma="scale")
    window = learner.embed(around([(0, 0)], seed=5))
    for machine, expected in zip(learner._machines, again, strict=True):
        assert machine.decisions(window).tolist() == expected.decisions(window).tolist()


def test_a_class_that_the_memory_has_no_room_for_is_forgotten() -> None:
    learner = OneSVM(memory_size=1).fit(*known())
    learner.update(around([(0, 20)], seed=2), ["c"] * 40)
    assert learner.classes_.tolist() == ["a", "b", "c"]
    assert "b" not in learner.predict(known(seed=1)[0])
    assert set(learner.predict(around([CORNERS["a"], (0, 20)], seed=1)).tolist()) == {"a", "c"}
    assert np.isfinite(learner.detect(known(seed=1)[0]).novelty).all()


def test_gamma_scales_with_the_data_of_all_classes() -> None:
    z = np.random.default_rng(0).normal(0, 3, size=(50, 4)).astype(np.float32)
    expected = OneClassSVM(gamma="scale").fit(z)._gamma
    assert kernel_width(z, "scale") == pytest.approx(expected)
    assert kernel_width(z, "auto") == 0.25
    assert kernel_width(z, 7) == 7.0
    assert kernel_width(np.ones((3, 4), dtype=np.float32), "scale") == 0.25


def test_large_classes_are_sampled_and_it_says_so(caplog: pytest.LogCaptureFixture) -> None:
    notices.forget()
    learner = OneSVM(class_size=30).fit(*known())
    assert np.bincount(learner._sample.y).tolist() == [30, 30]
    assert caplog.text.count("class_size=30") == 1
    caplog.clear()
    OneSVM(class_size=40).fit(*known())
    assert not caplog.text


def test_rows_are_drawn_by_class() -> None:
    y = np.array([0] * 50 + [2] * 3)
    rows = sample_rows(y, 5, np.random.default_rng(0))
    assert np.bincount(y[rows]).tolist() == [5, 0, 3]
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert rows.tolist() != sample_rows(y, 5, np.random.default_rng(1)).tolist()


def test_parameters_changed_after_the_fit_do_not_reach_the_machines(
    learner: OneSVM, tmp_path: Path
) -> None:
    window = around([(0, 0)], seed=1)
    before = learner.detect(window)
    learner.set_params(nu=0.9, kernel="linear").save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.detect(window).novelty.tolist() == before.novelty.tolist()
    assert loaded.get_params()["nu"] == 0.9


def test_equal_and_single_instances() -> None:
    learner = OneSVM().fit(np.ones((4, 2)), ["a", "b", "a", "b"])
    learner.update(np.zeros((1, 2)), ["c"])
    assert learner.predict(np.zeros((1, 2))).tolist() == ["c"]
    assert np.isfinite(learner.detect(np.ones((3, 2)), n_novel=2).novelty).all()


def test_values_however_far_away_are_novel(learner: OneSVM) -> None:
    found = learner.detect(np.full((5, 2), 1e30))
    assert found.is_novel.all()
    assert np.isfinite(found.novelty).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "gauss"),
        ("nu", 0.0),
        ("nu", 1.1),
        ("gamma", 0.0),
        ("gamma", "scaled"),
        ("class_size", 0),
        ("features", "row"),
    ],
)
def test_parameters_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name):
        OneSVM().set_params(**{name: value}).fit(*known())


@pytest.mark.parametrize("change", ["fit", "update"])
def test_an_interrupted_change_leaves_the_learner_as_it_was(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = known()
    learner = OneSVM().fit(X, y)
    before = learner.detect(X).novelty

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cilf.learners.one_svm.fit_machines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(learner, change)(X * 3 + 1, y)
    assert np.array_equal(learner.detect(X).novelty, before)
