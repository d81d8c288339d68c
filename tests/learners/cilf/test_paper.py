"""CILF as its paper states it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf import CILF, load
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig
from cilf.learners import LEARNERS, CILFPaper, make

QUICK = {"backbone": "mlp", "width": 64, "epochs": 10, "detector__k_max": 5, "detector__epochs": 4}
N_TRAINING, N_WINDOW = 200, 60  # instances of a class
RADIUS, MIN_DISTANCE = 20.0, 16.0  # of the centres of classes, in deviations of a class


def draw_centres(n: int, rng: np.random.Generator) -> Array:
    """Centres on a sphere in eight dimensions, of which no two are near each other."""
    while True:
        directions = rng.normal(size=(n, 8))
        centres = RADIUS * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        distances = np.linalg.norm(centres[:, None] - centres, axis=2)
        if distances[~np.eye(n, dtype=bool)].min() > MIN_DISTANCE:
            return centres


def draw_blobs(n_known: int, n_novel: int, seed: int) -> tuple[Array, Ints, Array]:
    """Labelled instances of the known classes, and a window of all classes."""
    rng = np.random.default_rng(seed)
    centres = draw_centres(n_known + n_novel, rng)
    y = np.arange(n_known).repeat(N_TRAINING)
    rows = np.arange(len(centres)).repeat(N_WINDOW)
    X = rng.normal(centres[y], 1.0)
    return X, y, rng.normal(centres[rows], 1.0)


def count_novel_classes(n_known: int, n_novel: int, seed: int) -> int:
    X, y, window = draw_blobs(n_known, n_novel, seed)
    return CILFPaper(seed=seed).set_params(**QUICK).fit(X, y).detect(window).n_novel


@pytest.mark.parametrize("n_novel", [0, 1, 2, 3])
def test_most_windows_with_clear_clusters_are_counted_right(n_novel: int) -> None:
    """Nine windows of seeds on which neither the rule nor the sizes were chosen."""
    found = Counter(
        count_novel_classes(n_known, n_novel, seed)
        for n_known in (2, 3, 4)
        for seed in (20, 21, 22)
    )
    assert found.most_common(1)[0][0] == n_novel, found


def test_the_preset_and_the_name_give_the_same_learner() -> None:
    assert LEARNERS["cilf-paper"] is CILFPaper
    assert type(CILF.paper(seed=3)) is CILFPaper
    assert CILF.paper(seed=3).get_params() == make("cilf-paper", seed=3).get_params()
    with pytest.raises(BadConfig, match="'cilf-paper' 'sed': did you mean 'seed'"):
        CILF.paper(sed=3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 3)), "'cilf-paper' is 'resnet18', .* X holds vectors: set backbone='mlp'"),
        (["one", "two", "three", "four"], "'cilf-paper' .* X holds texts: set backbone='minilm'"),
    ],
)
def test_data_that_its_network_does_not_take_are_refused_in_one_line(X: Any, message: str) -> None:
    with pytest.raises(BadConfig, match=message) as refused:
        CILFPaper().fit(X, [0, 0, 1, 1])
    assert "\n" not in str(refused.value)


def test_vectors_need_another_network_and_a_model_keeps_it(tmp_path: Path) -> None:
    X, y, window = draw_blobs(2, 1, seed=0)
    learner = make("cilf-paper", **QUICK).fit(X, y)
    learner.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is CILFPaper
    assert again.get_params() == learner.get_params()
    assert np.array_equal(again.detect(window).cluster, learner.detect(window).cluster)


def test_vectors_are_refused_on_the_command_line_with_the_remedy(run: Any, tmp_path: Path) -> None:
    X, y, _ = draw_blobs(4, 1, seed=0)
    rows = [",".join(map(str, [*row, f"class {label}"])) for row, label in zip(X, y, strict=True)]
    Path("points.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,label", *rows]))
    command = ["run", "--learner", "cilf-paper", "--data", "points.csv", "--scenario", "single"]
    command += ["--set", "epochs=1", "--set", "stream.n_windows=1", "--set", "update_epochs=1"]
    command += ["--set", "detector.k_max=1", "--set", "detector.epochs=1"]
    refused = run(*command)
    assert refused.code == 2
    (line,) = [line for line in refused.err.splitlines() if "cilf-paper" in line and "X" in line]
    assert "--set backbone=mlp" in line
    assert run(*command, "--set", "backbone=mlp").code == 0
