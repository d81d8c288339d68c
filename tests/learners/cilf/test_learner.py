"""CILF's parameters and state, beyond what every learner is checked for."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF, load
from cilf.clustering.unexplained_mass import UnexplainedMass
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners.cilf import DETECTORS, CurriculumDetector, Detector, Loss
from cilf.nn.training import Training

Digits = Callable[..., tuple[Array, Array]]


def test_memory_and_calibration_share_no_instance(fitted: CILF) -> None:
    kept = fitted.remembered()
    assert kept is not None
    images = [
        {image.tobytes() for image in kept.X[rows]} for rows in (kept.held_out, ~kept.held_out)
    ]
    assert len(images[0]) == 3 * 15
    assert not images[0] & images[1]


def test_an_update_rebalances_memory_and_completes_calibration(
    fitted: CILF, digits: Digits
) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=40, calibration_size=20)
    kept = learner.update(*digits(range(2, 5), 60, 30)).remembered()
    assert kept is not None
    assert np.bincount(kept.y[~kept.held_out]).tolist() == [8, 8, 8, 8, 8]
    assert np.bincount(kept.y[kept.held_out]).tolist() == [15, 15, 20, 10, 10]
    held_out = {image.tobytes() for image in kept.X[kept.held_out]}
    assert not held_out & {image.tobytes() for image in kept.X[~kept.held_out]}


def test_the_constructor_is_short_and_parts_have_the_rest() -> None:
    assert len(inspect.signature(CILF).parameters) <= 15
    learner = CILF().set_params(detector="curriculum", detector__gamma=0.7, loss__lambda1=0.0)
    assert learner.detector == CurriculumDetector(gamma=0.7)
    assert learner.loss == Loss(lambda1=0.0)


@pytest.mark.parametrize("name", DETECTORS)
def test_a_model_keeps_its_detector(name: str, fitted: CILF, window: Array, tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "detector": name,
        "detector__k_max": 2,
        "detector__count": "silhouette",
    }
    quick = {"detector__epochs": 1, "detector__steps": 2} if name == "curriculum" else {}
    learner = copy.deepcopy(fitted).set_params(**changes, **quick)
    learner.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params() == learner.get_params()
    assert np.array_equal(again.detect(window).novelty, learner.detect(window).novelty)


def test_the_papers_preset_has_what_the_paper_states() -> None:
    stated = CILF.paper(width=4).get_params()
    expected = {
        "width": 4, "backbone": "resnet18", "epochs": 20, "update_epochs": 20,
        "calibration_size": 0, "training__batch_size": 128, "training__learning_rate": 0.01,
        "training__weight_decay": 0.001, "training__augmentation": None, "loss__alpha": 0.3,
        "loss__beta": 0.8, "loss__lambda1": 1.0, "loss__lambda2": 1.0, "loss__margin": 5.0,
        "loss__negatives": None,
        "loss__exact_prototypes": False, "detector__pace_start": 0.2, "detector__pace_growth": 3.0,
        "detector__pace_every": 10, "detector__epochs": 20, "detector__learning_rate": 0.01,
        "detector__replay_size": 0,
    }  # fmt: skip
    assert {name: stated[name] for name in expected} == expected
    assert isinstance(stated["detector"], CurriculumDetector)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"detector__count": "exces-mass"}, "of 'detector' of 'cilf' 'exces-mass': did you mean"),
        ({"detector": "curiculum"}, "unknown detector of 'cilf' 'curiculum': did you mean 'curric"),
        ({"detector__k_mx": 1}, "of 'detector' of 'cilf' 'k_mx': did you mean 'k_max'"),
        ({"detector__gamma": 1}, "unknown parameter of 'detector' of 'cilf' 'gamma'"),
        ({"rotation": 1.0}, "unknown parameter of 'cilf' 'rotation'"),
    ],
)  # fmt: skip
def test_unknown_names_are_answered(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        CILF().set_params(**changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_size": -1}, "memory_size is -1: give a whole number of at least 0"),
        ({"backbone": "convnt"}, "unknown backbone 'convnt': did you mean 'convnet'"),
        ({"loss__beta": 1.5}, r"loss\.beta is 1\.5"),
        ({"detector": 3}, r"detector is 3: give Detector\(\.\.\.\) or Curriculum"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_before_fitting(
    change: dict[str, Any], message: str, digits: Digits
) -> None:
    with pytest.raises(BadConfig, match=message):
        CILF().set_params(**change).fit(*digits(range(3), 0, 45))


@pytest.mark.parametrize(
    "change",
    [{"detector__k_max": -1}, {"detector__count__separation": 2}, {"update_epochs": -1},
     {"detector__false_novel": 1.2}, {"training__clip": 0.0}, {"detector__space_size": 0},
     {"detector__strict": "yes"}, {"loss__negatives": 0}],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused_after_fitting_too(
    fitted: CILF, window: Array, change: dict[str, Any]
) -> None:
    learner = copy.deepcopy(fitted).set_params(**change)
    message = next(iter(change)).replace("__", ".")
    with pytest.raises(BadConfig, match=message):
        learner.detect(window)
    with pytest.raises(BadConfig, match=message):
        learner.update(window, ["new"] * len(window))


def test_a_training_that_diverges_is_refused(digits: Digits) -> None:
    with pytest.raises(BadConfig, match="lower"):
        CILF(training=Training(learning_rate=1e6), epochs=6).fit(*digits(range(3), 0, 45))


def test_own_backbone_is_handed_in_again_on_load(digits: Digits, tmp_path: Path) -> None:
    X, y = digits(range(3), 0, 45)

    def flat(shape: tuple[int, ...]) -> torch.nn.Module:
        n = int(np.prod(shape))
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(n, 16), torch.nn.ReLU())

    learner = CILF(backbone=flat, epochs=1).fit(X, y)
    learner.save(tmp_path / "model")
    with pytest.raises(BadConfig, match="your own backbone"):
        load(tmp_path / "model")
    again = load(tmp_path / "model", backbone=flat)
    assert np.array_equal(again.predict(X), learner.predict(X))


def test_a_changed_parameter_does_not_spoil_a_saved_model(
    fitted: CILF, window: Array, tmp_path: Path
) -> None:
    learner = copy.deepcopy(fitted).set_params(width=8, embedding_size=7)
    learner.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(window), fitted.predict(window))


def test_detector_defaults_are_ours() -> None:
    assert CILF().detector == Detector()


def test_the_page_lists_every_parameter_with_its_default() -> None:
    page = Path(__file__).parents[3] / "docs" / "methods" / "cilf.md"
    section = page.read_text(encoding="utf-8").partition("## Parameters")[2].partition("\n## ")[0]
    rows = [[cell.strip(' `"') for cell in line.split("|")] for line in section.splitlines()]
    listed = [(row[2], row[3]) for row in rows if len(row) == 6][2:]
    owners = [CILF(), Training(), Loss(), Detector(), CurriculumDetector(), UnexplainedMass()]
    words = {"None": "none", "True": "true", "False": "false", "Curvature()": "curvature"}
    words["UnexplainedMass()"] = "unexplained-mass"
    expected = [
        (name, words.get(str(value), str(value)))
        for owner in owners
        for name, value in owner.get_params(deep=False).items()
        if name not in ("training", "loss", "detector")
    ]
    assert sorted(listed) == sorted(expected)
