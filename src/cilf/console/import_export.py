"""Import and export of labels as CSV, JSON lines and Label Studio tasks."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cilf.core.names import normalize_name
from cilf.data.spreadsheets import format_csv, parse_sheet
from cilf.errors import BadInput
from cilf.workflow.labels import LEFT_OUT

FIELD, ITEM = "label", "item"  # the names of the control and of the object in Label Studio


@dataclass(frozen=True)
class LabelRow:
    """An instance in an export."""

    identity: str
    label: str  # the class that a person has assigned; "" if there is none
    predicted: str  # the known class that the model predicts; "" if the instance is novel
    cluster: int | None  # counted from 1
    novelty: float
    text: str = ""  # the beginning of a text
    image: str = ""  # the address of the picture


Entry = tuple[str, str, str]  # place in the file, identity, label or ""

COLUMNS = ("identity", "label", "predicted", "cluster", "novelty")


def write_labels(
    rows: Iterable[LabelRow], format: str, model_version: str, raw: bool = False
) -> bytes:
    """A file in one of the formats of ``READERS``."""
    if format == "label-studio":
        return to_label_studio(rows, model_version)
    return to_csv(rows, raw) if format == "csv" else to_jsonl(rows)


def to_csv(rows: Iterable[LabelRow], raw: bool = False) -> bytes:
    """A table that ``cilf update`` takes. ``raw`` cells have no apostrophe before a formula."""
    plain = (asdict(row) for row in rows)
    return format_csv(
        COLUMNS,
        [["" if row[name] is None else row[name] for name in COLUMNS] for row in plain],
        raw=raw,
    )


def to_jsonl(rows: Iterable[LabelRow]) -> bytes:
    """A JSON object on each line."""
    plain = (asdict(row) for row in rows)
    lines = [json.dumps({name: row[name] for name in COLUMNS}, ensure_ascii=False) for row in plain]
    return "".join(f"{line}\n" for line in lines).encode()


def to_label_studio(rows: Iterable[LabelRow], model_version: str) -> bytes:
    """Tasks with the model's prediction, and the person's label as an annotation."""
    tasks = []
    for row in rows:
        own = {"text": row.text} if row.text else {"image": row.image}
        task: dict[str, Any] = {"data": {"identity": row.identity, **own}}
        if row.predicted:
            task["predictions"] = [
                {"model_version": model_version, "result": [_choice(row.predicted)]}
            ]
        if row.label:
            task["annotations"] = [{"result": [_choice(row.label)]}]
        tasks.append(task)
    return json.dumps(tasks, ensure_ascii=False, indent=1).encode()


def _choice(label: str) -> dict[str, Any]:
    value = {"choices": [label]}
    return {"from_name": FIELD, "to_name": ITEM, "type": "choices", "value": value}


# ----------------------------------------------------------------- reading


def read_labels(content: bytes, format: str) -> dict[str, str]:
    """Identity -> label of the instances that have one."""
    labels: dict[str, str] = {}
    for where, identity, text in READERS[format](content):
        label = normalize_name(text)
        if label and labels.setdefault(identity, label) != label:
            raise BadInput(
                f"{where}: {identity!r} is {label!r} here and {labels[identity]!r} elsewhere: "
                "clear one of them."
            )
    return {identity: label for identity, label in labels.items() if label != LEFT_OUT}


def _from_csv(content: bytes) -> Iterator[Entry]:
    sheet = parse_sheet(content, Path("the table"))
    if "identity" not in sheet.columns or not {"label", "name"} & set(sheet.columns):
        raise BadInput("the table needs the columns 'identity' and 'label' (or 'name').")
    for row in sheet.rows:
        for label in _answers(row.cells):
            yield f"line {row.line}", row.cells["identity"], label


def _answers(cells: Mapping[str, str]) -> list[str]:
    """The labels of a row. In findings.csv the label of a known instance is the model's."""
    if "name" not in cells:
        return [cells["label"]]
    return [cells["name"], cells.get("label", "") if cells.get("cluster") else ""]


def _from_jsonl(content: bytes) -> Iterator[Entry]:
    for number, line in enumerate(io.StringIO(_decode(content)), start=1):
        if line.strip():
            where = f"line {number}"
            row = _parse(line, where)
            yield where, _text(row, "identity", where), _text(row, "label", where)


def _from_label_studio(content: bytes) -> Iterator[Entry]:
    tasks = _parse(_decode(content), "the file", list)
    for number, task in enumerate(tasks, start=1):
        where = f"task {number}"
        data = task.get("data") if isinstance(task, Mapping) else None
        if not isinstance(data, Mapping):
            raise BadInput(f"{where} has no 'data': export tasks as JSON, with their annotations.")
        label = _find_choice(task)
        if label:
            yield where, _text(data, "identity", where), label


def _find_choice(task: Mapping[str, Any]) -> str:
    """The choice of the last annotation that has one."""
    label = ""
    for annotation in _list(task.get("annotations")):
        for result in _list(annotation.get("result") if isinstance(annotation, Mapping) else None):
            value = result.get("value") if isinstance(result, Mapping) else None
            choices = _list(value.get("choices") if isinstance(value, Mapping) else None)
            if choices and isinstance(choices[0], str):
                label = choices[0]
    return label


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("the file is not UTF-8: save it as such.") from error


def _parse(text: str, where: str, kind: type = dict) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: correct it.") from error
    if not isinstance(value, kind):
        raise BadInput(f"{where} holds no {'list' if kind is list else 'object'}: correct it.")
    return value


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name, "" if name == "label" else None)
    value = "" if value is None and name == "label" else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where}: {name!r} is {value!r}: give a string.")
    return str(value)


READERS: dict[str, Callable[[bytes], Iterator[Entry]]] = {
    "csv": _from_csv,
    "jsonl": _from_jsonl,
    "label-studio": _from_label_studio,
}
