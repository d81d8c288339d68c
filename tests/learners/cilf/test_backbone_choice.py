"""The choice of a backbone by hidden classes, with a small network in place of the encoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from cilf import CILF, load
from cilf.core import Detection, notices, progress
from cilf.core.types import Array, Floats
from cilf.evaluate import metrics
from cilf.learners import Joint, base
from cilf.learners.cilf import backbone_choice
from cilf.learners.cilf.backbone_choice import (
    MIN_CLASS_SIZE,
    choose,
    measure_recovery,
    split_classes,
)
from cilf.nn import image_models
from cilf.nn.pretrained import Extractor
from cilf.nn.training import Training

ENCODER = "efficientnet-lite2"
SIDE, N_CLASSES, N_EACH = 16, 6, 18
Extract = Callable[[Array], Floats]


def bars(n_each: int = N_EACH, seed: int = 0, side: int = SIDE) -> tuple[Array, Array]:
    """Noisy grey images with a bright column, whose place is the class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_CLASSES), n_each)
    X = rng.integers(0, 60, (len(y), side, side))
    for image, label in zip(X, y, strict=True):
        image[:, 2 * label : 2 * label + 2] += 150
    mixed = rng.permutation(len(y))
    return X[mixed].astype(np.uint8), np.array([f"bar {label}" for label in y[mixed]])


def columns(X: Array) -> Floats:
    """An encoder that sees where the bar is."""
    return X.mean(1, dtype=np.float32)[:, : 2 * N_CLASSES]


def marked(seed: int = 0) -> tuple[Array, Array]:
    """Noise, but for the first pixel, which is the class."""
    X, y = bars(seed=seed)
    X = np.random.default_rng(seed).integers(0, 256, X.shape).astype(np.uint8)
    X[:, 0, 0] = [int(label.removeprefix("bar ")) for label in y]
    return X, y


def marks(X: Array) -> Floats:
    """An encoder that sees the first pixel and a little noise."""
    found = 10 * np.eye(N_CLASSES, dtype=np.float32)[X[:, 0, 0]]
    return found + X[:, 1, :N_CLASSES].astype(np.float32) / 256


def noise(X: Array) -> Floats:
    """An encoder that sees nothing of it."""
    return np.stack([np.random.default_rng(int(x.sum())).normal(size=12) for x in X]).astype("f4")


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Extract], list[int]]:
    """Replace the encoder by a function. The list holds how many images it got in each call."""
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_models, "best_installed", lambda: ENCODER)
    monkeypatch.setattr(backbone_choice, "MIN_INSTANCES", N_CLASSES * N_EACH)
    notices.forget()

    def install(extract: Extract) -> list[int]:
        seen: list[int] = []

        def run(X: Array) -> Floats:
            seen.append(len(X))
            return extract(X)

        def make_extractor(name: str, device: torch.device) -> Extractor:
            return Extractor(name, "feed", "images", run)

        monkeypatch.setattr(base, "make_extractor", make_extractor)
        return seen

    return install


def quick(**parameters: object) -> CILF:
    return CILF(epochs=4, update_epochs=2).set_params(**parameters)


def random_states() -> tuple[object, object]:
    """Of the global generators."""
    return np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index, union-attr]  # noqa: NPY002


# ------------------------------------------------------------------------------- the choice


