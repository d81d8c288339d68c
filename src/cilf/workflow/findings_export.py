"""Export findings, with the labels that people gave, to a format of another program."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from cilf.core import validation
from cilf.core.files import PENDING, explain_write_errors, make_folder, put_folder, swap_folders
from cilf.core.types import Array
from cilf.data.pixels import Unreadable, is_image, read_header
from cilf.data.spreadsheets import escape_surrogates
from cilf.errors import BadInput
from cilf.report.findings_page import format_value
from cilf.workflow.findings import Findings
from cilf.workflow.findings_view import encode_picture, find_scale, make_picture, name_columns
from cilf.workflow.findings_writer import find_originals
from cilf.workflow.formats import FORMATS, Export, Format, LabelRow
from cilf.workflow.formats.contents import IMAGES, NUMBERS, TEXTS
from cilf.workflow.labels import name_picture, read_names

FORM_OF_AXES = {1: TEXTS, 2: NUMBERS}  # by the number of axes
SHOWN_BY_ALL = frozenset([".jpg", ".jpeg", ".png"])  # other pictures are written anew, as png


@dataclass(frozen=True)
class ExportedFindings:
    """Findings that were exported.

    Attributes:
        path: the folder.
        format: the name of the format.
        n_instances: the number of instances.
        labels: the labels of people, by identity.
    """

    path: Path
    format: str
    n_instances: int
    labels: dict[str, str]


def export_findings(
    findings: str | Path, out: str | Path, *, to: str = "csv", overwrite: bool = False
) -> ExportedFindings:
    """Export findings to a folder, which appears whole or not at all.

    Args:
        findings: a findings folder.
        out: the new folder.
        to: the name of the format, one of ``FORMATS``.
        overwrite: replace an earlier export in this format.
    """
    format = FORMATS[validation.one_of("format", to, FORMATS)]
    opened, place = Findings.open(findings), Path(out)
    _require_room(place, format, overwrite)
    names = read_names(opened)
    export = _collect(opened, names, format, place.name)
    files = {name: partial(_same, content) for name, content in format.write(export).items()}
    with explain_write_errors(place):
        _write(place, {**files, **(export.pictures if format.place else {})})
    return ExportedFindings(place, to, len(export.rows), names)


def _same(content: bytes) -> bytes:
    return content


def _collect(findings: Findings, names: dict[str, str], format: Format, name: str) -> Export:
    """The rows of an export, with functions that make their pictures."""
    found = findings.assignments
    X = findings.instances(np.arange(len(found.ids)))
    form = FORM_OF_AXES.get(X.ndim, IMAGES)
    if form not in format.forms:
        fitting = [key for key, other in FORMATS.items() if form in other.forms]
        raise BadInput(
            f"{findings.path} holds {form}, and {format.title} has {' and '.join(format.forms)} "
            f"only: export to {', '.join(fitting)}."
        )
    rows = [_describe(row, findings, X, form, names) for row in range(len(found.ids))]
    pictures: dict[str, Callable[[], bytes]] = {}
    if form == IMAGES and (format.place or format.embeds_pictures):
        scale = find_scale(X)
        for number, row in enumerate(rows):
            file, size, content = _find_picture(findings, number, X[number], scale)
            path = file if format.place is None else format.place(row, file)
            rows[number], pictures[path] = replace(row, image=path, size=size), content
    version = findings.about["version"]
    return Export(rows, f"version {version}", name, form, pictures=pictures)


def _describe(row: int, findings: Findings, X: Array, form: str, names: dict[str, str]) -> LabelRow:
    found, identity = findings.assignments, str(findings.assignments.ids[row])
    cluster, text = int(found.cluster[row]), ""
    if form == TEXTS:
        text = str(X[row])
    elif form == NUMBERS:
        columns = name_columns(findings.columns, X.shape[1])
        pairs = zip(columns, X[row].tolist(), strict=True)
        text = ", ".join(f"{column} {format_value(value)}" for column, value in pairs)
    return LabelRow(
        identity=identity,
        label=names.get(identity, ""),
        predicted=escape_surrogates(str(found.label[row])) if cluster < 0 else "",
        cluster=cluster + 1 if cluster >= 0 else None,
        novelty=float(f"{found.novelty[row]:.7g}"),
        text=text,
        embedding=tuple(findings.embedding[row].tolist()),
    )


def _find_picture(
    findings: Findings, row: int, x: Array, scale: tuple[float, float] | None
) -> tuple[str, tuple[int, int], Callable[[], bytes]]:
    """The file name, width and height of a picture, and a function that gives its content.

    It is the file that the instance comes from, or what the model sees if that is gone.
    """
    name = name_picture(findings, row)
    original = _find_original(findings, str(findings.assignments.ids[row]))
    if original is not None:
        header = read_header(original)
        if not isinstance(header, Unreadable):
            height, width = header.size
            return f"{name}{original.suffix.lower()}", (width, height), original.read_bytes
    picture = make_picture(x, scale)
    height, width = picture.shape[:2]
    return f"{name}.png", (width, height), partial(encode_picture, picture, "png")


def _find_original(findings: Findings, identity: str) -> Path | None:
    folder = find_originals(str(findings.about.get("data", "")))
    if folder is None or not is_image(Path(identity)):
        return None
    path = (folder / identity).resolve()
    is_usable = path.is_relative_to(folder.resolve()) and path.suffix.lower() in SHOWN_BY_ALL
    return path if is_usable and path.is_file() else None


def _write(out: Path, files: dict[str, Callable[[], bytes]]) -> None:
    make_folder(out.parent)
    pending = out.with_name(f".{out.name}{PENDING}")
    shutil.rmtree(pending, ignore_errors=True)
    try:
        for name, content in files.items():
            (pending / name).parent.mkdir(parents=True, exist_ok=True)
            (pending / name).write_bytes(content())
        if out.exists():
            swap_folders(pending, out)
        else:
            put_folder(pending, out)
    finally:
        shutil.rmtree(pending, ignore_errors=True)  # the former folder, or an unfinished one


def _require_room(out: Path, format: Format, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / format.file).is_file():
        raise BadInput(f"{out} holds other things: name a new folder for the export.")
    if not overwrite:
        raise BadInput(
            f"{out} holds an export already, which somebody may have edited: name another folder, "
            "or replace it (--overwrite)."
        )
