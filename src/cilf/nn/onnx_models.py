"""Image networks that users bring as ONNX files: "onnx:FILE", with how images are prepared.

"onnx:dino.onnx?size=224&mean=0.5,0.5,0.5&std=0.5,0.5,0.5" gives pixels a side, and what is
subtracted from pixels between 0 and 1 and what they are then divided by. A path in a model folder
is never opened: whoever loads the model names the file, and its digest must be the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import numpy as np
import torch
from torch.nn import functional as F

from cilf.core.extras import named_encoders, optional
from cilf.core.types import Array, Floats
from cilf.errors import BadConfig, BadInput
from cilf.nn.batches import padded_batches

PREFIX = "onnx:"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as most networks have it
USUAL_SIZE, MOST_PIXELS = 224, 2048  # a side
BATCH = 16  # images, if the network leaves it open
TOO_LARGE = 1e16  # a feature; the squares of larger ones would not be finite together
WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
OPTIONS = "?"  # before the options of a name

_identities: dict[str, tuple[int, ...]] = {}  # of the files of names, as they were seen last


class Preprocessing(NamedTuple):
    """How images are prepared for a network."""

    size: int | None = None  # pixels a side; None: as the network says
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD


class OnnxNetwork:
    """A network in an ONNX file, ready to run."""

    def __init__(self, path: Path, prepare: Preprocessing) -> None:
        content = _read(path)
        self.file = path.name
        self.session = _open(content, path)
        self.input = _only_input(self.session, path)
        batch, _, height, width = self.input.shape
        self.batch_size = batch if isinstance(batch, int) else BATCH
        self.size = _choose_size(prepare.size, height, width, path)
        self.mean, self.std = prepare.mean, prepare.std
        self.digest = _digest(content, prepare._replace(size=self.size))

    def extract(self, X: Array) -> Floats:
        """The features of images, (n, f)."""
        found = []
        for rows, n in padded_batches(np.arange(len(X)), self.batch_size):
            found.append(self._run(self._prepare(X[rows]))[:n])
        features = np.concatenate(found)
        if not (np.abs(features) < TOO_LARGE).all():
            raise BadInput(
                f"the backbone {self.file} gives values that are not finite, or beyond "
                f"{TOO_LARGE:g}: check its preprocessing (size, mean, std), or export it again in "
                "float32."
            )
        return features

    def _prepare(self, X: Array) -> Floats:
        pixels = torch.from_numpy(np.ascontiguousarray(X)).float()
        if pixels.ndim == 3:
            pixels = pixels.unsqueeze(-1)
        images = pixels.permute(0, 3, 1, 2).expand(-1, 3, -1, -1) / 255
        if images.shape[2:] != (self.size, self.size):
            images = F.interpolate(
                images, (self.size, self.size), mode="bilinear", align_corners=False, antialias=True
            )
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (self.mean, self.std))
        return np.asarray(((images - mean) / std).numpy(), dtype=np.float32)

    def _run(self, images: Floats) -> Floats:
        try:
            output = self.session.run(None, {self.input.name: images})[0]
        except _errors() as error:
            raise BadInput(
                f"the backbone {self.file} does not run on images of {self.size} pixels "
                f"({_first_line(error)}): give the size that it was exported for, ?size=PIXELS."
            ) from error
        return _pool(output, len(images), self.file)


def parse(name: str) -> tuple[Path, Preprocessing]:
    """The file and the preprocessing that a name gives.

    >>> path, prepare = parse("onnx:dino.onnx?size=224")
    >>> path.name, prepare.size
    ('dino.onnx', 224)
    """
    file, _, query = name.removeprefix(PREFIX).partition(OPTIONS)
    given = dict(parse_qsl(query, keep_blank_values=True))
    unknown = set(given) - set(Preprocessing._fields)
    if unknown or not file:
        what = f"the option {sorted(unknown)[0]!r}" if unknown else "no file"
        raise BadConfig(
            f"backbone is {name!r}, with {what}: write onnx:FILE, whose path has no {OPTIONS}, and "
            f"after {OPTIONS} any of {', '.join(Preprocessing._fields)}."
        )
    read = {key: _read_option(name, key, value) for key, value in given.items()}
    return Path(file), Preprocessing(**read)


def locate(stored: str, digest: str) -> str:
    """The name with which a model finds its network among the files that the user names.

    The path in ``stored`` is never opened.
    """
    file, prepare = parse(stored)
    named = [Path(each) for each in named_encoders()]
    for path in named:
        if _has_digest(path, prepare, digest):
            return f"{PREFIX}{path}{OPTIONS}{_format(prepare)}"
    tried = f"; {', '.join(path.name for path in named)} is another one" if named else ""
    raise BadInput(
        f"the model was made with the ONNX file {file.name} (digest {digest}){tried}: name the "
        "file, --encoder FILE, or load(folder, backbone='onnx:FILE')."
    )


def _has_digest(path: Path, prepare: Preprocessing, digest: str) -> bool:
    """Whether this is the file. One that cannot be read, or does not fit, is another one."""
    try:
        return OnnxNetwork(path, prepare).digest == digest
    except BadConfig:
        return False


def make_absolute(name: str) -> str:
    """The name with the whole path of its file, whatever the current folder is later."""
    if not name.startswith(PREFIX):
        return name
    file, mark, query = name.removeprefix(PREFIX).partition(OPTIONS)
    return f"{PREFIX}{Path(file).absolute() if file else ''}{mark}{query}"


def identify(name: str) -> tuple[int, ...] | None:
    """What changes when the file of a name is written again; None if it has no file.

    A file that is gone is the one that was there: what was loaded from it still serves.
    """
    if name.startswith(PREFIX):
        with suppress(OSError, ValueError):  # opening it says what is wrong
            about = parse(name)[0].stat()
            _identities[name] = about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size
    return _identities.get(name)


def adopt_options(name: str, stored: str) -> str:
    """The name of a file with the options that a model was made with, unless it has its own."""
    if OPTIONS in name or not (name.startswith(PREFIX) and stored.startswith(PREFIX)):
        return name
    return f"{name}{OPTIONS}{_format(parse(stored)[1])}"


def _format(prepare: Preprocessing) -> str:
    values = {"mean": prepare.mean, "std": prepare.std}
    options = {key: ",".join(f"{v:.12g}" for v in value) for key, value in values.items()}
    if prepare.size is not None:
        options["size"] = str(prepare.size)
    return urlencode(options, safe=",")


def _read_option(name: str, key: str, value: str) -> Any:
    if key == "size":
        if value.isdecimal() and len(value) <= 5 and 8 <= int(value) <= MOST_PIXELS:
            return int(value)
        wanted = f"pixels from 8 to {MOST_PIXELS}"
    else:
        numbers = _read_numbers(value)
        if len(numbers) == 3 and (key == "mean" or min(numbers) > 0):
            return numbers
        wanted = "three numbers like 0.5,0.5,0.5"
    raise BadConfig(f"backbone is {name!r}, with {key}={value}: give {wanted}.")


def _read_numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(each) for each in text.split(","))
    except ValueError:
        return ()
    return numbers if all(map(math.isfinite, numbers)) else ()


# ------------------------------------------------------------------------------- the file


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # the second: a path that no file can have
        raise BadConfig(
            f"backbone names the ONNX file {str(path)!r}, which cannot be read: name another."
        ) from error


def _open(content: bytes, path: Path) -> Any:
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4  # what is wrong is raised
    try:
        with TemporaryDirectory() as empty:  # weights in other files would not be in the digest
            options.add_session_config_entry(WEIGHTS_FOLDER, empty)
            return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except _errors() as error:
        raise BadConfig(
            f"backbone names {path}, which is no ONNX network that onnxruntime can run "
            f"({_first_line(error)}): export it again, with its weights inside and an operator set "
            "that onnxruntime has."
        ) from error


def _only_input(session: Any, path: Path) -> Any:
    inputs = session.get_inputs()
    shape = inputs[0].shape if len(inputs) == 1 else []
    channels_fit = len(shape) == 4 and (shape[1] == 3 or not isinstance(shape[1], int))
    if not channels_fit or inputs[0].type != "tensor(float)":
        raise BadConfig(
            f"backbone names {path}, which does not take one batch of float32 images, (n, 3, "
            "height, width): export the image part of the network alone."
        )
    return inputs[0]


def _choose_size(asked: int | None, height: Any, width: Any, path: Path) -> int:
    fixed = {side for side in (height, width) if isinstance(side, int)}
    if len(fixed) > 1 or (asked is not None and fixed - {asked}):
        raise BadConfig(
            f"backbone names {path}, which takes images of {height} x {width} pixels, not of "
            f"{asked or 'equal sides'}: leave out size, or export the network for that size."
        )
    return asked or (fixed.pop() if fixed else USUAL_SIZE)


def _pool(output: Any, n: int, file: str) -> Floats:
    """Vectors as they are, the first of several tokens, the mean over a map."""
    is_right = isinstance(output, np.ndarray) and output.dtype.kind == "f" and output.size > 0
    if not is_right or output.ndim not in (2, 3, 4) or len(output) != n:
        raise BadInput(
            f"the backbone {file} gives no vectors, (n, f), tokens, (n, t, f), or maps, "
            "(n, f, h, w), as its first output: export its features, or give the size that it was "
            "exported for, ?size=PIXELS."
        )
    if output.ndim == 3:
        output = output[:, 0]
    if output.ndim == 4:
        output = output.mean((2, 3))
    return np.asarray(output, dtype=np.float32)


def _digest(content: bytes, prepare: Preprocessing) -> str:
    hashed = hashlib.blake2b(content, digest_size=8)
    hashed.update(_format(prepare).encode())
    return hashed.hexdigest()


def _runtime() -> Any:
    return optional("onnxruntime", extra="onnx", purpose="a network in an ONNX file")


def _errors() -> tuple[type[Exception], ...]:
    """What onnxruntime raises; its exceptions have no common root of their own."""
    state = optional(
        "onnxruntime.capi.onnxruntime_pybind11_state", extra="onnx", purpose="a network in ONNX"
    )
    return tuple(_exceptions_of(state))


def _exceptions_of(module: Any) -> Iterator[type[Exception]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Exception):
            yield value


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
