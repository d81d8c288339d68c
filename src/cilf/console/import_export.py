"""Import and export of labels in the formats whose pictures may be addresses."""

from __future__ import annotations

from collections.abc import Iterable

from cilf.core.names import normalize_name
from cilf.errors import BadInput
from cilf.workflow.formats import FORMATS, Export, LabelRow
from cilf.workflow.labels import LEFT_OUT

OFFERED = {name: format for name, format in FORMATS.items() if format.by_address}


def write_labels(
    rows: Iterable[LabelRow], format: str, model_version: str, raw: bool = False
) -> bytes:
    """A file in a format. ``raw`` cells of a table have no apostrophe before a formula."""
    used = OFFERED[format]
    return used.write(Export(list(rows), model_version, raw=raw))[used.file]


def read_labels(content: bytes, format: str) -> dict[str, str]:
    """Identity -> label of the instances that have one."""
    labels: dict[str, str] = {}
    for entry in OFFERED[format].parse(content):
        label, identity = normalize_name(entry.label), entry.identity
        if label and labels.setdefault(identity, label) != label:
            raise BadInput(
                f"{entry.where}: {identity!r} is {label!r} here and {labels[identity]!r} "
                "elsewhere: clear one of them."
            )
    return {identity: label for identity, label in labels.items() if label != LEFT_OUT}
