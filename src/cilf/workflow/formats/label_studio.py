"""Tasks of Label Studio, with the model's prediction and the person's annotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from cilf.errors import BadInput
from cilf.workflow.formats import json_values
from cilf.workflow.formats.contents import (
    CLUSTERS,
    CONTENT,
    IMAGES,
    LABELS,
    NOVELTY,
    PREDICTIONS,
    Entry,
    Export,
    Format,
    place_in,
)

FIELD, ITEM = "label", "item"  # the names of the control and of the object in Label Studio
CONFIG = "config.xml"
LOCAL = "/data/local-files/?d="  # the address of a file below LOCAL_FILES_DOCUMENT_ROOT


def _write(export: Export) -> dict[str, bytes]:
    tasks = []
    for row in export.rows:
        own = {"text": row.text} if row.text else {"image": _address(row.image, export)}
        data = {"identity": row.identity, "cluster": row.cluster, "novelty": row.novelty, **own}
        task: dict[str, Any] = {"data": data}
        if row.predicted:
            results = [_choice(row.predicted)]
            task["predictions"] = [{"model_version": export.model_version, "result": results}]
        if row.label:
            task["annotations"] = [{"result": [_choice(row.label)]}]
        tasks.append(task)
    return {LABEL_STUDIO.file: json_values.encode(tasks), CONFIG: _format_config(export)}


def _address(image: str, export: Export) -> str:
    return LOCAL + quote(f"{export.name}/{image}") if image in export.pictures else image


def _choice(label: str) -> dict[str, Any]:
    value = {"choices": [label]}
    return {"from_name": FIELD, "to_name": ITEM, "type": "choices", "value": value}


def _format_config(export: Export) -> bytes:
    """The labelling interface, to be pasted into the settings of the project."""
    shown = "Image" if export.form == IMAGES else "Text"
    lines = [
        "<View>",
        f'  <{shown} name="{ITEM}" value="${shown.lower()}"/>',
        f'  <Choices name="{FIELD}" toName="{ITEM}" choice="single">',
        *(f'    <Choice value="{escape(name)}"/>' for name in export.classes),
        "  </Choices>",
        "</View>",
    ]
    return "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")


def _parse(content: bytes) -> Iterator[Entry]:
    tasks = json_values.parse(json_values.decode(content), "the file", list)
    for number, task in enumerate(tasks, start=1):
        where = f"task {number}"
        data = task.get("data") if isinstance(task, Mapping) else None
        if not isinstance(data, Mapping):
            raise BadInput(f"{where} has no 'data': export tasks as JSON, with their annotations.")
        label = _find_choice(task)
        if label:
            yield Entry(where, label, json_values.text_of(data, "identity", where))


def _find_choice(task: Mapping[str, Any]) -> str:
    """The choice of the last annotation that has one and was not cancelled."""
    label = ""
    for annotation in map(json_values.mapping, json_values.sequence(task.get("annotations"))):
        if annotation.get("was_cancelled"):
            continue
        for result in map(json_values.mapping, json_values.sequence(annotation.get("result"))):
            value = json_values.mapping(result.get("value"))
            choices = json_values.sequence(value.get("choices"))
            if choices and isinstance(choices[0], str):
                label = choices[0]
    return label


LABEL_STUDIO = Format(
    "Label Studio tasks", "tasks.json", _write, _parse,
    carries=(LABELS, PREDICTIONS, CLUSTERS, NOVELTY, CONTENT), place=place_in("images"),
    by_address=True, is_own=lambda document: isinstance(document, list),
)  # fmt: skip
