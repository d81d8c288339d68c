"""Validation of input. Public methods call it once; the code inside assumes valid input."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from cilf.core.types import Array, Label
from cilf.errors import BadConfig, BadInput

IMAGES = "(n, h, w) grey images or (n, h, w, c) colour images"
FORMS = f"(n, d) features, {IMAGES}"
FEWEST_CLASSES = 2  # that a learner can have


def instances(X: Any, *, shape: tuple[int, ...] | None = None, name: str = "X") -> Array:
    """``X`` as a finite array: uint8 stays uint8, every other number becomes float32.

    ``shape`` is the shape of one instance that the learner was fitted on, if it was.

    >>> instances([[1, 2], [3, 4]]).dtype
    dtype('float32')
    """
    array = _to_numbers(X, name)
    if array.ndim not in (2, 3, 4):
        raise BadInput(f"{name} has shape {array.shape}: give {FORMS}.")
    if array.size == 0:
        raise BadInput(f"{name} is empty (shape {array.shape}): give at least one instance.")
    if shape is not None and array.shape[1:] != shape:
        raise BadInput(
            f"{name} holds instances of shape {array.shape[1:]}, but the learner was fitted on "
            f"{shape}: bring them to that shape, or fit again."
        )
    return array


def raw_instances(X: Any, *, shape: tuple[int, ...] | None = None) -> Array:
    """``X`` as ``texts`` if it holds any, else as ``instances``; a text has the shape ()."""
    if not _are_texts(X):
        if shape == ():
            raise BadInput(
                "X holds no texts, but the learner was fitted on texts: give a sequence of "
                "strings, or fit again."
            )
        return instances(X, shape=shape)
    if shape:
        raise BadInput(
            f"X holds texts, but the learner was fitted on instances of shape {shape}: give "
            "such instances, or fit again."
        )
    return texts(X)


def texts(X: Any, *, name: str = "X") -> Array:
    """``X`` as an object array of strings, none of them empty.

    >>> texts(["one text", "another"]).dtype
    dtype('O')
    """
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise BadInput(f"{name} is {_shorten(X)}: give a sequence of texts.")
    values = list(X)
    for index, value in enumerate(values):
        _check_text(value, f"{name}[{index}]")
    array = np.empty(len(values), dtype=object)
    array[:] = [str(value) for value in values]
    return array


def _are_texts(X: Any) -> bool:
    """Whether ``X`` is meant as texts, though some may be missing or not be strings."""
    if isinstance(X, str):
        return True
    if not isinstance(X, Sequence):
        try:
            X = np.asarray(X)
        except (ValueError, TypeError, RuntimeError):  # the last is torch's
            return False
        if X.ndim != 1 or X.dtype.kind not in "OUT":
            return False
    return any(isinstance(value, str) for value in X)


def _check_text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise BadInput(f"{name} is {_shorten(value)}, not a text: leave that instance out.")
    if not value.strip():
        raise BadInput(f"{name} is an empty text ({value!r}): leave that instance out.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{name} is no valid Unicode ({error.reason}): decode it anew.") from error


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _to_numbers(X: Any, name: str) -> Array:
    if type(X).__module__.startswith("scipy.sparse"):  # numpy makes a single object of it
        raise BadInput(f"{name} is sparse: give a dense array, such as {name}.toarray().")
    if np.ma.is_masked(X):
        raise BadInput(f"{name} has masked values: fill them, or leave those instances out.")
    try:
        array = np.asarray(X)
        if array.dtype == object:
            array = _unbox(array)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:  # the last is torch's
        raise BadInput(
            f"{name} is not an array of numbers ({_first_sentence(error)}): give {FORMS}."
        ) from error
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{name} has dtype {array.dtype}: give numbers, as {FORMS}.")
    if array.dtype == np.uint8:
        return array
    with np.errstate(over="ignore"):
        floats = array.astype(np.float32, copy=False)
    if not np.isfinite(floats).all():
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(floats))[0])
        raise BadInput(
            f"{name} holds {array[first]} at index {first}: remove or fill NaN and infinite "
            "values first (every value must be finite in float32)."
        )
    return floats


def _unbox(array: Array) -> Array:
    if array.ndim == 0:
        raise TypeError(f"it is a single {type(array.item()).__name__}")
    strange = next((v for v in array.flat if not isinstance(v, numbers.Real)), None)
    if strange is not None:
        raise TypeError(f"it is an object array that holds {type(strange).__name__}")
    return array.astype(np.float64)


def _first_sentence(error: Exception) -> str:
    return str(error).splitlines()[0].split(". ")[0]


def labels(y: Any, *, n: int, kind: str | None = None, name: str = "y") -> Array:
    """``y`` as ``n`` ints or ``n`` strings; ``kind`` ("i" or "U") is what the learner knows."""
    values = _label_values(y, name)
    if len(values) != n:
        raise BadInput(f"{name} has {len(values)} labels for {n} instances: give one for each.")
    array = _label_array(values, name)
    if kind is not None and array.dtype.kind != kind:
        names = {"i": "ints", "U": "strings"}
        raise BadInput(
            f"{name} holds {names[array.dtype.kind]}, but the learner knows its classes by "
            f"{names[kind]}: convert the labels."
        )
    return array


def _label_values(y: Any, name: str) -> list[Any]:
    values = np.asarray(y).tolist() if hasattr(y, "__array__") else y
    unordered = isinstance(values, str | bytes | Mapping | Set)
    if unordered or not isinstance(values, Iterable):
        raise BadInput(f"{name} is {y!r}: give a sequence of labels, one for each instance.")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _label_array(values: list[Any], name: str) -> Array:
    for index, value in enumerate(values):
        _check_label(value, f"{name}[{index}]")
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise BadInput(f"{name} mixes ints and strings: use one kind of label.")
    if kinds == {True}:
        return np.array(values, dtype=str)
    return np.array(values, dtype=np.int64)


def _check_label(value: Any, name: str) -> None:
    empty = isinstance(value, str) and not value.strip()
    if value is None or empty or (isinstance(value, float) and math.isnan(value)):
        raise BadInput(f"{name} is missing ({value!r}): leave that instance out.")
    if isinstance(value, float) and not value.is_integer():
        raise BadInput(
            f"{name} is {value!r}, of a continuous target (float): labels are ints or strings."
        )
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadInput(f"{name} is {value!r} ({type(value).__name__}): labels are ints or strings.")
    if isinstance(value, str) and value.endswith("\0"):  # numpy would drop the end of such a name
        raise BadInput(f"{name} is {value!r}: remove the NUL at its end.")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadInput(f"{name} is {value}, which 64 bits cannot hold: use strings as labels.")


def known_classes(y: Array, *, name: str = "y") -> None:
    """Refuse training labels of fewer than two classes."""
    classes = np.unique(y)
    if len(classes) < FEWEST_CLASSES:
        raise BadInput(
            f"{name} holds {len(classes)} class ({classes.tolist()}): fitting needs at least two."
        )


def n_novel(value: Any, *, window: int) -> int | None:
    """The number of novel classes: None, or an int from 0 to the size of the window."""
    if value is None:
        return None
    number = whole_number("n_novel", value, least=0)
    if number > window:
        raise BadInput(
            f"n_novel is {number}, but the window holds {window} instances: give at most that."
        )
    return number


def whole_number(name: str, value: Any, *, least: int) -> int:
    """``value`` as an int of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise BadConfig(f"{name} is {value!r}: give a whole number of at least {least}.")
    return int(value)


