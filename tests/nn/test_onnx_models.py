"""Networks that users bring as ONNX files. The tests make tiny ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF, load
from cilf.core.extras import ENCODERS
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput, NotFitted
from cilf.nn.onnx_models import OnnxNetwork, parse
from cilf.nn.pretrained import choose_network, make_extractor

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

Shape = list[int | str]
N_FEATURES = 6


def make_network(
    path: Path,
    shape: Shape | None = None,
    *,
    output: str = "vectors",
    operator: str = "Relu",
    factor: float = 1.0,
) -> Path:
    """A convolution to six maps, an operator on it, and the mean over each map."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.random.default_rng(0).normal(size=(N_FEATURES, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["images", "weights"], ["maps"], pads=[1, 1, 1, 1]),
        helper.make_node(operator, ["maps"], ["active"]),
    ]
    sizes: Shape = ["n", N_FEATURES, "h", "w"]
    if output == "vectors":
        nodes.append(helper.make_node("GlobalAveragePool", ["active"], ["means"]))
        nodes.append(helper.make_node("Flatten", ["means"], ["found"]))
        sizes = ["n", N_FEATURES]
    else:
        nodes.append(helper.make_node("Identity", ["active"], ["found"]))
    graph = helper.make_graph(
        nodes, "tiny",
        [helper.make_tensor_value_info("images", kind, shape or ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("found", kind, sizes)],
        [onnx.numpy_helper.from_array(weights * np.float32(factor), "weights")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def pixels(n: int, side: int = 16, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n, side, side, 3), dtype=np.uint8)


def shades(n: int, channel: int, seed: int) -> Array:
    """Noisy images that are bright in one channel."""
    X = np.random.default_rng([seed, channel]).integers(0, 60, (n, 16, 16, 3))
    X[..., channel] += 150
    return X.astype(np.uint8)


def open_network(name: str) -> OnnxNetwork:
    return OnnxNetwork(*parse(name))


def test_images_are_prepared_as_the_name_says(tmp_path: Path) -> None:
    path = make_network(tmp_path / "tiny.onnx")
    X = pixels(3)
    network = open_network(f"onnx:{path}?size=16&mean=0.5,0.25,0&std=0.5,1,2")
    scaled = (X / 255 - [0.5, 0.25, 0]) / [0.5, 1, 2]
    images = np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=np.float32)
    expected = network.session.run(None, {"images": images})[0]
    np.testing.assert_allclose(network.extract(X), expected, atol=1e-5)


def test_maps_are_averaged_to_the_vectors_that_the_network_would_give(tmp_path: Path) -> None:
    vectors = open_network(f"onnx:{make_network(tmp_path / 'v.onnx')}?size=16")
    maps = open_network(f"onnx:{make_network(tmp_path / 'm.onnx', output='maps')}?size=16")
    np.testing.assert_allclose(maps.extract(pixels(3)), vectors.extract(pixels(3)), atol=1e-5)


def test_an_image_has_the_same_features_alone_and_in_company(tmp_path: Path) -> None:
    network = open_network(f"onnx:{make_network(tmp_path / 'tiny.onnx')}?size=16")
    X = pixels(20)
    together = network.extract(X)
    assert np.array_equal(np.concatenate([network.extract(X[[i]]) for i in range(20)]), together)


def test_the_size_is_that_of_the_file_if_it_has_one(tmp_path: Path) -> None:
    network = open_network(f"onnx:{make_network(tmp_path / 'tiny.onnx', [4, 3, 32, 32])}")
    assert (network.size, network.batch_size) == (32, 4)
    assert network.extract(pixels(6)).shape == (6, N_FEATURES)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("onnx:", "with no file"),
        ("onnx:x.onnx?crop=3", "with the option 'crop'"),
        ("onnx:x.onnx?size=2", "size=2: give pixels from 8 to 2048"),
        ("onnx:x.onnx?size=big", "size=big: give pixels"),
        ("onnx:x.onnx?mean=1,2", "mean=1,2: give three numbers"),
        ("onnx:x.onnx?std=1,0,1", "std=1,0,1: give three numbers"),
        ("onnx:x.onnx?mean=nan,0,0", "give three numbers"),
        ("onnx:nowhere.onnx", "'nowhere.onnx', which cannot be read"),
        ("onnx:a\0b", "which cannot be read"),
        ("onnx:x.onnx?size=" + "9" * 6000, "give pixels from 8 to 2048"),
        ("onnx:what?.onnx", "whose path has no"),
    ],
)
def test_a_wrong_name_is_answered_with_one_line(name: str, says: str) -> None:
    with pytest.raises(BadConfig, match=says) as refused:
        open_network(name)
    assert "\n" not in str(refused.value)


