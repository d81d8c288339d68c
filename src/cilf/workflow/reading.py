"""Data for a model: labelled ones to fit it on, and new ones in the form of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cilf.core.notices import notice
from cilf.data import DATASETS, Dataset, Instances, load_dataset, load_instances
from cilf.data.paths import PACKED
from cilf.workflow.models import Loaded

IMAGES = (2, 3)  # axes of an image


def read_labelled(data: str, loading: Mapping[str, Any]) -> Dataset:
    """Labelled data whose classes have names that are texts: people type them into tables."""
    if data in DATASETS and Path(data).exists():
        notice(f"{data} is the data set of that name; ./{data} is the folder or file")
    dataset = load_dataset(data, **loading)
    train, test = (replace(part, y=part.y.astype(str)) for part in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test)


def describe_reading(dataset: Dataset) -> dict[str, Any]:
    """What has to be known to read new data the same way, as JSON holds it."""
    return {"columns": list(dataset.columns)}


def read_new(
    data: str | Path, model: Loaded, *, column: str | None = None, skip_bad: bool = False
) -> Instances:
    """New instances as this model takes them: images of its size, columns of the same names."""
    path = Path(data).expanduser()
    shape = model.learner.instance_shape
    is_table = not path.is_dir() and path.suffix.lower() != PACKED
    columns = list(model.reading.get("columns", ())) if is_table else []
    if column is None and len(columns) == 1:
        column = columns[0]
    return load_instances(
        path,
        column=column,
        columns=columns if column is None and columns else None,
        size=shape if len(shape) in IMAGES and (is_table or path.is_dir()) else None,
        skip_bad=skip_bad,
    )
