"""Bad input is refused with a message that names the argument, the value and the remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from cilf.core import validation
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput, CilfError


def holed(shape: tuple[int, ...], index: tuple[int, ...], value: float) -> np.ndarray:
    array = np.zeros(shape)
    array[index] = value
    return array


def says(*parts: str) -> str:
    """A pattern that wants these parts in this order."""
    return ".*".join(re.escape(part) for part in parts)


# ----------------------------------------------------------------- X


@pytest.mark.parametrize("shape", [(4, 3), (4, 8, 8), (4, 8, 8, 3)])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint16, np.bool_])
def test_every_number_but_uint8_becomes_float32(shape: tuple[int, ...], dtype: type) -> None:
    given = np.ones(shape, dtype=dtype)
    array = validation.instances(given)
    assert array.dtype == np.float32
    assert array.shape == shape
    assert (array == 1).all()


def test_uint8_stays_uint8() -> None:
    given = np.full((2, 8, 8), 255, dtype=np.uint8)
    assert validation.instances(given).dtype == np.uint8


def test_lists_and_object_arrays_of_numbers_are_taken() -> None:
    assert validation.instances([[1, 2.5], [3, 4]]).tolist() == [[1, 2.5], [3, 4]]
    boxed = np.array([[1, Fraction(1, 2)], [True, np.float64(3)]], dtype=object)
    assert validation.instances(boxed).tolist() == [[1, 0.5], [1, 3]]


BAD_INSTANCES = [
    pytest.param(holed((3, 2), (2, 1), math.nan), ("nan", "(2, 1)", "remove or fill"), id="NaN"),
    pytest.param(holed((3, 2), (0, 1), math.inf), ("inf", "(0, 1)", "remove or fill"), id="inf"),
    pytest.param(holed((3, 2), (1, 0), -math.inf), ("-inf", "(1, 0)", "remove"), id="-inf"),
    pytest.param(holed((2, 4, 4), (1, 2, 3), math.nan), ("nan", "(1, 2, 3)"), id="NaN pixel"),
    pytest.param([[0.0, 1e39]], ("1e+39", "(0, 1)", "float32"), id="beyond float32"),
    pytest.param([[-1e300, 0.0]], ("-1e+300", "(0, 0)", "float32"), id="below float32"),
    pytest.param([[10**400, 1]], ("too large", "give (n, d)"), id="beyond float64"),
    pytest.param([[1.0, None]], ("nan", "(0, 1)", "remove or fill"), id="None cell"),
    pytest.param(np.zeros((0, 3)), ("empty", "(0, 3)", "at least one"), id="no instance"),
    pytest.param(np.zeros((3, 0)), ("empty", "(3, 0)", "at least one"), id="no feature"),
    pytest.param(np.zeros((0, 8, 8), np.uint8), ("empty", "(0, 8, 8)"), id="no image"),
    pytest.param([], ("(0,)", "give (n, d)"), id="empty list"),
    pytest.param(np.zeros(3), ("(3,)", "give (n, d)"), id="one instance"),
    pytest.param(np.zeros((1, 2, 3, 4, 5)), ("(1, 2, 3, 4, 5)", "give (n, d)"), id="5-D"),
    pytest.param(7, ("()", "give (n, d)"), id="a number"),
    pytest.param(None, ("NoneType", "give (n, d)"), id="None"),
    pytest.param({"a": [1.0]}, ("dict", "give (n, d)"), id="dict"),
    pytest.param("pixels", ("<U6", "give numbers"), id="a string"),
    pytest.param([["1.0", "2.0"]], ("<U3", "give numbers"), id="numbers as text"),
    pytest.param([[1 + 2j]], ("complex128", "give numbers"), id="complex"),
    pytest.param(np.zeros((2, 2), "M8[s]"), ("datetime64", "give numbers"), id="dates"),
    pytest.param([[1.0, 2.0], [3.0]], ("not an array of numbers", "give (n, d)"), id="ragged"),
    pytest.param(
        np.array([[1.0, "a"], [{}, 2]], dtype=object), ("holds str", "give (n, d)"), id="mixed"
    ),
    pytest.param(
        np.array([[1.0], [[1, 2]]], dtype=object), ("holds list", "give (n, d)"), id="nested"
    ),
]


@pytest.mark.parametrize(("X", "parts"), BAD_INSTANCES)
def test_bad_instances_are_refused(X: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match=says("X_test", *parts)):
        validation.instances(X, name="X_test")


@pytest.mark.parametrize(
    ("X", "fitted_on"),
    [
        pytest.param(np.zeros((2, 4)), (3,), id="wider"),
        pytest.param(np.zeros((2, 8, 9)), (8, 8), id="another image size"),
        pytest.param(np.zeros((2, 8, 8)), (8, 8, 3), id="grey for colour"),
        pytest.param(np.zeros((2, 64)), (8, 8), id="flat for images"),
    ],
)
def test_another_shape_than_fitted_is_refused(X: np.ndarray, fitted_on: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match=says("X", str(X.shape[1:]), str(fitted_on), "fit again")):
        validation.instances(X, shape=fitted_on)
    assert validation.instances(X, shape=X.shape[1:]).shape == X.shape


def test_the_largest_float32_is_taken() -> None:
    largest = float(np.finfo(np.float32).max)
    assert validation.instances([[largest, -largest]]).tolist() == [[largest, -largest]]


# ----------------------------------------------------------------- y


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        pytest.param([3, 1, 3], "i", id="ints"),
        pytest.param(("b", "a", "b"), "U", id="strings"),
        pytest.param(np.array([3, 1, 3], dtype=np.uint8), "i", id="uint8 array"),
        pytest.param(np.array(["b", "a", "b"], dtype=object), "U", id="object array"),
        pytest.param([np.int32(3), np.int64(1), 3], "i", id="numpy scalars"),
        pytest.param([np.str_("b"), "a", "b"], "U", id="numpy strings"),
        pytest.param([-1, 0, 2**63 - 1], "i", id="negative and large"),
    ],
)
def test_good_labels_keep_their_values(y: Any, kind: str) -> None:
    array = validation.labels(y, n=3)
    assert array.dtype.kind == kind
    assert array.tolist() == list(y)


def test_a_generator_of_labels_is_taken() -> None:
    assert validation.labels((label for label in "ab"), n=2).tolist() == ["a", "b"]


BAD_LABELS = [
    pytest.param(["a", None, "b"], ("y_new[1]", "missing (None)", "leave"), id="None"),
    pytest.param([1, 2, math.nan], ("y_new[2]", "missing (nan)", "leave"), id="NaN"),
    pytest.param(np.array(["a", np.nan, 1], object), ("y_new[1]", "missing (nan)"), id="boxed NaN"),
    pytest.param(["a", "", "b"], ("y_new[1]", "missing ('')", "leave"), id="empty string"),
    pytest.param([1.0, 2.0, 3.0], ("y_new[0]", "1.0 (float)", "ints or strings"), id="floats"),
    pytest.param(np.arange(3.0), ("y_new[0]", "0.0 (float)", "ints or strings"), id="float array"),
    pytest.param([1, True, 0], ("y_new[1]", "True (bool)", "ints or strings"), id="a bool"),
    pytest.param(np.ones(3, bool), ("y_new[0]", "True (bool)", "ints or strings"), id="bools"),
    pytest.param([[1], [2], [3]], ("y_new[0]", "[1] (list)", "ints or strings"), id="lists"),
    pytest.param(np.ones((3, 2), int), ("y_new[0]", "[1, 1] (list)"), id="2-D array"),
    pytest.param([np.zeros(2)] * 3, ("y_new[0]", "(ndarray)", "ints or strings"), id="arrays"),
    pytest.param([b"a", b"b", b"c"], ("y_new[0]", "b'a' (bytes)", "ints or strings"), id="bytes"),
    pytest.param([{}, 1, 2], ("y_new[0]", "{} (dict)", "ints or strings"), id="dicts"),
    pytest.param([1, "a", 2], ("y_new mixes ints and strings", "one kind"), id="ints and strings"),
    pytest.param([0, 1, 2**63], ("y_new[2]", str(2**63), "use strings"), id="beyond 64 bits"),
    pytest.param([1, 2], ("y_new has 2 labels for 3 instances", "one for each"), id="too few"),
    pytest.param([1] * 4, ("y_new has 4 labels for 3 instances", "one for each"), id="too many"),
    pytest.param([], ("y_new has 0 labels for 3 instances", "one for each"), id="none"),
    pytest.param("abc", ("y_new is 'abc'", "give a sequence"), id="a string"),
    pytest.param(5, ("y_new is 5", "give a sequence"), id="a number"),
    pytest.param(np.array(5), ("y_new is array(5)", "give a sequence"), id="0-d array"),
    pytest.param(None, ("y_new is None", "give a sequence"), id="nothing"),
]


@pytest.mark.parametrize(("y", "parts"), BAD_LABELS)
def test_bad_labels_are_refused(y: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match=says(*parts)):
        validation.labels(y, n=3, name="y_new")


def test_labels_of_another_kind_than_the_learners_are_refused() -> None:
    with pytest.raises(BadInput, match=says("y holds ints", "strings", "convert")):
        validation.labels([1, 2], n=2, kind="U")
    with pytest.raises(BadInput, match=says("y holds strings", "ints", "convert")):
        validation.labels(["1", "2"], n=2, kind="i")


@pytest.mark.parametrize("label", ["only", 4])
def test_one_class_is_too_few(label: int | str) -> None:
    with pytest.raises(BadInput, match=says("y holds 1 class", repr(label), "at least two")):
        validation.known_classes(np.array([label, label]))


def test_two_classes_are_enough() -> None:
    validation.known_classes(np.array(["a", "b"]))


def test_order_of_appearance_leaves_out_known_ones() -> None:
    y = np.array(["c", "a", "c", "b", "a"])
    assert validation.in_order_of_appearance(y) == ["c", "a", "b"]
    assert validation.in_order_of_appearance(y, known=["a"]) == ["c", "b"]
    assert validation.in_order_of_appearance(y, known=["a", "b", "c"]) == []


# ----------------------------------------------------------------- numbers and names


def test_n_novel_from_none_to_the_window() -> None:
    assert validation.n_novel(None, window=3) is None
    assert [validation.n_novel(k, window=3) for k in (0, np.int64(1), 3)] == [0, 1, 3]


def test_more_novel_classes_than_instances_are_refused() -> None:
    with pytest.raises(BadInput, match=says("n_novel is 4", "3 instances", "at most")):
        validation.n_novel(4, window=3)


@pytest.mark.parametrize("value", [-1, 1.5, 2.0, True, "2", [1], math.nan])
def test_n_novel_has_to_be_a_count(value: Any) -> None:
    with pytest.raises(BadConfig, match=says("n_novel", repr(value), "whole number", "0")):
        validation.n_novel(value, window=3)


@pytest.mark.parametrize("value", [0, -5, 1.0, False, None, "7", math.inf])
def test_sizes_have_to_be_whole_and_positive(value: Any) -> None:
    with pytest.raises(BadConfig, match=says("window_size", repr(value), "at least 1")):
        validation.whole_number("window_size", value, least=1)


def test_whole_numbers_become_python_ints() -> None:
    assert type(validation.whole_number("seed", np.uint8(3), least=0)) is int


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, -math.inf, True, "1", None, 1j])
def test_numbers_have_to_lie_in_their_range(value: Any) -> None:
    with pytest.raises(BadConfig, match=says("query", repr(value), "from 0 to 1")):
        validation.number("query", value, least=0, most=1)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400])
def test_numbers_have_to_be_finite_even_without_bounds(value: float) -> None:
    with pytest.raises(BadConfig, match=says("gamma is", "give a number")):
        validation.number("gamma", value)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), Fraction(1, 2)])
def test_numbers_become_python_floats(value: Any) -> None:
    given = validation.number("query", value, least=0, most=1)
    assert type(given) is float
    assert given == value


@pytest.mark.parametrize(
    ("value", "nearest"),
    [("clif", "cilf"), ("CILF", "cilf"), ("dnn_ewc", "dnn-ewc"), ("imm-means", "imm-mean")],
)
def test_an_unknown_name_is_answered_with_the_nearest(value: str, nearest: str) -> None:
    names = ["cilf", "dnn-ewc", "imm-mean", "joint"]
    with pytest.raises(BadConfig, match=says("learner", repr(value), f"did you mean '{nearest}'?")):
        validation.one_of("learner", value, names)
    assert validation.one_of("learner", nearest, names) == nearest


@pytest.mark.parametrize("value", ["zzz", None, 3, ["cilf"]])
def test_a_name_like_no_other_is_answered_with_all(value: Any) -> None:
    with pytest.raises(BadConfig, match=says("learner", "Known: cilf, joint.")):
        validation.one_of("learner", value, iter(["cilf", "joint"]))


@pytest.mark.parametrize("kind", [BadInput, BadConfig])
def test_one_root_and_value_error_catch_every_refusal(kind: type[Exception]) -> None:
    assert issubclass(kind, CilfError)
    assert issubclass(kind, ValueError)


def test_tensors_serve_as_instances_and_as_labels() -> None:
    assert validation.instances(torch.ones(2, 3)).tolist() == [[1.0] * 3] * 2
    assert validation.labels(torch.tensor([4, 2]), n=2).tolist() == [4, 2]


def test_a_tensor_that_no_array_can_be_made_of_is_refused() -> None:
    with pytest.raises(BadInput, match=says("X is not an array", "requires grad")):
        validation.instances(torch.ones(2, 3, requires_grad=True))


def test_masked_values_are_refused_and_an_empty_mask_is_not() -> None:
    X = np.ma.masked_array(np.ones((2, 2)), mask=[[True, False], [False, False]])
    with pytest.raises(BadInput, match="X has masked values"):
        validation.instances(X)
    assert validation.instances(np.ma.masked_array(np.ones((2, 2)))).shape == (2, 2)


@pytest.mark.parametrize("y", [{1, 2}, {1: "a", 2: "b"}, "ab"])
def test_labels_have_to_come_in_an_order(y: Any) -> None:
    with pytest.raises(BadInput, match=r"y is .*: give a sequence of labels"):
        validation.labels(y, n=2)


def test_a_name_that_numpy_would_cut_is_refused() -> None:
    with pytest.raises(BadInput, match=says("y[1]", "remove the NUL")):
        validation.labels(["a", "a\0"], n=2)


# ------------------------------------------------------------------------------- texts

SAID = ["first", "a second", "first"]


def series(values: list[Any], dtype: str) -> Any:
    return pytest.importorskip("pandas").Series(values, dtype=dtype, index=[7, 8, 9])


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(lambda: SAID, id="list"),
        pytest.param(lambda: tuple(SAID), id="tuple"),
        pytest.param(lambda: np.array(SAID), id="fixed width"),
        pytest.param(lambda: np.array(SAID, dtype=object), id="objects"),
        pytest.param(lambda: np.array(SAID, dtype=np.dtypes.StringDType()), id="StringDType"),
        pytest.param(lambda: series(SAID, "string"), id="pandas strings"),
        pytest.param(lambda: series(SAID, "object"), id="pandas objects"),
    ],
)
def test_texts_come_in_any_sequence(X: Callable[[], Any]) -> None:
    texts = validation.raw_instances(X())
    assert texts.tolist() == SAID
    assert {type(text) for text in texts} == {str}
    assert (texts.dtype, texts.shape) == (np.dtype(object), (3,))
    assert validation.raw_instances(X(), shape=()).tolist() == SAID


@pytest.mark.parametrize(
    ("X", "seen"),
    [
        ("a single text", r"X is 'a single text': give a sequence"),
        (["one", ""], r"X\[1\] is an empty text \(''\)"),
        (["one", " \n"], r"X\[1\] is an empty text"),
        (["one", None], r"X\[1\] is None, not a text"),
        ([math.nan, "one"], r"X\[0\] is nan, not a text"),
        (np.array(["one", 3], dtype=object), r"X\[1\] is 3, not a text"),
        (["one", ["two"] * 50], r"X\[1\] is \['two', .*\.\.\., not a text"),
        (["one", "\ud800"], r"X\[1\] is no valid Unicode"),
    ],
)
def test_texts_that_are_none_are_refused_with_their_index(X: Any, seen: str) -> None:
    with pytest.raises(BadInput, match=seen):
        validation.raw_instances(X)


@pytest.mark.parametrize("X", [[[1, 2]], np.zeros((2, 4, 4), np.uint8), [], ["a"][:0], b"ab", {}])
def test_what_holds_no_text_is_taken_as_numbers(X: Any) -> None:
    def seen(check: Callable[..., Array]) -> Any:
        try:
            return check(X).tolist()
        except BadInput as error:
            return str(error)

    assert seen(validation.raw_instances) == seen(validation.instances)


def test_texts_and_numbers_do_not_replace_each_other() -> None:
    with pytest.raises(
        BadInput, match=r"X holds texts, but .* fitted on instances of shape \(4,\)"
    ):
        validation.raw_instances(SAID, shape=(4,))
    with pytest.raises(BadInput, match="X holds no texts, but the learner was fitted on texts"):
        validation.raw_instances(np.zeros((3, 4)), shape=())


def test_sparse_instances_are_named_as_such() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(BadInput, match=r"X is sparse: give a dense array, such as X\.toarray\(\)"):
        validation.instances(csr_array([[0.0, 1.0], [0.0, 0.0]]))


def test_continuous_labels_are_named_as_such() -> None:
    with pytest.raises(BadInput, match=r"y\[1\] is 0\.5, of a continuous target"):
        validation.labels([1, 0.5], n=2)
