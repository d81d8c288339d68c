"""JSON that other programs wrote: what is expected is checked, and named if it is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cilf.data.spreadsheets import escape_surrogates
from cilf.errors import BadInput


def decode(content: bytes) -> str:
    """The text of a file."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("the file is not UTF-8: save it as such.") from error


def parse(text: str, where: str, kind: type = dict) -> Any:
    """The object or list in a text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: correct it.") from error
    if not isinstance(value, kind):
        raise BadInput(f"{where} holds no {'list' if kind is list else 'object'}: correct it.")
    return value


def encode(value: Any, indent: int | None = 1) -> bytes:
    """A JSON document, with characters as they are."""
    return escape_surrogates(json.dumps(value, ensure_ascii=False, indent=indent)).encode()


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(row: Mapping[str, Any], name: str, where: str, default: str | None = None) -> str:
    """The text under a name; without a default it has to be there."""
    value = row.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where}: {name!r} is {value!r}: give a string.")
    return str(value)