def number(name: str, value: Any, *, least: float = -math.inf, most: float = math.inf) -> float:
    """``value`` as a finite float between ``least`` and ``most``."""
    fits = isinstance(value, numbers.Real) and not isinstance(value, bool)
    real = _float(value) if fits else math.nan
    if not math.isfinite(real) or not least <= real <= most:
        raise BadConfig(f"{name} is {value!r}: give a number {_range(least, most)}.")
    return real


def _range(least: float, most: float) -> str:
    """A range in words.

    >>> _range(0, 1), _range(0, math.inf), _range(-math.inf, math.inf)
    ('from 0 to 1', 'from 0 on, not infinite', 'that is not infinite')
    """
    if most < math.inf:
        return f"from {least:g} to {most:g}" if least > -math.inf else f"of {most:g} at most"
    return f"from {least:g} on, not infinite" if least > -math.inf else "that is not infinite"


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a Python int may be larger than any float
        return math.inf


def flag(name: str, value: Any) -> bool:
    """``value`` if it is a bool; 0 and 1 are refused."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise BadConfig(f"{name} is {value!r}: give true or false.")


def one_of(kind: str, value: Any, known: Iterable[str]) -> str:
    """``value`` if it is a known name of this kind; otherwise the nearest one is suggested.

    >>> one_of("learner", "clif", ["cilf", "joint"])
    Traceback (most recent call last):
    ...
    cilf.errors.BadConfig: unknown learner 'clif': did you mean 'cilf'? Known: cilf, joint.
    """
    names = list(known)
    if isinstance(value, str) and value in names:
        return value
    near = find_nearest(value, names)
    hint = f"did you mean {near!r}? " if near else ""
    raise BadConfig(f"unknown {kind} {value!r}: {hint}Known: {', '.join(names)}.")


def find_nearest(value: Any, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one is most like; None if it is like none of them.

    >>> find_nearest("mnits", ["digits", "mnist"]), find_nearest("nowhere", ["digits", "mnist"])
    ('mnist', None)
    """
    near = difflib.get_close_matches(str(value).lower(), list(known), n=1, cutoff=0.5)
    return near[0] if near else None


Check = Callable[[str, Any], object]
"""A function of a parameter's name and value that raises if the value cannot be used."""


def among(known: Iterable[str]) -> Check:
    """The check that a value is one of these names."""
    names = list(known)
    return lambda name, value: one_of(name, value, names)


def whole(least: int) -> Check:
    """The check that a value is a whole number, not below ``least``."""
    return lambda name, value: whole_number(name, value, least=least)


def in_range(least: float, most: float = math.inf) -> Check:
    """The check that a value is a number in this range."""
    return lambda name, value: number(name, value, least=least, most=most)


def number_or(known: Iterable[str], *, least: float, most: float = math.inf) -> Check:
    """The check that a value is one of these names or a number in this range."""
    named = among(known)
    ranged = in_range(least, most)
    return lambda name, value: (named if isinstance(value, str) else ranged)(name, value)


def optional(check: Check) -> Check:
    """The same check, but None passes it."""
    return lambda name, value: None if value is None else check(name, value)


def in_order_of_appearance(y: Array, known: Sequence[Label] = ()) -> list[Label]:
    """The classes of ``y`` that are not among ``known``, in the order they first appear.

    >>> in_order_of_appearance(np.array(["b", "a", "b"]), known=["c"])
    ['b', 'a']
    """
    seen = set(known)
    return [label for label in dict.fromkeys(y.tolist()) if label not in seen]
