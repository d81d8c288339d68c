"""The pages of the two REST interfaces, made from the OpenAPI documents that the servers give."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_table import write_table

from cilf import workflow
from cilf.console import app as console_app
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.serving import app as serving_app
from cilf.serving.live_model import LiveModel

CONSOLE = """# REST of the console

The interface of `cilf console`. A running console gives the same as an OpenAPI document at
`/openapi.json`. [The console](../console.md#rest) has examples, and
[Access](../console.md#access) says who may use it.
"""
SERVING = """# REST of serving

The interface of `cilf serve`, which also gives it at `/openapi.json`.
[Serve](../serving.md#serve) describes the bodies, the answers, and the routes for operation
(`/healthz`, `/readyz`, `/metrics`).
"""
Schema = Mapping[str, Any]


def write_console_page() -> str:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        console = Console(store, Path(folder) / "model")
        document = console_app.make_app(console, Access()).openapi()
        store.close()
    return _write(CONSOLE, document)


def write_serving_page() -> str:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        workflow.fit("digits", model, learner="iforest")
        document = serving_app.make_app(LiveModel(model), Access()).openapi()
    return _write(SERVING, document)


def _write(head: str, document: Schema) -> str:
    """One section for each tag, one part for each route, and the schemas that they name."""
    parts = [head]
    tags = {tag["name"]: tag.get("description", "") for tag in document.get("tags", [])}
    routes = [
        (path, method, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    named = {tag for _, _, route in routes for tag in route.get("tags", ["routes"])}
    for tag in [*tags, *sorted(named - set(tags))]:
        title = tag.capitalize()
        parts.append(f"## {title}\n\n{tags.get(tag, '')}\n")
        parts += [
            _write_route(path, method, route)
            for path, method, route in routes
            if tag in route.get("tags", ["routes"])
        ]
    schemas = document.get("components", {}).get("schemas", {})
    if schemas:
        parts.append("## Schemas\n")
        parts += [_write_schema(name, schema) for name, schema in sorted(schemas.items())]
    return "\n".join(parts)


def _write_route(path: str, method: str, route: Schema) -> str:
    parts = [f"### {method.upper()} {path}", route.get("description") or route.get("summary", "")]
    parameters = [
        (f"`{one['name']}`", one["in"], _type_of(one["schema"]), _need_of(one))
        for one in route.get("parameters", [])
    ]
    if parameters:
        parts.append(write_table(("parameter", "in", "type", "default"), parameters))
    for kind, body in route.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body, `{kind}`: {_type_of(body['schema'])}")
    answers = []
    for status, answer in route.get("responses", {}).items():
        content = answer.get("content", {})
        types = ", ".join(
            f"{_type_of(body.get('schema', {}))} (`{kind}`)" for kind, body in content.items()
        )
        answers.append((f"{status}", answer.get("description", ""), types))
    parts.append(write_table(("status", "meaning", "answer"), answers))
    return "\n\n".join(part for part in parts if part) + "\n"


def _write_schema(name: str, schema: Schema) -> str:
    parts = [f"### {name}", schema.get("description", "").replace("\n", " ")]
    required = schema.get("required", [])
    rows = [
        (
            f"`{key}`",
            _type_of(one),
            "required" if key in required else _default_of(one),
            one.get("description", ""),
        )
        for key, one in schema.get("properties", {}).items()
    ]
    if rows:
        parts.append(write_table(("key", "type", "default", "description"), rows))
    if "enum" in schema:
        parts.append("One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".")
    return "\n\n".join(part for part in parts if part) + "\n"


def _type_of(schema: Schema) -> str:
    """A schema in a few words, with a link to a named one."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for combined in ("anyOf", "oneOf", "allOf"):
        if combined in schema:
            return " or ".join(dict.fromkeys(_type_of(one) for one in schema[combined]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{json.dumps(value)}`" for value in values)
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type_of(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict) and kind == "object":
        return f"object of {_type_of(schema['additionalProperties'])}"
    return str(kind)


def _need_of(parameter: Schema) -> str:
    return "required" if parameter.get("required") else _default_of(parameter["schema"])


def _default_of(schema: Schema) -> str:
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
