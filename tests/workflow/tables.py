"""Tables as people edit them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

Change = Callable[[dict[str, str]], None]


def edit_table(table: Path, change: Change) -> None:
    """Change the rows of a CSV file in place."""
    with table.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        rows, columns = list(reader), list(reader.fieldnames or ())
    for row in rows:
        change(row)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
