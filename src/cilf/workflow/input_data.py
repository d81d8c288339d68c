"""The data of a model: labelled data to fit it on, and new data in the same form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from cilf.core.notices import warn_once
from cilf.data import DATASETS, Dataset, Instances, load_dataset
from cilf.data.columns import Table, find_kinds
from cilf.data.options import Options
from cilf.data.paths import read_instances
from cilf.data.reader import Reader
from cilf.data.readers import find_reader
from cilf.errors import BadInput
from cilf.workflow.row_engines import AnyInstances
from cilf.workflow.versions import LoadedModel

IMAGES, NUMBERS, TEXTS = "images", "numbers", "texts"  # the forms of instances
FORM_OF_AXES = {0: TEXTS, 1: NUMBERS, 2: IMAGES, 3: IMAGES}  # of one instance
FORM_OF_KIND = {
    "image": IMAGES,
    "path": IMAGES,
    "text": TEXTS,
    "number": NUMBERS,
    "vector": NUMBERS,
}
REMEDIES = {
    IMAGES: "give a folder of images, or a table with a column of images or of their paths",
    NUMBERS: "give a table with these columns",
    TEXTS: "give a table with a column of texts",
}
MOST_LISTED = 5  # columns in a message

Found = TypeVar("Found", bound=AnyInstances)


def read_labelled(data: str, loading: Mapping[str, Any]) -> Dataset:
    """Read labelled data; the classes are texts, because people type them into tables."""
    if data in DATASETS and Path(data).exists():
        warn_once(f"{data} is the data set of that name; ./{data} is the folder or file")
    dataset = load_dataset(data, **loading)
    train, test = (replace(part, y=part.y.astype(str)) for part in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test)


def read_new(
    data: str | Path, model: LoadedModel, *, column: str | None = None, skip_bad: bool = False
) -> Instances:
    """Read new instances in the form of the model: images of its size, columns of its names."""
    return read_with(read_instances, data, model, column=column, skip_bad=skip_bad)


def read_with(
    read: Callable[[Path, Options], Found],
    data: str | Path,
    model: LoadedModel,
    *,
    column: str | None = None,
    skip_bad: bool = False,
) -> Found:
    """Read new instances with a function that reads a path, here or elsewhere."""
    path = Path(data).expanduser()
    shape, form = model.instance_shape, FORM_OF_AXES[len(model.instance_shape)]
    reader = find_reader(path)
    _require_form(path, reader, model, column)
    columns = list(model.columns) if "columns" in reader.options else []
    if column is None and len(columns) == 1:
        column = columns[0]
    options = Options(
        column=column,
        columns=tuple(columns) if column is None and columns else None,
        size=shape if form == IMAGES and "size" in reader.options else None,
        skip_bad=skip_bad,
    )
    instances = read(path, options)
    found = FORM_OF_AXES[instances.X.ndim - 1]
    if found != form:
        raise _form_error(f"{path} holds {found}", model)
    return instances


def _require_form(path: Path, reader: Reader, model: LoadedModel, column: str | None) -> None:
    """Refuse data in another form than that of the model, before they are read."""
    form = FORM_OF_AXES[len(model.instance_shape)]
    if reader.read_table is not None:
        _require_table_form(path, reader.read_table(path), model, column)
    elif path.is_dir() and form != IMAGES:
        raise _form_error(f"{path} is a folder of images", model)


def _require_table_form(path: Path, table: Table, model: LoadedModel, column: str | None) -> None:
    form = FORM_OF_AXES[len(model.instance_shape)]
    forms = {FORM_OF_KIND[kind] for kind in find_kinds(table, column)}
    if forms and form not in forms:
        raise _form_error(f"{path} is a table of {' and '.join(sorted(forms))}", model)
    if column is None and len(model.columns) == 1 and model.columns[0] not in table.features:
        raise BadInput(
            f"{path} lacks the column {model.columns[0]!r} that the model was fitted on (it has "
            f"{_list(table.features)}): rename a column, or name the right one with --column."
        )


def _form_error(what: str, model: LoadedModel) -> BadInput:
    form = FORM_OF_AXES[len(model.instance_shape)]
    about = form
    if form == IMAGES:
        about = f"images of {' x '.join(map(str, model.instance_shape))} pixels"
    if form == NUMBERS:
        columns = f" ({_list(model.columns)})" if model.columns else ""
        about = f"tables of {model.instance_shape[0]} numbers{columns}"
    return BadInput(f"{what}, but the model takes {about}: {REMEDIES[form]}.")


def _list(columns: Collection[str]) -> str:
    names = [repr(column) for column in columns]
    more = f", ... {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
