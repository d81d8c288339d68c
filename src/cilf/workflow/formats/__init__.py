"""The formats in which labels leave and come back; ``FORMATS`` is the table of them.

An export has rows (:class:`LabelRow`), and what was read has entries (:class:`Entry`). The command
line, the console and the documentation read the table.
"""

from __future__ import annotations

import json
from pathlib import Path

from cilf.core import validation
from cilf.workflow.formats.class_folders import CLASS_FOLDERS
from cilf.workflow.formats.coco import COCO
from cilf.workflow.formats.contents import Entry, Export, Format, LabelRow
from cilf.workflow.formats.cvat import CVAT
from cilf.workflow.formats.fiftyone import FIFTYONE
from cilf.workflow.formats.hugging_face import HUGGING_FACE
from cilf.workflow.formats.label_studio import LABEL_STUDIO
from cilf.workflow.formats.tables import CSV, JSON_LINES

__all__ = ["FORMATS", "Entry", "Export", "Format", "LabelRow", "find_format"]

FORMATS: dict[str, Format] = {
    "csv": CSV,
    "jsonl": JSON_LINES,
    "label-studio": LABEL_STUDIO,
    "class-folders": CLASS_FOLDERS,
    "fiftyone": FIFTYONE,
    "cvat": CVAT,
    "coco": COCO,
    "hugging-face": HUGGING_FACE,
}
JSON = ".json"


def find_format(path: Path, name: str | None = None) -> str | None:
    """The name of the format of a file or of an export, by its files; None if it is none of them.

    A name that is given is checked and returned.
    """
    if name is not None:
        return validation.one_of("format", name, FORMATS)
    if path.is_dir():
        found = (key for key, format in FORMATS.items() if (path / format.file).is_file())
        return next(found, None)
    near = [key for key, format in FORMATS.items() if format.suffix == path.suffix.lower()]
    if path.suffix.lower() != JSON:
        return near[0] if near else None
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    tests = ((key, FORMATS[key].is_own) for key in near)
    return next((key for key, is_own in tests if is_own and is_own(document)), None)
