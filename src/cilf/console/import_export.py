"""Labels that come from elsewhere and go elsewhere: CSV, JSON lines, tasks of Label Studio."""

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

FIELD, ITEM = "label", "item"  # the names of the control and of the object in Label Studio
LEFT_OUT = "-"  # a label that says: no label


@dataclass(frozen=True)
class Labelled:
    """An instance and what is known about it."""

    identity: str
    label: str  # what a person says; "" if nobody has said anything
    predicted: str  # the known class that the model takes it for; "" if it is believed new
    group: int | None  # from 1
    novelty: float
    text: str = ""  # of an instance that is a text
    image: str = ""  # where the page has its picture


Written = tuple[str, str, str]  # where it stands, identity, label; "" if there is none

COLUMNS = ("identity", "label", "predicted", "group", "novelty")


def to_csv(rows: Iterable[Labelled]) -> bytes:
    """A table; ``cilf update`` takes it."""
    plain = (asdict(row) for row in rows)
    return format_csv(
        COLUMNS, [["" if row[name] is None else row[name] for name in COLUMNS] for row in plain]
    )


def to_jsonl(rows: Iterable[Labelled]) -> bytes:
    """One JSON object on each line."""
    plain = (asdict(row) for row in rows)
    lines = [json.dumps({name: row[name] for name in COLUMNS}, ensure_ascii=False) for row in plain]
    return "".join(f"{line}\n" for line in lines).encode()


def to_label_studio(rows: Iterable[Labelled], model_version: str) -> bytes:
    """Tasks with what the model believes as a prediction, and what people say as an annotation."""
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


def read_labels(content: bytes, kind: str) -> dict[str, str]:
    """Identity -> label, of a file that somebody gives; instances without a label are left out."""
    labels: dict[str, str] = {}
    for where, identity, written in READERS[kind](content):
        label = normalize_name(written)
        if label and labels.setdefault(identity, label) != label:
            raise BadInput(
                f"{where}: {identity!r} is {label!r} here and {labels[identity]!r} elsewhere: "
                "clear one of them."
            )
    return {identity: label for identity, label in labels.items() if label != LEFT_OUT}


def _from_csv(content: bytes) -> Iterator[Written]:
    sheet = parse_sheet(content, Path("the table"))
    if "identity" not in sheet.columns or not {"label", "name"} & set(sheet.columns):
        raise BadInput("the table needs the columns 'identity' and 'label' (or 'name').")
    for row in sheet.rows:
        for label in _answers(row.cells):
            yield f"line {row.line}", row.cells["identity"], label


def _answers(cells: Mapping[str, str]) -> list[str]:
    """What somebody wrote: in findings.csv, the label of a known instance is the model's."""
    if "name" not in cells:
        return [cells["label"]]
    return [cells["name"], cells.get("label", "") if cells.get("cluster") else ""]


def _from_jsonl(content: bytes) -> Iterator[Written]:
    for number, line in enumerate(io.StringIO(_decoded(content)), start=1):
        if line.strip():
            where = f"line {number}"
            row = _parsed(line, where)
            yield where, _text(row, "identity", where), _text(row, "label", where)


def _from_label_studio(content: bytes) -> Iterator[Written]:
    tasks = _parsed(_decoded(content), "the file", list)
    for number, task in enumerate(tasks, start=1):
        where = f"task {number}"
        data = task.get("data") if isinstance(task, Mapping) else None
        if not isinstance(data, Mapping):
            raise BadInput(f"{where} has no 'data': export tasks as JSON, with their annotations.")
        label = _chosen(task)
        if label:
            yield where, _text(data, "identity", where), label


def _chosen(task: Mapping[str, Any]) -> str:
    """The choice of the last annotation that makes one."""
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


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("the file is not UTF-8: save it as such.") from error


def _parsed(text: str, where: str, kind: type = dict) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is no JSON: correct it.") from error
    if not isinstance(value, kind):
        raise BadInput(f"{where} holds no {'list' if kind is list else 'object'}: correct it.")
    return value


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name, "" if name == "label" else None)
    value = "" if value is None and name == "label" else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where}: {name!r} is {value!r}: give a text.")
    return str(value)


READERS: dict[str, Callable[[bytes], Iterator[Written]]] = {
    "csv": _from_csv,
    "jsonl": _from_jsonl,
    "label-studio": _from_label_studio,
}