Make = Callable[[Path], Any]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_bytes(b"not a network"), "is no ONNX network"),
        (lambda path: path.write_bytes(b""), "is no ONNX network"),
        (lambda path: make_network(path, operator="NoSuchOperator"), "is no ONNX network"),
        (lambda path: make_network(path, ["n", 1, "h", "w"]), "does not take one batch of float32"),
        (lambda path: make_network(path, ["n", 3, 16, 20]), "which takes images of 16 x 20 pixels"),
        (lambda path: make_network(path, ["n", 3, 20, 20]), "of 20 x 20 pixels, not of 16"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_answered_with_one_line(
    make: Make, says: str, tmp_path: Path
) -> None:
    make(tmp_path / "x.onnx")
    with pytest.raises(BadConfig, match=says) as refused:
        open_network(f"onnx:{tmp_path / 'x.onnx'}?size=16")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("factor", [np.inf, 1e20])  # the squares of the latter are infinite
def test_values_that_no_learner_can_take_are_refused(factor: float, tmp_path: Path) -> None:
    network = open_network(f"onnx:{make_network(tmp_path / 'x.onnx', factor=factor)}?size=16")
    with pytest.raises(BadInput, match="not finite, or beyond"):
        network.extract(pixels(2))


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    """Whoever follows the advice to export it again need not start another process."""
    name = f"onnx:{make_network(tmp_path / 'x.onnx', factor=np.inf)}?size=16"
    first = make_extractor(name, torch.device("cpu"))
    assert make_extractor(name, torch.device("cpu")) is first
    make_network(tmp_path / "x.onnx")
    second = make_extractor(name, torch.device("cpu"))
    assert second.digest != first.digest
    assert np.isfinite(second.extract(pixels(2))).all()
    (tmp_path / "x.onnx").unlink()
    assert make_extractor(name, torch.device("cpu")) is second  # what was loaded still serves


@pytest.mark.parametrize("kind", ["Shape", "ReduceMean"])
def test_an_output_that_is_no_vector_of_each_image_is_refused(kind: str, tmp_path: Path) -> None:
    helper, number = onnx.helper, onnx.TensorProto
    arguments: dict[str, Any] = {"axes": [0], "keepdims": 1} if kind == "ReduceMean" else {}
    gives = number.INT64 if kind == "Shape" else number.FLOAT
    graph = helper.make_graph(
        [helper.make_node(kind, ["images"], ["found"], **arguments)], "odd",
        [helper.make_tensor_value_info("images", number.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("found", gives, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "odd.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BadInput, match="gives no vectors"):
        open_network(f"onnx:{tmp_path / 'odd.onnx'}?size=16").extract(pixels(3))


def test_weights_in_another_file_are_refused_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_network(tmp_path / "tiny.onnx")
    onnx.save_model(
        onnx.load(path), tmp_path / "split.onnx",
        save_as_external_data=True, location="weights.bin", size_threshold=0,
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        BadConfig, match=r"split\.onnx, which is no ONNX network .*its weights inside"
    ):
        open_network("onnx:split.onnx?size=16")


def test_a_relative_path_holds_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_network(tmp_path / "tiny.onnx")
    monkeypatch.chdir(tmp_path)
    name = choose_network("onnx:tiny.onnx?size=16", pixels(2))
    assert name == f"onnx:{tmp_path / 'tiny.onnx'}?size=16"


def change_opset(path: Path) -> None:
    """A network for a newer set of operators than any onnxruntime has."""
    model = onnx.load(make_network(path))
    model.opset_import[0].version = 99
    onnx.save(model, path)


def use_own_operator(path: Path) -> None:
    """A network with an operator of somebody's own library."""
    model = onnx.load(make_network(path))
    model.graph.node[1].domain = "my.own"
    model.opset_import.append(onnx.helper.make_opsetid("my.own", 1))
    onnx.save(model, path)


def take_one_size(path: Path) -> None:
    """A network whose file does not say that it takes images of 16 pixels only."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["images", "to"], ["found"])], "flat",
        [helper.make_tensor_value_info("images", kind, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("found", kind, ["n", 768])],
        [onnx.numpy_helper.from_array(np.array([-1, 768]), "to")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("make", "size", "says"),
    [
        (lambda path: path.write_bytes(b"not a network"), 16, "is no ONNX network .*export it"),
        (lambda path: make_network(path, factor=np.inf), 16, "not finite, or beyond"),
        (lambda path: make_network(path, ["n", 3, 20, 20]), 16, "not of 16: leave out size"),
        (take_one_size, 17, r"does not run on images of 17 pixels .*\?size=PIXELS"),
        (take_one_size, 32, r"or give the size that it was exported for, \?size=PIXELS"),
        (lambda path: make_network(path, operator="NoSuchOperator"), 16, "No Op .*operator set"),
        (change_opset, 16, "an operator set that onnxruntime has"),
        (use_own_operator, 16, "my.own:Relu.* is not a registered .*operator set"),
    ],
)
def test_fit_answers_a_bad_file_with_one_line_and_stays_unfitted(
    make: Make, size: int, says: str, tmp_path: Path
) -> None:
    make(tmp_path / "x.onnx")
    learner = CILF(backbone=f"onnx:{tmp_path / 'x.onnx'}?size={size}", epochs=1)
    with pytest.raises((BadConfig, BadInput), match=says) as refused:
        learner.fit(np.concatenate([shades(4, 0, 0), shades(4, 1, 0)]), [0] * 4 + [1] * 4)
    message = str(refused.value)
    assert "backbone" in message
    assert "x.onnx" in message
    assert "\n" not in message
    with pytest.raises(NotFitted):
        learner.predict(shades(1, 0, 0))


@pytest.fixture
def fitted(tmp_path: Path) -> tuple[CILF, Path]:
    path = make_network(tmp_path / "tiny.onnx")
    X = np.concatenate([shades(20, 0, 0), shades(20, 1, 0)])
    learner = CILF(backbone=f"onnx:{path}?size=16", epochs=2, calibration_size=4)
    learner.fit(X, ["red"] * 20 + ["green"] * 20).save(tmp_path / "model")
    return learner, path


def test_a_learner_sees_through_it(fitted: tuple[CILF, Path]) -> None:
    learner, _ = fitted
    assert learner.predict(shades(5, 1, 1)).tolist() == ["green"] * 5


def test_a_model_never_says_where_its_file_is(
    fitted: tuple[CILF, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, path = fitted
    monkeypatch.delenv(ENCODERS, raising=False)
    with pytest.raises(BadInput, match=r"made with the ONNX file tiny.onnx .*--encoder FILE"):
        load(tmp_path / "model")
    moved = path.rename(tmp_path / "moved.onnx")
    X = shades(5, 0, 1)
    named = load(tmp_path / "model", backbone=f"onnx:{moved}")
    assert np.array_equal(named.embed(X), learner.embed(X))
    assert "size=16" in named.backbone  # a refit prepares images alike
    with pytest.raises(BadInput, match="made with other weights of 'eff"):
        load(tmp_path / "model", backbone="efficientnet-lite0")
    other = make_network(tmp_path / "other.onnx", factor=2.0)
    fixed = make_network(tmp_path / "fixed.onnx", ["n", 3, 32, 32])
    files = [tmp_path / "gone.onnx", fixed, other, moved]
    monkeypatch.setenv(ENCODERS, "\n".join(map(str, files)))
    assert np.array_equal(load(tmp_path / "model").embed(X), learner.embed(X))
    monkeypatch.setenv(ENCODERS, str(other))
    with pytest.raises(BadInput, match=r"other\.onnx is another one"):
        load(tmp_path / "model")
    with pytest.raises(BadInput, match=r"made with other weights .*: name the file it was made"):
        load(tmp_path / "model", backbone=f"onnx:{other}")
    with pytest.raises(BadConfig, match=r"backbone names the ONNX file .*gone\.onnx"):
        load(tmp_path / "model", backbone=f"onnx:{tmp_path / 'gone.onnx'}")
