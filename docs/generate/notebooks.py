"""Tutorials: notebooks that are stored without outputs, run at build, and shown as pages."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

TIMEOUT = 300  # seconds for one cell
KEPT = "CILF_DOCS_CACHE"  # names a folder that keeps what was run, for `make docs-serve`
RAISE = "--InteractiveShell.system_raise_on_error=True"  # a command that fails ends the build
TERMINAL = {"TERM": "dumb", "COLUMNS": "100"}  # commands show no progress
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
NOTE = (
    '!!! info "A notebook"\n\n    This page is the notebook <a href="{name}" download>{name}</a>, '
    "run when the site was made.\n"
)


def write_page(path: Path) -> dict[str, str | bytes]:
    """The page of a notebook, and the pictures on it, by name."""
    files: dict[str, str | bytes] = {}
    title, *parts = [
        part
        for number, cell in enumerate(_run(path).cells)
        for part in _show(cell, f"{path.stem}-{number}", files)
    ]
    heading, _, rest = title.partition("\n")
    text = "\n\n".join([heading, NOTE.format(name=path.name), rest, *parts])
    return {f"{path.stem}.md": text + "\n"} | files


def _run(path: Path) -> Any:
    """The notebook with its outputs. An error in a cell ends the build."""
    content = path.read_bytes()
    folder = os.environ.get(KEPT)
    kept = folder and Path(folder) / f"{hashlib.sha256(content).hexdigest()}.ipynb"
    if kept and Path(kept).exists():
        return nbformat.read(kept, as_version=4)
    notebook = _execute(nbformat.reads(content.decode(), as_version=4))
    if kept:
        Path(kept).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, kept)
    return notebook


def _execute(notebook: Any) -> Any:
    """Run the notebook in an empty folder, whose path its outputs do not show."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as sockets:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            extra_arguments=[RAISE],
            coalesce_streams=True,
            resources={"metadata": {"path": work}},
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
        )
        programs = Path(sys.executable).parent  # holds the command cilf of this environment
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        client.execute(env=os.environ | TERMINAL | {"PATH": path})
        shown = nbformat.writes(notebook).replace(f"{work}/", "")
    return nbformat.reads(shown, as_version=4)


def _show(cell: Any, name: str, files: dict[str, str | bytes]) -> list[str]:
    if cell.cell_type != "code":
        return [cell.source]
    hidden = "hide" in cell.metadata.get("tags", [])
    language = "sh" if cell.source.startswith("%%bash") else "python"
    source = cell.source.removeprefix("%%bash\n")
    parts = [] if hidden else [f"```{language}\n{source}\n```"]
    for number, output in enumerate(cell.outputs):
        parts += _show_output(output, f"{name}-{number}", files)
    return parts


def _show_output(output: Any, name: str, files: dict[str, str | bytes]) -> list[str]:
    if output.output_type == "stream":
        return [_text(output.text)] if output.name == "stdout" else []
    data = output.get("data", {})
    if "image/png" in data:
        files[f"{name}.png"] = base64.b64decode(data["image/png"])
        return [f"![What the code above plots]({name}.png)"]
    return [_text(data["text/plain"])] if "text/plain" in data else []


def _text(text: str) -> str:
    lines = [line.rstrip() for line in CONTROL.sub("", text).splitlines()]
    shown = "\n".join(lines).strip("\n")
    return f"```{{ .text .output }}\n{shown}\n```"