def test_the_encoder_is_taken_where_it_finds_hidden_classes_again(
    encoder: Callable[[Extract], list[int]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder(marks)
    learner = quick().fit(*marked())
    assert learner.frozen_network == ENCODER
    h = learner.compared_backbones
    assert h[ENCODER] > 0.7 > 0.3 > h["convnet"]
    assert caplog.messages == [
        f"backbone: {ENCODER}, which finds hidden classes again with H = {h[ENCODER]:.2f} "
        f"(convnet: {h['convnet']:.2f}); backbone='convnet' overrides."
    ]
    assert learner.backbone == "auto"
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (loaded.frozen_network, loaded.compared_backbones) == (ENCODER, h)
    X, _ = marked(seed=1)
    assert np.array_equal(loaded.embed(X), learner.embed(X))


def test_a_network_from_scratch_is_taken_where_the_encoder_sees_nothing(
    encoder: Callable[[Extract], list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    encoder(noise)
    learner = quick().fit(*bars())
    assert learner.frozen_network is None
    assert learner.compared_backbones["convnet"] > learner.compared_backbones[ENCODER]
    assert f"backbone='{ENCODER}' overrides" in caplog.messages[0]
    same = quick(backbone="convnet").fit(*bars())
    X, _ = bars(seed=1)
    assert np.array_equal(same.embed(X), learner.embed(X))  # the choice left no trace in the fit


def test_a_backbone_that_is_named_is_not_compared(
    encoder: Callable[[Extract], list[int]],
) -> None:
    seen = encoder(columns)
    assert quick(backbone="convnet").fit(*bars()).compared_backbones == {}
    assert seen == []
    assert quick(backbone=ENCODER).fit(*bars()).compared_backbones == {}


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (bars(side=15)[0], bars(side=15)[1]),  # small
        (bars()[0] / 255, bars()[1]),  # no pixels
        (bars()[0].reshape(N_CLASSES * N_EACH, -1), bars()[1]),  # vectors
    ],
)
def test_small_images_and_what_are_no_pixels_are_learned_from_scratch(
    X: Array, y: Array, encoder: Callable[[Extract], list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    seen = encoder(columns)
    assert quick().features_for(X, y) is None
    learner = quick(epochs=1).fit(X, y)
    assert (learner.frozen_network, learner.compared_backbones, seen) == (None, {}, [])
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("sizes", "is_enough"),
    [
        ([75, 75, 75, 75], True),
        ([75, 75, 75, 74], False),
        ([100, 100, 100], False),
        ([200, 200, 200, MIN_CLASS_SIZE - 1], False),
        ([200, 200, 200, MIN_CLASS_SIZE], True),
    ],
)
def test_a_comparison_takes_some_classes_and_some_instances(
    sizes: list[int], is_enough: bool
) -> None:
    assert backbone_choice.has_enough(np.repeat(np.arange(len(sizes)), sizes)) == is_enough


@pytest.mark.parametrize(("channels", "network"), [(1, None), (3, ENCODER)])
def test_with_too_little_data_the_form_decides_and_a_notice_says_so(
    channels: int,
    network: str | None,
    encoder: Callable[[Extract], list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoder(lambda X: columns(X[..., 0]))
    X, y = bars(n_each=N_EACH - 1)
    X = X[..., None].repeat(channels, axis=3)
    learner = quick(epochs=1).fit(X, y)
    assert quick().features_for(X, y) == network
    assert (learner.frozen_network, learner.compared_backbones) == (network, {})
    assert backbone_choice.TOO_FEW in caplog.messages


def test_the_choice_is_the_same_each_time_and_disturbs_no_global_generator(
    encoder: Callable[[Extract], list[int]],
) -> None:
    encoder(columns)
    states = random_states()
    first = quick().fit(*bars())
    assert random_states() == states
    assert quick().fit(*bars()).compared_backbones == first.compared_backbones
    assert quick().fit(*bars()).compared_backbones == first.compared_backbones
    assert Joint(epochs=4).fit(*bars()).compared_backbones == first.compared_backbones


def test_a_second_fit_forgets_the_choice_and_a_failed_one_keeps_it(
    encoder: Callable[[Extract], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder(columns)
    learner = quick(epochs=0).fit(*bars())
    before = learner.compared_backbones

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(CILF, "_fit", fail)
        with pytest.raises(KeyboardInterrupt):
            learner.fit(*bars(seed=2))
    assert learner.compared_backbones == before
    assert learner.set_params(backbone="convnet").fit(*bars()).compared_backbones == {}
    assert learner.frozen_network is None


def test_the_progress_says_what_is_the_choice_and_what_the_fit(
    encoder: Callable[[Extract], list[int]],
) -> None:
    encoder(marks)
    stages: list[str] = []
    with progress.listen(lambda stage, done, total: stages.append(stage)):
        quick().fit(*marked())
    assert set(stages) == {"backbone: fit", "backbone: features", "features", "fit"}
    assert stages[-1] == "fit"


def test_labels_that_are_not_known_yet_leave_the_network_open(
    encoder: Callable[[Extract], list[int]],
) -> None:
    encoder(columns)
    X, y = bars()
    assert (quick().features_for(X), quick().features_for(X, y)) == ("auto", "auto")
    assert quick(detector="curriculum").features_for(X, y) is None  # its search is another one


# ------------------------------------------------------------------------------- the parts


def test_hidden_classes_and_windows_are_never_trained_on() -> None:
    sizes = [MIN_CLASS_SIZE - 1, *[30 + 5 * label for label in range(7)]]
    y = np.repeat(np.arange(8), sizes)
    splits = list(split_classes(y, seed=0))
    assert len({label for split in splits for label in split.hidden.tolist()}) == 6
    for split in splits:
        assert 0 not in y[split.window]  # too small a class
        assert not set(split.window) & set(split.all)
        assert not set(split.hidden) & set(y[split.all])
        assert set(split.some) <= set(split.all)
        assert set(y[split.window]) == set(split.hidden) | set(y[split.some])


@pytest.mark.parametrize(("n_classes", "n_each", "bound"), [(100, 500, 600), (5, 60, 150)])
def test_however_much_data_there_is_an_encoder_sees_a_bounded_part(
    n_classes: int, n_each: int, bound: int
) -> None:
    splits = list(split_classes(np.repeat(np.arange(n_classes), n_each), seed=0))
    seen = set.union(*(set(split.some) | set(split.window) for split in splits))
    assert bound * 0.9 < len(seen) <= bound


def test_recovery_is_the_harmonic_accuracy_of_the_evaluation() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        truth, n_known = rng.permutation(np.arange(40) % 5), 3
        cluster = np.where(rng.random(40) < 0.5, -1, rng.integers(0, 2, 40))
        label = np.where(rng.random(40) < 0.6, np.minimum(truth, 2), 0)
        found = Detection(
            novelty=np.zeros(40, dtype=np.float32), label=label, cluster=cluster, n_novel=2,
            curve={}, embedding=np.zeros((40, 1), dtype=np.float32),
        )  # fmt: skip
        matching = metrics.match_clusters(cluster, truth, n_known)
        expected = metrics.harmonic_accuracy(
            truth, metrics.resolve(label, cluster, matching), n_known
        )
        assert measure_recovery(found, truth, np.array([4, 3])) == pytest.approx(expected)


def test_of_equally_good_backbones_the_first_is_taken() -> None:
    assert choose({"convnet": 0.5, ENCODER: 0.5}) == "convnet"
    assert choose({ENCODER: 0.5, "convnet": 0.5}) == ENCODER


def test_a_trial_that_diverges_leaves_the_choice_to_the_others(
    encoder: Callable[[Extract], list[int]],
) -> None:
    encoder(columns)
    X, y = bars()
    learner = quick(training=Training(learning_rate=1e30, clip=1e30))
    compared = backbone_choice.compare(learner, X, np.unique(y, return_inverse=True)[1], ENCODER)
    assert set(compared) == {ENCODER, backbone_choice.SCRATCH}
    assert compared[backbone_choice.SCRATCH] == 0.0
