"""The tables and figures that ``cilf paper`` wrote into a folder, as a report shows them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from cilf.core.documents import Damage, Document, Text, read_content, read_document
from cilf.errors import BadInput
from cilf.report.tables import Table

INDEX = "paper.json"  # names the tables and figures beside it


class ItemDocument(Document):
    """The schema of an item; its files lie beside the index."""

    title: Text
    about: Text
    files: list[Annotated[str, Field(pattern=r"^\w[\w.+-]*$")]]


class IndexDocument(Document):
    """The schema of the index."""

    items: dict[Annotated[str, Field(pattern="^[a-z]+[0-9]{0,3}$")], ItemDocument]


@dataclass(frozen=True)
class PaperItem:
    """A table, or a figure of one or several images."""

    name: str
    title: str
    about: str  # what to see in it
    table: Table | None
    images: tuple[tuple[str, str], ...]  # (name, data URI)

    @property
    def heading(self) -> str:
        """
        >>> PaperItem("figure10", "Weights", "", None, ()).heading
        'Figure 10. Weights'
        >>> PaperItem("ranks", "Ranks of all systems", "", None, ()).heading
        'Ranks of all systems'
        """
        kind = self.name.rstrip("0123456789")
        number = self.name.removeprefix(kind)
        return f"{kind.capitalize()} {number}. {self.title}" if number else self.title


def read_paper_items(folder: Path) -> list[PaperItem]:
    """Read the items that the index in this folder names; none if there is no index."""
    items = [_read_item(folder, name, entry) for name, entry in read_index(folder).items()]
    return sorted((item for item in items if item.table or item.images), key=_order)


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """The items that the index in a folder names; none if there is no index."""
    path = folder / INDEX
    if not path.exists():
        return {}
    try:
        items: dict[str, dict[str, Any]] = read_document(path, IndexDocument)["items"]
    except Damage as error:
        raise _damage_error(folder, error) from error
    return items


def _damage_error(folder: Path, why: Damage) -> BadInput:
    return BadInput(
        f"{folder / INDEX} cannot be used ({why}): remove it, and run 'cilf paper' again."
    )


def _read_item(folder: Path, name: str, entry: dict[str, Any]) -> PaperItem:
    paths = [folder / file for file in entry["files"]]
    try:
        tables = [Table.parse(read_content(p), p.name) for p in paths if p.suffix == ".json"]
        images = tuple((p.stem, _encode_image(p)) for p in paths if p.suffix == ".png")
    except Damage as error:
        raise _damage_error(folder, error) from error
    return PaperItem(name, entry["title"], entry["about"], next(iter(tables), None), images)


def _encode_image(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(read_content(path)).decode()}"


def _order(item: PaperItem) -> tuple[bool, int]:
    """Tables first, then figures, each by number."""
    digits = "".join(filter(str.isdigit, item.name))
    return not item.name.startswith("table"), int(digits or 0)
