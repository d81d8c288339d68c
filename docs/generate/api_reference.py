"""The pages of the Python interface, made from signatures and docstrings of public names."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from markdown_table import write_table

MODULES = {
    "cilf": "the names used most",
    "cilf.learners": "the learners, and what every learner does",
    "cilf.data": "data sets, and instances of your own",
    "cilf.stream": "simulated streams",
    "cilf.evaluate": "the loop over a stream, records and summaries",
    "cilf.evaluate.metrics": "metrics as pure functions",
    "cilf.query": "which labels to query, and what to do with answers",
    "cilf.workflow": "the practitioner's loop on files, as functions",
    "cilf.checks": "what every learner has to pass",
    "cilf.benchmark": "grids of runs",
    "cilf.core": "types that the rest shares",
    "cilf.errors": "the exceptions that users catch",
}
FOLDER = "reference/api"
WIDTH = 88  # of a signature in one line
NUMPY_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", flags=re.MULTILINE)
GOOGLE_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):\n", flags=re.MULTILINE)
ENTRY = re.compile(r"^(?P<name>\*{0,2}\w[\w, *]*?)(?: : (?P<type>.*))?$")
ANNOTATION = re.compile(r"(: |-> )'([^']*)'")
ROLE = re.compile(r":\w+:`([^`]+)`")
PAGE = re.compile(r"``docs/([\w./-]+\.md)``")


def write_index() -> str:
    lines = [f"- [`{name}`]({name}.md): {about}" for name, about in MODULES.items()]
    return "# Python interface\n\n" + "\n".join(lines) + "\n"


def write_module(name: str) -> str:
    module = importlib.import_module(name)
    parts = [f"# {name}", _convert(inspect.getdoc(module) or "")]
    parts += [_write(f"{name}.{public}", getattr(module, public)) for public in _names(module)]
    return "\n\n".join(parts) + "\n"


PAGES: dict[str, Callable[[], str]] = {f"{FOLDER}/index.md": write_index} | {
    f"{FOLDER}/{name}.md": partial(write_module, name) for name in MODULES
}


def _names(module: Any) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _write(path: str, value: Any) -> str:
    name = path.rpartition(".")[2]
    if inspect.isclass(value):
        return "\n\n".join([*_described(f"## {name}", value), *_write_methods(value)])
    if callable(value):
        return "\n\n".join(_described(f"## {name}", value))
    if isinstance(value, Mapping):
        keys = ", ".join(f"`{key}`" for key in value)
        return f"## {name}\n\nA table. Its keys: {keys}."
    return f"## {name}\n\n`{value!r}`"


def _described(heading: str, value: Any) -> list[str]:
    name = heading.lstrip("# ")
    return [heading, _write_signature(name, value), _convert(_own_docstring(value))]


def _own_docstring(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    made_by_dataclass = inspect.isclass(value) and text.startswith(f"{value.__name__}(")
    return "" if made_by_dataclass else text


def _write_methods(cls: type) -> Iterator[str]:
    """The public methods and properties that a class has of its own."""
    for name, member in vars(cls).items():
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        value = inspect.unwrap(getattr(member, "__func__", member))
        if inspect.isfunction(value):
            yield "\n\n".join(_described(f"### {cls.__name__}.{name}", value))
        elif isinstance(member, property):
            yield f"### {cls.__name__}.{name}\n\n{_convert(inspect.getdoc(member) or '')}"


def _write_signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception takes what its root takes
        return f"```python\n{name}(message)\n```"
    kept = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    signature = signature.replace(parameters=kept)
    if inspect.isclass(value):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    line = _unquote(f"{name}{signature}")
    if len(line) > WIDTH:
        arguments = "".join(f"    {one},\n" for one in _arguments(signature))
        after = signature.replace(parameters=[])
        line = _unquote(f"{name}(\n{arguments}{str(after)[1:]}")
    return f"```python\n{line}\n```"


def _unquote(signature: str) -> str:
    """The signature with types as they are written, without quotes."""
    return ANNOTATION.sub(r"\1\2", signature)


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or one.kind is one.VAR_POSITIONAL
        yield str(one)


def _convert(docstring: str) -> str:
    """A docstring as Markdown: sections become tables, examples blocks of code."""
    text = ROLE.sub(r"``\1``", docstring)
    text = PAGE.sub(r"[docs/\1](../../\1)", text)
    pieces = NUMPY_SECTION.split(text)
    parts = [_convert_google(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if title == "Examples":
            parts.append(_fence(body))
            continue
        entries, rest = _split_entries(body)
        parts += [
            f"**{title}**",
            write_table(("name", "type", "description"), entries),
            _fence(rest),
        ]
    return "\n\n".join(part for part in parts if part.strip())


def _convert_google(text: str) -> str:
    pieces = GOOGLE_SECTION.split(text)
    parts = [_fence(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        inside = re.match(r"(?: +.*\n?|\n)*", body)
        assert inside is not None
        lines = inspect.cleandoc(" \n" + inside.group()).splitlines()
        if title in ("Returns", "Yields"):
            parts.append(f"**{title}**: " + " ".join(lines))
        else:
            named = {"Args": "Parameters"}.get(title, title)
            parts += [f"**{named}**", write_table(("name", "description"), _colon_entries(lines))]
        parts.append(_fence(body[inside.end() :]))
    return "\n\n".join(part for part in parts if part.strip())


def _colon_entries(lines: list[str]) -> list[tuple[str, ...]]:
    entries: list[list[str]] = []
    for line in lines:
        if not line.startswith(" ") and (start := re.match(r"(\*{0,2}\w[\w, *]*): (.*)", line)):
            entries.append([f"`{start.group(1)}`", start.group(2)])
        elif entries:
            entries[-1][1] += " " + line.strip()
    return [tuple(entry) for entry in entries]


def _split_entries(body: str) -> tuple[list[tuple[str, ...]], str]:
    """The entries of a section in numpy's form, and what follows the section."""
    lines = body.splitlines()
    entries: list[list[str]] = []
    for position, line in enumerate(lines):
        if line.startswith(" ") and entries:
            entries[-1][2] += " " + line.strip()
        elif line and (start := ENTRY.match(line)):
            entries.append([f"`{start['name']}`", start["type"] or "", ""])
        elif line:
            return [tuple(entry) for entry in entries], "\n".join(lines[position:])
    return [tuple(entry) for entry in entries], ""


def _fence(text: str) -> str:
    """The text with each doctest in a block of code."""
    paragraphs = re.split(r"\n\s*\n", text.strip("\n"))
    shown = [
        f"```pycon\n{inspect.cleandoc(one)}\n```" if one.lstrip().startswith(">>>") else one
        for one in paragraphs
    ]
    return "\n\n".join(shown)
