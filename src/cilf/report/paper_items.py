"""Tables and figures that were made of the runs in a folder, as a report shows them."""

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
class Artefact:
    """A table, or a figure of one or several pictures."""

    name: str
    title: str
    about: str  # what to see in it
    table: Table | None
    note: str  # below the table
    pictures: tuple[tuple[str, str], ...]  # (name, picture as a data URL)

    @property
    def heading(self) -> str:
        """
        >>> Artefact("figure10", "Weights", "", None, "", ()).heading
        'Figure 10. Weights'
        """
        kind = self.name.rstrip("0123456789")
        return f"{kind.capitalize()} {self.name.removeprefix(kind)}. {self.title}"


def read_artefacts(folder: Path) -> list[Artefact]:
    """Those that the index in this folder names; none if there is no index."""
    path = folder / INDEX
    if not path.exists():
        return []
    try:
        items = json.loads(path.read_text(encoding="utf-8"))["items"]
        made = [_read(folder, name, item) for name, item in items.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadInput(f"{path} cannot be used ({error!r}): make its items again.") from error
    return sorted((each for each in made if each.table or each.pictures), key=_order)


def _read(folder: Path, name: str, item: dict[str, Any]) -> Artefact:
    files: list[str] = item["files"]
    texts = [folder / file for file in files if file.endswith(".md")]
    text = texts[0].read_text(encoding="utf-8") if texts else ""
    pictures = tuple(
        (file.removesuffix(".png"), _data_url(folder / file))
        for file in files
        if file.endswith(".png")
    )
    table = Table.from_markdown(text) if text else None
    note = text.rpartition("|\n")[2].strip()
    return Artefact(name, item["title"], item["about"], table, note, pictures)


def _data_url(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _order(artefact: Artefact) -> tuple[bool, int]:
    """Tables first, then figures, each by number."""
    digits = "".join(filter(str.isdigit, artefact.name))
    return not artefact.name.startswith("table"), int(digits or 0)
