"""The data of a model: labelled data to fit it on, and new data in the same form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cilf.core.notices import warn_once
from cilf.data import DATASETS, Dataset, Instances, load_dataset, load_instances
from cilf.data.readers import find_reader
from cilf.workflow.versions import LoadedModel

IMAGE_AXES = (2, 3)


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
    path = Path(data).expanduser()
    shape = model.instance_shape
    options = find_reader(path).options
    columns = list(model.columns) if "columns" in options else []
    if column is None and len(columns) == 1:
        column = columns[0]
    return load_instances(
        path,
        column=column,
        columns=columns if column is None and columns else None,
        size=shape if len(shape) in IMAGE_AXES and "size" in options else None,
        skip_bad=skip_bad,
    )
