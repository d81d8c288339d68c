"""CILF's own behaviour beyond what every learner is checked for."""

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from cilf import CILF, load
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners import Joint
from cilf.nn.training import Training

QUICK = {"epochs": 6, "update_epochs": 4, "detect_epochs": 2, "detect_steps": 5}


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array]:
    data = load_digits()
    return data.images.astype(np.float32), data.target


def of_classes(
    digits: tuple[Array, Array], classes: range, start: int, n: int
) -> tuple[Array, Array]:
    X, y = digits
    rows = np.concatenate([np.flatnonzero(y == c)[start : start + n] for c in classes])
    return X[rows], y[rows]


@pytest.fixture(scope="module")
def fitted(digits: tuple[Array, Array]) -> CILF:
    return CILF(**QUICK).fit(*of_classes(digits, range(3), 0, 45))


@pytest.fixture(scope="module")
def window(digits: tuple[Array, Array]) -> Array:
    return of_classes(digits, range(5), 60, 15)[0]


def test_memory_and_calibration_share_no_instance(fitted: CILF) -> None:
    kept = {image.tobytes() for image in fitted._memory.X}
    held_out = {image.tobytes() for image in fitted._calibration.X}
    assert len(held_out) == 3 * 15
    assert not kept & held_out


def test_an_update_rebalances_memory_and_completes_calibration(
    fitted: CILF, digits: tuple[Array, Array]
) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=40, calibration_size=20)
    learner.update(*of_classes(digits, range(2, 5), 60, 30))
    assert np.bincount(learner._memory.y).tolist() == [8, 8, 8, 8, 8]
    assert np.bincount(learner._calibration.y).tolist() == [15, 15, 20, 10, 10]
    held_out = {image.tobytes() for image in learner._calibration.X}
    assert not held_out & {image.tobytes() for image in learner._memory.X}


def test_without_memory_old_prototypes_stay_where_no_instance_moves_them(
    fitted: CILF, digits: tuple[Array, Array]
) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=0)
    learner.update(*of_classes(digits, range(3, 4), 60, 30))  # forgets the memory
    before = learner._prototypes.clone()
    learner.update(*of_classes(digits, range(4, 5), 60, 30))
    assert len(learner._memory) == 0
    assert torch.equal(learner._prototypes[:3], before[:3])


def test_a_class_missing_from_memory_is_still_known_in_detection(
    fitted: CILF, window: Array, digits: tuple[Array, Array]
) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=0)
    learner.update(*of_classes(digits, range(3, 4), 60, 30))
    assert np.isfinite(learner.detect(window).novelty).all()


@pytest.mark.parametrize(
    "change",
    [
        {"lambda1": 0.0}, {"lambda2": 0.0}, {"distill": 0.0}, {"replay": 0}, {"order": "none"},
        {"order": "weights"}, {"weighted": True}, {"cluster_on": "embedding"},
        {"cluster_on": "features"},
        {"calibration_size": 0}, {"detect_epochs": 0}, {"exact_prototypes": False},
        {"count": "silhouette", "k_max": 3}, {"count": "curvature", "k_max": 3},
        {"training__augmentation": None}, {"training__clip": 0.5},
        {"cluster_beta": 0.8}, {"memory_size": 0},
        {"triplets": "hardest"}, {"triplets": "average"}, {"squared": False},
        {"length": 4.0}, {"strict": True},
        {"distill_on": "embeddings"}, {"temperature": 2.0}, {"memory_choice": "herding"},
    ],
    ids=str,
)  # fmt: skip
def test_every_ablation_runs_the_whole_loop(
    change: dict[str, object], digits: tuple[Array, Array], window: Array
) -> None:
    learner = CILF(**QUICK).set_params(**change).fit(*of_classes(digits, range(3), 0, 45))
    found = learner.detect(window)
    assert np.isfinite(found.novelty).all()
    learner.update(*of_classes(digits, range(3, 5), 60, 15))
    assert set(learner.predict(window)) <= set(range(5))


def test_the_papers_preset_differs_only_where_the_paper_says_so(
    digits: tuple[Array, Array], window: Array
) -> None:
    paper = CILF.paper(width=4, epochs=2, detect_epochs=1, detect_steps=3, update_epochs=1, k_max=3)
    stated = CILF.paper().get_params()
    assert (stated["alpha"], stated["beta"], stated["lambda1"], stated["lambda2"]) == (
        0.3, 0.8, 1.0, 1.0,
    )  # fmt: skip
    assert (stated["pace_start"], stated["pace_growth"], stated["pace_every"]) == (0.2, 3.0, 10)
    assert (
        stated["epochs"],
        stated["training__batch_size"],
        stated["training__learning_rate"],
    ) == (20, 128, 0.01)
    found = paper.fit(*of_classes(digits, range(3), 0, 45)).detect(window)
    assert sorted(found.curve) == [0, 1, 2, 3]


