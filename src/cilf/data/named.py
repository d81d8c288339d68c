"""The data sets of the paper, by name: where they are looked for, and what they have to be.

A set is looked for in the folder ``CILF_DATA/<name>``, as parquet in the hub's schema, as npz or as
idx files, and then on the hub. It is checked against the original: other classes, another image
size or more rows are refused; fewer rows are used, and said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cilf.core import Label
from cilf.core.notices import notice
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
    """What a data set is when it is whole."""

    about: str
    hub: str  # its id there
    folder: str  # below CILF_DATA
    classes: tuple[Label, ...]  # in the order of their numbers
    shape: tuple[int, ...]  # of one instance
    rows: tuple[int, int]  # of the training and the test split
    n_drawn: int | None = None

    @property
    def n_classes(self) -> int:
        """How many classes a stream of it has."""
        return self.n_drawn or len(self.classes)


_CIFAR100 = Original(
    "100 kinds of things",
    hub="uoft-cs/cifar100", folder="cifar100", classes=FINE_THINGS, shape=(32, 32, 3),
    rows=(50_000, 10_000),
)  # fmt: skip

ORIGINALS: dict[str, Original] = {
    "mnist": Original(
        "handwritten digits",
        hub="ylecun/mnist", folder="mnist", classes=DIGITS, shape=(28, 28), rows=(60_000, 10_000),
    ),
    "cifar10": Original(
        "10 kinds of things",
        hub="uoft-cs/cifar10", folder="cifar10", classes=THINGS, shape=(32, 32, 3),
        rows=(50_000, 10_000),
    ),
    "cifar50": replace(
        _CIFAR100, about="50 of cifar100, by seed", n_drawn=50
    ),
    "cifar100": _CIFAR100,
}  # fmt: skip


def load_named(name: str) -> Dataset:
    """One of ``ORIGINALS``, checked against what it has to be."""
    original = ORIGINALS[name]
    return _checked(name, _read(name, original), original)


# ---------------------------------------------------------------------------- where it is


def _read(name: str, original: Original) -> Dataset:
    folder = local.local_folder(original.folder)
    read = folder and local.find_dataset(folder, name, Options())
    if read:
        return read()
    try:
        return hub.from_hub(name, original.hub, None, Options())
    except (hub.NotThere, BadConfig) as problem:
        raise BadInput(_not_found(name, original, problem)) from problem


def _not_found(name: str, original: Original, problem: Exception) -> str:
    folder = local.local_folder(original.folder)
    looked = (
        f"{folder} has no {local.describe_forms()}" if folder else f"{local.VARIABLE} is not set"
    )
    place = str(folder or f"DIR/{original.folder}")
    command = hub.fetch_command(original.hub, place)
    then = "" if folder else f", then set {local.VARIABLE}=DIR"
    return f"data set {name!r} is not here: {looked}, and {problem}. To fetch it: {command}{then}"


# ---------------------------------------------------------------------------- what it has to be


def _checked(name: str, data: Dataset, original: Original) -> Dataset:
    if data.shape != original.shape:
        raise _damaged(name, f"its instances are {data.shape}, not {original.shape}")
    train, test = (_with_names(part, original.classes) for part in (data.train, data.test))
    for part, split in (("training", train), ("test", test)):
        if set(split.y.tolist()) != set(original.classes):
            raise _damaged(name, f"the classes of its {part} split {_difference(split, original)}")
    rows = len(train), len(test)
    if any(found > whole for found, whole in zip(rows, original.rows, strict=True)):
        raise _damaged(name, f"it has {_counts(rows)} rows, the original {_counts(original.rows)}")
    if rows != original.rows:
        notice(
            f"{name} is a part of the original: {_counts(rows)} training and test rows of "
            f"{_counts(original.rows)}."
        )
    partial = original.rows if rows != original.rows else None
    return Dataset(name, train, test, n_drawn=original.n_drawn, original_rows=partial)


def _with_names(split: Split, classes: tuple[Label, ...]) -> Split:
    """Labels by name, also where a file has only their numbers."""
    if (
        split.y.dtype.kind == "i"
        and isinstance(classes[0], str)
        and _are_positions(split.y, classes)
    ):
        return replace(split, y=np.array(classes)[split.y])
    return split


def _are_positions(y: Array, classes: tuple[Label, ...]) -> bool:
    return bool(y.min() >= 0 and y.max() < len(classes))


def _difference(split: Split, original: Original) -> str:
    found, wanted = set(split.y.tolist()), set(original.classes)
    strange, lacking = sorted(found - wanted, key=str), sorted(wanted - found, key=str)
    return f"are not the original's (lacking: {lacking[:3]}, unknown: {strange[:3]})"


def _counts(rows: tuple[int, int]) -> str:
    return " and ".join(f"{n:,}" for n in rows)


def _damaged(name: str, why: str) -> BadInput:
    return BadInput(
        f"data set {name!r} is damaged, or another one: {why}. Fetch it again, or load it by its "
        "path as your own data."
    )
