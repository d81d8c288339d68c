"""The data sets of the paper, by name.

A data set is read from the folder ``CILF_DATA/<name>``, as parquet in the hub's schema, as npz or
as idx files, else from the hub. It is compared with the original: other classes, another image size
or more rows are refused. Fewer rows are accepted and reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cilf.core import Label
from cilf.core.notices import warn_once
from cilf.core.types import Array
from cilf.data import hub, local
from cilf.data.dataset import Dataset, Split
from cilf.data.options import Options
from cilf.errors import BadConfig, BadInput


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DIGITS = tuple(range(10))
THINGS = _words("airplane automobile bird cat deer dog frog horse ship truck")
FINE_THINGS = _words(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
    camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
    cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
    lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom
    oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
    possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake
    spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor
    train trout tulip turtle wardrobe whale willow_tree wolf woman worm
    """
)


@dataclass(frozen=True)
class Original:
    """The properties of a complete data set."""

    about: str
    hub: str  # id on the hub
    folder: str  # below CILF_DATA
    classes: tuple[Label, ...]  # in the order of their numbers
    shape: tuple[int, ...]  # of one instance
    rows: tuple[int, int]  # of the training and the test split
    n_drawn: int | None = None

    @property
    def n_classes(self) -> int:
        """The number of classes of a stream."""
        return self.n_drawn or len(self.classes)


_CIFAR100 = Original(
    "photographs of 100 classes",
    hub="uoft-cs/cifar100", folder="cifar100", classes=FINE_THINGS, shape=(32, 32, 3),
    rows=(50_000, 10_000),
)  # fmt: skip

ORIGINALS: dict[str, Original] = {
    "mnist": Original(
        "handwritten digits",
        hub="ylecun/mnist", folder="mnist", classes=DIGITS, shape=(28, 28), rows=(60_000, 10_000),
    ),
    "cifar10": Original(
        "photographs of 10 classes",
        hub="uoft-cs/cifar10", folder="cifar10", classes=THINGS, shape=(32, 32, 3),
        rows=(50_000, 10_000),
    ),
    "cifar50": replace(
        _CIFAR100, about="50 classes of cifar100, drawn by the seed", n_drawn=50
    ),
    "cifar100": _CIFAR100,
}  # fmt: skip


def load_named(name: str) -> Dataset:
    """Load one of ``ORIGINALS``, and check it."""
    original = ORIGINALS[name]
    return _check(name, _read(name, original), original)


# ---------------------------------------------------------------------------- sources


def _read(name: str, original: Original) -> Dataset:
    folder = local.local_folder(original.folder)
    read = folder and local.find_dataset(folder, name, Options())
    if read:
        return read()
    try:
        return hub.load_from_hub(name, original.hub, None, Options())
    except (hub.NotAvailable, BadConfig) as problem:
        raise BadInput(_explain_missing(name, original, problem)) from problem


def _explain_missing(name: str, original: Original, problem: Exception) -> str:
    folder = local.local_folder(original.folder)
    looked = (
        f"{folder} has no {local.describe_forms()}" if folder else f"{local.VARIABLE} is not set"
    )
    place = str(folder or f"DIR/{original.folder}")
    command = hub.fetch_command(original.hub, place)
    then = "" if folder else f", then set {local.VARIABLE}=DIR"
    return f"data set {name!r} is not here: {looked}, and {problem}. Download it: {command}{then}"


# ---------------------------------------------------------------------------- checks


def _check(name: str, data: Dataset, original: Original) -> Dataset:
    if data.shape != original.shape:
        raise _damage_error(name, f"its instances are {data.shape}, not {original.shape}")
    train, test = (_name_labels(part, original.classes) for part in (data.train, data.test))
    for part, split in (("training", train), ("test", test)):
        if set(split.y.tolist()) != set(original.classes):
            raise _damage_error(
                name, f"the classes of its {part} split {_compare(split, original)}"
            )
    rows = len(train), len(test)
    if any(found > whole for found, whole in zip(rows, original.rows, strict=True)):
        raise _damage_error(
            name,
            f"it has {_format(rows)} rows, the original {_format(original.rows)}",
        )
    if rows != original.rows:
        warn_once(
            f"{name} is a part of the original: {_format(rows)} training and test rows of "
            f"{_format(original.rows)}."
        )
    partial = original.rows if rows != original.rows else None
    return Dataset(name, train, test, n_drawn=original.n_drawn, original_rows=partial)


def _name_labels(split: Split, classes: tuple[Label, ...]) -> Split:
    """Replace the numbers of classes by their names."""
    if (
        split.y.dtype.kind == "i"
        and isinstance(classes[0], str)
        and _are_positions(split.y, classes)
    ):
        return replace(split, y=np.array(classes)[split.y])
    return split


def _are_positions(y: Array, classes: tuple[Label, ...]) -> bool:
    return bool(y.min() >= 0 and y.max() < len(classes))


def _compare(split: Split, original: Original) -> str:
    found, wanted = set(split.y.tolist()), set(original.classes)
    strange, lacking = sorted(found - wanted, key=str), sorted(wanted - found, key=str)
    return f"are not the original's (lacking: {lacking[:3]}, unknown: {strange[:3]})"


def _format(rows: tuple[int, int]) -> str:
    return " and ".join(f"{n:,}" for n in rows)


def _damage_error(name: str, why: str) -> BadInput:
    return BadInput(
        f"data set {name!r} is damaged, or another one: {why}. Fetch it again, or load it by its "
        "path as your own data."
    )
