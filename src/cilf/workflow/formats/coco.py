"""JSON in the style of COCO. A class is an annotation whose box is the whole image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from cilf.errors import BadInput
from cilf.workflow.findings import MODEL, PERSON
from cilf.workflow.formats import json_values
from cilf.workflow.formats.contents import (
    EVERYTHING,
    IMAGES,
    Entry,
    Export,
    Format,
    LabelRow,
    place_in,
)


def _write(export: Export) -> dict[str, bytes]:
    number_of = {name: number for number, name in enumerate(export.classes, start=1)}
    document = {
        "info": {"description": export.name, "version": export.model_version},
        "licenses": [],
        "categories": [
            {"id": number, "name": name, "supercategory": ""} for name, number in number_of.items()
        ],
        "images": [_to_image(row, number) for number, row in enumerate(export.rows, start=1)],
        "annotations": list(_annotate(export, number_of)),
    }
    return {COCO.file: json_values.encode(document)}


def _to_image(row: LabelRow, number: int) -> dict[str, Any]:
    width, height = row.size
    image = {
        "id": number, "file_name": row.image, "width": width, "height": height,
        "identity": row.identity, "cluster": row.cluster, "novelty": row.novelty,
    }  # fmt: skip
    return image | ({"embedding": row.embedding} if row.embedding else {})


def _annotate(export: Export, number_of: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    made = 0
    for number, row in enumerate(export.rows, start=1):
        for source, name in ((PERSON, row.label), (MODEL, row.predicted)):
            if not name:
                continue
            made += 1
            width, height = row.size
            yield {
                "id": made, "image_id": number, "category_id": number_of[name],
                "bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0,
                "segmentation": [], "attributes": {"source": source},
            }  # fmt: skip


def _parse(content: bytes) -> Iterator[Entry]:
    document = json_values.parse(json_values.decode(content), "the file")
    images = _by_number(document, "images")
    categories = _by_number(document, "categories")
    for number, given in enumerate(json_values.sequence(document.get("annotations")), start=1):
        where, annotation = f"annotation {number}", json_values.mapping(given)
        if json_values.mapping(annotation.get("attributes")).get("source") == MODEL:
            continue
        image = _look_up(images, annotation.get("image_id"), "images", where)
        category = _look_up(categories, annotation.get("category_id"), "categories", where)
        yield Entry(
            where,
            json_values.text_of(category, "name", where),
            json_values.text_of(image, "identity", where, default=""),
            PurePosixPath(json_values.text_of(image, "file_name", where, default="")).name,
        )


def _by_number(document: Mapping[str, Any], name: str) -> dict[str, Mapping[str, Any]]:
    entries = map(json_values.mapping, json_values.sequence(document.get(name)))
    return {str(entry.get("id")): entry for entry in entries}


def _look_up(
    table: Mapping[str, Mapping[str, Any]], number: Any, name: str, where: str
) -> Mapping[str, Any]:
    if str(number) not in table:
        raise BadInput(f"{where} names {number!r}, which {name} do not hold: correct it.")
    return table[str(number)]


COCO = Format(
    "COCO-style JSON", "annotations.json", _write, _parse, EVERYTHING, forms=(IMAGES,),
    place=place_in("images"),
    is_own=lambda document: {"images", "annotations"} <= set(json_values.mapping(document)),
)  # fmt: skip