def test_tuning_leaves_the_learner_and_changes_the_copy(fitted: CILF, window: Array) -> None:
    weights = copy.deepcopy(fitted._network.state_dict())
    tuned = fitted.detect(window, n_novel=2)
    frozen = copy.deepcopy(fitted).set_params(detect_epochs=0).detect(window, n_novel=2)
    assert all(torch.equal(weights[k], v) for k, v in fitted._network.state_dict().items())
    assert not np.allclose(tuned.embedding, frozen.embedding)


def test_a_fixed_k_is_not_searched_for(fitted: CILF, window: Array) -> None:
    assert fitted.detect(window, n_novel=2).curve == {}
    most = min(fitted.k_max, 1 + len(window) // 16)  # classes are not tried that would be tiny
    assert sorted(fitted.detect(window).curve) == list(range(most + 1))


def test_bad_parameters_are_refused_before_fitting(digits: tuple[Array, Array]) -> None:
    known = of_classes(digits, range(3), 0, 45)
    with pytest.raises(BadConfig, match="unknown count 'exces-mass': did you mean 'excess-mass'"):
        CILF(count="exces-mass").fit(*known)
    with pytest.raises(BadConfig, match="memory_size is -1: give a whole number of at least 0"):
        CILF(memory_size=-1).fit(*known)
    with pytest.raises(BadConfig, match="unknown backbone 'convnt': did you mean 'convnet'"):
        CILF(backbone="convnt").fit(*known)
    with pytest.raises(BadConfig, match=r"beta is 1\.5"):
        CILF(beta=1.5).fit(*known)


@pytest.mark.parametrize(
    "change",
    [{"count": "zz"}, {"k_max": -1}, {"leniency": 2}, {"pace_start": 0}, {"update_epochs": -1},
     {"false_novel": 1.2}, {"distill_on": "z"}, {"temperature": 0}, {"memory_choice": "best"},
     {"training__clip": 0.0}, {"length": 0.0}, {"space_size": 0}],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused_after_fitting_too(
    fitted: CILF, window: Array, change: dict[str, object]
) -> None:
    learner = copy.deepcopy(fitted).set_params(**change)
    with pytest.raises(BadConfig, match=next(iter(change)).rpartition("__")[2]):
        learner.detect(window)
    with pytest.raises(BadConfig, match=next(iter(change)).rpartition("__")[2]):
        learner.update(window, ["new"] * len(window))


def test_a_training_that_diverges_is_refused(digits: tuple[Array, Array]) -> None:
    with pytest.raises(BadConfig, match="lower"):
        CILF(training=Training(learning_rate=1e6), **QUICK).fit(
            *of_classes(digits, range(3), 0, 45)
        )


def test_own_backbone_is_handed_in_again_on_load(
    digits: tuple[Array, Array], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("model")
    X, y = of_classes(digits, range(3), 0, 45)

    def flat(shape: tuple[int, ...]) -> torch.nn.Module:
        n = int(np.prod(shape))
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(n, 16), torch.nn.ReLU())

    learner = CILF(backbone=flat, **QUICK).fit(X, y)
    learner.save(folder)
    with pytest.raises(BadConfig, match="your own backbone"):
        load(folder)
    assert np.array_equal(load(folder, backbone=flat).predict(X), learner.predict(X))


def test_a_changed_parameter_does_not_spoil_a_saved_model(
    fitted: CILF, window: Array, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("model")
    learner = copy.deepcopy(fitted).set_params(width=8, embedding_size=7)
    learner.save(folder)
    assert np.array_equal(load(folder).predict(window), fitted.predict(window))


def test_joint_learns_everything_again(digits: tuple[Array, Array]) -> None:
    first, second = of_classes(digits, range(3), 0, 45), of_classes(digits, range(3, 5), 0, 45)
    learner = Joint(**QUICK).fit(*first).update(*second)
    both = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    anew = CILF(**QUICK).fit(*both)
    fresh = of_classes(digits, range(5), 60, 15)[0]
    assert np.array_equal(learner.predict(fresh), anew.predict(fresh))
    assert len(learner._everything) == 225
