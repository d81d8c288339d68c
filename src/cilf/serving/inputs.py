"""Instances in requests and in lines of JSON, in the form of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cilf.console.uploads import MAX_PIXELS, TooLarge
from cilf.core import validation
from cilf.core.types import Array
from cilf.data import Instances
from cilf.data.pixels import Form, Unreadable, read_header, read_pixels, refuse_bombs
from cilf.errors import BadInput
from cilf.workflow.input_data import FORM_OF_AXES, IMAGES
from cilf.workflow.ledger import hash_instances
from cilf.workflow.versions import LoadedModel

MOST_INSTANCES = 10_000  # of a request
ONE, SEVERAL, ID, IDS = "instance", "instances", "id", "ids"
MOST_SHOWN = 60  # characters of a line in a message
NAME_LENGTH = 12  # characters of the hash that names a line without an identity


def read_batch(document: Any, model: LoadedModel) -> Instances:
    """Read a document with ``instance`` or ``instances``, and perhaps ``ids``."""
    given = document if isinstance(document, Mapping) else {}
    if (ONE in given) == (SEVERAL in given):
        raise BadInput(f"the body has to be a JSON object with {ONE!r} or {SEVERAL!r}.")
    values = [given[ONE]] if ONE in given else given[SEVERAL]
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise BadInput(f"{SEVERAL} has to be a list of vectors or of texts, with at least one.")
    if len(values) > MOST_INSTANCES:
        raise TooLarge(f"{len(values)} instances are more than {MOST_INSTANCES}: send fewer.")
    return Instances(to_array(values, model), _read_ids(given.get(IDS), len(values)))


def to_array(values: Sequence[Any], model: LoadedModel) -> Array:
    """Vectors or texts as an array in the form of the model."""
    if FORM_OF_AXES[len(model.instance_shape)] == IMAGES:
        raise BadInput("the model takes images: send them as files (multipart/form-data).")
    return validation.raw_instances(list(values), shape=model.instance_shape)


def _read_ids(ids: Any, n: int) -> Array:
    if ids is None:
        return np.arange(n).astype(str)
    if not isinstance(ids, list) or len(ids) != n:
        raise BadInput(f"{IDS} has to be a list with the identity of each of the {n} instances.")
    return np.array([str(each) for each in ids], dtype=str)


def read_line(line: str, model: LoadedModel) -> Instances:
    """Read an instance of a stream: a vector, a text, or an object.

    An object has ``instance`` and perhaps ``id``, or the columns of the table that the model was
    fitted on.
    """
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{line[:MOST_SHOWN]!r} is no JSON.") from error
    value, identity = given, None
    if isinstance(given, Mapping):
        identity = given.get(ID)
        value = given[ONE] if ONE in given else _select_columns(given, model)
    X = to_array([value], model)
    name = f"line {hash_instances(X)[0][:NAME_LENGTH]}" if identity is None else str(identity)
    return Instances(X, np.array([name], dtype=str))


def _select_columns(row: Mapping[str, Any], model: LoadedModel) -> Any:
    """The values of the columns of the model. One column of texts is a text."""
    if missing := [name for name in model.columns if name not in row]:
        raise BadInput(f"a line lacks the column {missing[0]!r} of the model.")
    if not model.columns:
        raise BadInput(f"a line has no {ONE!r}, and the model has no columns.")
    values = [row[name] for name in model.columns]
    return values if model.instance_shape else values[0]


def read_image(name: str, content: bytes, model: LoadedModel) -> Array:
    """Read the pixels of an encoded image in the form of the model."""
    shape = model.instance_shape
    if FORM_OF_AXES[len(shape)] != IMAGES:
        raise BadInput("the model takes no images: send JSON with 'instances'.")
    with refuse_bombs():
        header = read_header(content)
        if not isinstance(header, Unreadable) and header.size[0] * header.size[1] > MAX_PIXELS:
            raise TooLarge(f"{name} has more than {MAX_PIXELS:,} pixels: shrink it.")
        pixels = read_pixels(content, Form((shape[0], shape[1]), colour=len(shape) == 3))
    if isinstance(pixels, Unreadable):
        raise BadInput(f"{name} is not a readable image ({pixels.reason}): leave it out.")
    return pixels


def read_images(files: Sequence[tuple[str, bytes]], model: LoadedModel) -> Instances:
    """Read encoded images with their names."""
    if not files:
        raise BadInput("files: send at least one image.")
    if len(files) > MOST_INSTANCES:
        raise TooLarge(f"{len(files)} files are more than {MOST_INSTANCES}: send fewer.")
    pixels = [read_image(name, content, model) for name, content in files]
    return Instances(np.stack(pixels), np.array([name for name, _ in files], dtype=str))
