"""The tables and figures that ``cilf paper`` wrote into a folder, as a report shows them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cilf.errors import BadInput
from cilf.report.tables import Table

INDEX = "paper.json"  # names the tables and figures beside it


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
        """
        kind = self.name.rstrip("0123456789")
        return f"{kind.capitalize()} {self.name.removeprefix(kind)}. {self.title}"


def read_paper_items(folder: Path) -> list[PaperItem]:
    """Read the items that the index in this folder names; none if there is no index."""
    path = folder / INDEX
    if not path.exists():
        return []
    try:
        index = json.loads(path.read_text(encoding="utf-8"))["items"]
        items = [_read_item(folder, name, entry) for name, entry in index.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} cannot be used ({error!r}): run 'cilf paper' again.") from error
    return sorted((item for item in items if item.table or item.images), key=_order)


def _read_item(folder: Path, name: str, entry: dict[str, Any]) -> PaperItem:
    paths = [folder / file for file in entry["files"]]
    tables = [Table.from_json(p.read_text(encoding="utf-8")) for p in paths if p.suffix == ".json"]
    images = tuple((p.stem, _encode_image(p)) for p in paths if p.suffix == ".png")
    return PaperItem(name, entry["title"], entry["about"], next(iter(tables), None), images)


def _encode_image(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _order(item: PaperItem) -> tuple[bool, int]:
    """Tables first, then figures, each by number."""
    digits = "".join(filter(str.isdigit, item.name))
    return not item.name.startswith("table"), int(digits or 0)
