"""Data sets by name, from the hub or from a path: ``load_dataset`` gives a :class:`Dataset`.

``DATASETS`` is the table of data sets with a name. ``cilf.data.readers.READERS`` is the table of
formats of data of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cilf.core import validation
from cilf.core.files import describe_missing
from cilf.data import hub, named, paths
from cilf.data.dataset import Dataset, Instances, Split
from cilf.data.digits import load_digits
from cilf.data.options import Options
from cilf.errors import BadConfig, BadInput

__all__ = [
    "DATASETS",
    "Dataset",
    "Instances",
    "Split",
    "load_dataset",
    "load_instances",
    "require_dataset",
]

DATASETS: dict[str, Callable[[], Dataset]] = {"digits": load_digits} | {
    name: partial(named.load_named, name) for name in named.ORIGINALS
}


def load_dataset(
    name: str | Path,
    *,
    label: str | None = None,
    column: str | None = None,
    size: int | tuple[int, ...] | None = None,
    skip_bad: bool = False,
    test_share: float = 0.2,
) -> Dataset:
    """Load labelled data by name, from the hub, or from a path.

    Args:
        name: a name in ``DATASETS``, or ``hf:ID`` or ``hf:ID:CONFIGURATION`` for a data set of the
            hub, or a path in a format of ``READERS``.
        label: the column of a table that holds the class; found by its name if None.
        column: the column that holds the text or the image; found by its content if None.
        size: the side of resized images in pixels, or their shape, (h, w) in grey or (h, w, 3) in
            colour; ``images.common_size`` if None.
        skip_bad: leave out instances that cannot be read instead of refusing the data.
        test_share: the share of each class that makes the test split if the data state none.

    >>> load_dataset("digits").train.X.shape
    (1437, 8, 8)
    """
    options = Options(
        label=label, column=column, size=size, skip_bad=skip_bad, test_share=test_share
    )
    text = str(name)
    _require_place(text)
    if text.startswith(hub.PREFIX):
        return hub.read_hub(text, options)
    if text not in DATASETS:
        return paths.read_dataset(Path(text).expanduser(), options)
    return _load_named(text, options)


def require_dataset(name: str, **loading: Any) -> None:
    """Refuse data that ``load_dataset`` would refuse, as far as that shows without reading them.

    The name or path, the options, the columns of a table and the class folders of images are
    checked. No image is decoded.
    """
    options = Options(**loading)
    _require_place(name)
    if name in DATASETS:
        _refuse_options(name, options)
    elif not name.startswith(hub.PREFIX):
        paths.check_dataset(Path(name).expanduser(), options)


def _require_place(name: str) -> None:
    """Refuse what is no name of a data set and no path of data."""
    if name in DATASETS or name.startswith(hub.PREFIX):
        return
    if paths.looks_like_path(name):
        paths.require_data(Path(name).expanduser())
        return
    missing, known = describe_missing(name), ", ".join(DATASETS)
    if near := validation.find_nearest(name, DATASETS):
        raise BadConfig(
            f"unknown data set {name!r}: did you mean {near!r}? Known: {known}. And {missing}."
        )
    raise BadInput(
        f"{missing}, and no data set has that name: give the path of your data, a data set "
        f"({known}), or hf:ID for one of the hub."
    )


def _load_named(name: str, options: Options) -> Dataset:
    _refuse_options(name, options)
    return DATASETS[name]()


def _refuse_options(name: str, options: Options) -> None:
    if options != Options():
        raise BadConfig(
            f"{name} takes no options: label, column, size, skip_bad and test_share are for data "
            "of your own."
        )


def load_instances(
    path: str | Path,
    *,
    column: str | None = None,
    columns: Sequence[str] | None = None,
    size: int | tuple[int, ...] | None = None,
    skip_bad: bool = False,
) -> Instances:
    """Load unlabelled data from a path; labels are ignored.

    Args:
        path: a folder of images, or a file in a format of ``READERS``.
        column: the column that holds the text or the image; found by its content if None.
        columns: the columns of numbers that make an instance, in this order; all columns if None.
            ``data.columns`` selects those of the data that a learner was fitted on.
        size: the side of resized images in pixels, or their shape. ``data.shape`` gives images the
            form of the data that a learner was fitted on.
        skip_bad: leave out instances that cannot be read instead of refusing the data.
    """
    wanted = None if columns is None else tuple(columns)
    options = Options(column=column, columns=wanted, size=size, skip_bad=skip_bad)
    return paths.read_instances(Path(path).expanduser(), options)
