"""What formats exchange: rows to write, and entries that were read; and what a format is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

IMAGES, TEXTS, NUMBERS = "images", "texts", "numbers"  # forms of instances
FORMS = (IMAGES, TEXTS, NUMBERS)
LABELS, PREDICTIONS, CLUSTERS, NOVELTY, EMBEDDINGS, CONTENT = (
    "labels", "predictions", "clusters", "novelty", "embeddings", "instances",
)  # fmt: skip
EVERYTHING = (LABELS, PREDICTIONS, CLUSTERS, NOVELTY, EMBEDDINGS, CONTENT)


@dataclass(frozen=True)
class LabelRow:
    """An instance in an export."""

    identity: str
    label: str  # the class that a person has assigned; "" if there is none
    predicted: str  # the known class that the model predicts; "" if the instance is novel
    cluster: int | None  # counted from 1
    novelty: float
    text: str = ""  # a text, or the values of a row of numbers
    image: str = ""  # the address of the picture, or its path in the export
    size: tuple[int, int] = (0, 0)  # width and height of the picture
    embedding: tuple[float, ...] = ()


@dataclass(frozen=True)
class Export:
    """Rows to be written, and where they come from.

    Attributes:
        rows: the instances.
        model_version: the version of the model, for people.
        name: the name of the export.
        form: the form of the instances, one of ``FORMS``.
        raw: write cells of a table as they are, also those that a spreadsheet would compute.
        pictures: functions that give the file of a picture, by ``image`` of its row.
    """

    rows: Sequence[LabelRow]
    model_version: str = ""
    name: str = "cilf"
    form: str = IMAGES
    raw: bool = False
    pictures: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)

    @property
    def classes(self) -> list[str]:
        """All classes that a person or the model names, sorted."""
        named = {name for row in self.rows for name in (row.label, row.predicted) if name}
        return sorted(named)


class Entry(NamedTuple):
    """A label in a file, with the instance that it is about."""

    where: str  # the place in the file, for messages
    label: str  # "" if there is none
    identity: str = ""
    file: str = ""  # the file of the instance in an export, for formats without identities


@dataclass(frozen=True)
class Format:
    """A format of labels.

    Attributes:
        title: its name for people.
        file: the file of an export that holds the labels.
        write: gives the files of an export, by path; pictures are not among them.
        parse: reads the labels from the content of the file.
        carries: what an export holds, of ``EVERYTHING``.
        forms: the forms of instances that it can hold.
        media_type: the type of the file in HTTP.
        place: gives the path in an export of the picture of a row; None if there are no pictures.
        embeds_pictures: whether the file holds the pictures.
        by_address: whether pictures may be addresses in the web, so that the console offers it.
        is_own: says whether a JSON document is of this format.
        read_folder: reads the labels from a folder, in place of ``parse``.
    """

    title: str
    file: str
    write: Callable[[Export], dict[str, bytes]]
    parse: Callable[[bytes], Iterator[Entry]]
    carries: tuple[str, ...]
    forms: tuple[str, ...] = FORMS
    media_type: str = "application/json"
    place: Callable[[LabelRow, str], str] | None = None
    embeds_pictures: bool = False
    by_address: bool = False
    is_own: Callable[[object], bool] | None = None
    read_folder: Callable[[Path], Iterator[Entry]] | None = None

    @property
    def suffix(self) -> str:
        """The suffix of the file, with its dot."""
        return Path(self.file).suffix


def place_in(folder: str) -> Callable[[LabelRow, str], str]:
    """All pictures in one folder of the export."""
    return lambda _, name: f"{folder}/{name}"
