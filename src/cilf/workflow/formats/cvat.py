"""Classification in CVAT: the tags of images, in its own XML ("CVAT for images 1.1")."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from xml.etree import ElementTree  # nosec B405 - _parse refuses entities

from cilf.errors import BadInput
from cilf.workflow.formats import json_values
from cilf.workflow.formats.contents import (
    CONTENT,
    IMAGES,
    LABELS,
    PREDICTIONS,
    Entry,
    Export,
    Format,
    place_in,
)

BY_PERSON, BY_MODEL = "manual", "auto"  # the sources of a tag


def _write(export: Export) -> dict[str, bytes]:
    root = ElementTree.Element("annotations")
    _add(root, "version", "1.1")
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    _add(task, "name", export.name)
    _add(task, "size", str(len(export.rows)))
    _add(task, "mode", "annotation")
    labels = ElementTree.SubElement(task, "labels")
    for name in export.classes:
        label = ElementTree.SubElement(labels, "label")
        _add(label, "name", name)
        _add(label, "type", "tag")
        ElementTree.SubElement(label, "attributes")
    for number, row in enumerate(export.rows):
        width, height = map(str, row.size)
        name = PurePosixPath(row.image).name
        about = {"id": str(number), "name": name, "width": width, "height": height}
        image = ElementTree.SubElement(root, "image", about)
        tag = (row.label, BY_PERSON) if row.label else (row.predicted, BY_MODEL)
        if tag[0]:
            ElementTree.SubElement(image, "tag", {"label": tag[0], "source": tag[1]})
    ElementTree.indent(root)
    return {CVAT.file: ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)}


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = text


def _parse(content: bytes) -> Iterator[Entry]:
    text = json_values.decode(content)
    if "<!" in text.replace("<!--", ""):
        raise BadInput("the file has declarations, which CVAT does not write: export it again.")
    try:
        root = ElementTree.fromstring(text)  # nosec B314 - nothing declares an entity
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise BadInput(f"the file is not XML ({error}): export it from CVAT again.") from error
    for number, image in enumerate(root.iter("image"), start=1):
        file = PurePosixPath(image.get("name", "")).name
        for tag in image.iter("tag"):
            if tag.get("source") != BY_MODEL:
                yield Entry(f"image {number}", tag.get("label", ""), file=file)


CVAT = Format(
    "CVAT classification", "annotations.xml", _write, _parse, (LABELS, PREDICTIONS, CONTENT),
    forms=(IMAGES,), media_type="application/xml", place=place_in("images"),
)  # fmt: skip
