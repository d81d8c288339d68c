"""Export a model to a file that runs without this package."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cilf.core import validation
from cilf.core.files import explain_write_errors, make_folder, replace_file
from cilf.learners import load
from cilf.learners.persistence import read_head
from cilf.learners.portable import Portable
from cilf.nn.onnx_export import export_module
from cilf.workflow.prediction import require_free
from cilf.workflow.versions import load_model


@dataclass(frozen=True)
class Exported:
    """A file that was exported.

    Attributes:
        path: the file.
        size: its bytes.
        version: the version of the model; None for a model without versions.
        classes: the names of the classes, in the order of the file's columns.
        outputs: what the file gives for a batch of instances.
    """

    path: Path
    size: int
    version: int | None
    classes: tuple[str, ...]
    outputs: tuple[str, ...]


def _write_onnx(portable: Portable, about: Mapping[str, str]) -> bytes:
    return export_module(portable.module, portable.shape, portable.module.outputs, about)


FORMATS: dict[str, Callable[[Portable, Mapping[str, str]], bytes]] = {"onnx": _write_onnx}


def export(
    model: str | Path, out: str | Path, *, to: str = "onnx", overwrite: bool = False
) -> Exported:
    """Export the current version of a model: network, readout and p-values in one file.

    The labels that people gave to single instances are no part of the file.

    Args:
        model: a model folder.
        out: the file.
        to: the format, one of ``FORMATS``.
        overwrite: replace a file.
    """
    write = FORMATS[validation.one_of("format", to, FORMATS)]
    place = Path(out)
    require_free(place, overwrite)
    loaded = load_model(model)
    has_device = "device" in read_head(loaded.path)["parameters"]
    portable = load(loaded.path, **({"device": "cpu"} if has_device else {})).portable()
    classes = tuple(str(label) for label in portable.classes)
    about = {
        "classes": json.dumps(classes, ensure_ascii=False),
        "instance_shape": json.dumps(portable.shape),
        "model_id": loaded.id,
        "model_version": "" if loaded.version is None else str(loaded.version),
        "cilf": version("cilf"),
    }
    content = write(portable, about)
    make_folder(place.parent)
    with explain_write_errors(place):
        replace_file(place, content)
    return Exported(place, len(content), loaded.version, classes, portable.module.outputs)
