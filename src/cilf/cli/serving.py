"""The commands for a model in use: export, serve, watch."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cilf.cli import terminal
from cilf.cli.choices import CommandWithChoices
from cilf.cli.options import Encoders, Json
from cilf.cli.server_options import Host, Port, Token, TokenFile, read_token
from cilf.cli.workflow import Model
from cilf.errors import BadInput

KILO = 1000
MODEL_FILE, EXPORT_OUT = "model.onnx", "runs/export"

app = typer.Typer()


@app.command(cls=CommandWithChoices)
def export(
    source: Annotated[
        Path,
        typer.Argument(metavar="MODEL|FINDINGS", help="A model folder, or a findings folder."),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            help="The format. Of a model: {formats} (default). Of findings: {label_formats} "
            "(default: csv)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file of a model (default: model.onnx), or the folder of findings (default: "
            "runs/export)."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Export a model to one file, or findings and their labels to a format of another program."""
    from cilf.workflow import Findings

    if Findings(source).exists():
        _export_findings(source, out or Path(EXPORT_OUT), to or "csv", overwrite, as_json)
    else:
        _export_model(source, out or Path(MODEL_FILE), to or "onnx", overwrite, as_json)


def _export_model(model: Path, out: Path, to: str, overwrite: bool, as_json: bool) -> None:
    from cilf import workflow
    from cilf.workflow.formats import FORMATS

    if to in FORMATS:
        raise BadInput(
            f"{model} holds no findings, which --to {to} is for: name a findings folder."
        )
    exported = workflow.export(model, out, to=to, overwrite=overwrite)
    if as_json:
        terminal.print_json(
            {
                "file": str(out),
                "bytes": exported.size,
                "version": exported.version,
                "classes": list(exported.classes),
                "outputs": list(exported.outputs),
            }
        )
        return
    terminal.print_line(
        f"{out}: {len(exported.classes)} classes, {exported.size / KILO**2:.1f} MB; a batch gives "
        f"{', '.join(exported.outputs)}"
    )


def _export_findings(findings: Path, out: Path, to: str, overwrite: bool, as_json: bool) -> None:
    from cilf import workflow
    from cilf.workflow.formats import FORMATS
    from cilf.workflow.model_export import FORMATS as OF_MODELS

    if to in OF_MODELS:
        raise BadInput(f"{findings} holds findings, and --to {to} is for models: name a model.")
    exported = workflow.export_findings(findings, out, to=to, overwrite=overwrite)
    if as_json:
        terminal.print_json(
            {
                "out": str(out),
                "format": to,
                "n_instances": exported.n_instances,
                "n_labels": len(exported.labels),
            }
        )
        return
    terminal.print_line(
        f"{out}: {exported.n_instances} instances as {FORMATS[to].title}, "
        f"{len(exported.labels)} of them labelled"
    )


@app.command()
def serve(
    context: typer.Context,
    model: Model,
    host: Host = "127.0.0.1",
    port: Port = 8378,
    token: Token = None,
    token_file: TokenFile = None,
    encoder: Encoders = None,
) -> None:
    """Serve predictions and detections of a model over HTTP."""
    from cilf.serving.server import serve as serve_model

    token = read_token(context, token, token_file)

    def announce(address: str) -> None:
        terminal.print_line(f"cilf serve: {address}  (Ctrl+C stops it)")

    serve_model(model, host=host, port=port, token=token, announce=announce)


@app.command()
def watch(
    model: Model,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder, a pattern, a URL such as s3://bucket/folder, or - for lines of JSON.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The folder of the findings, one folder for each window.")
    ] = Path("runs/watch"),
    state: Annotated[
        Path | None,
        typer.Option(help="The folder of what was seen and what waits (default: OUT/state)."),
    ] = None,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="The time between two looks: 30s, 10m, 2h.")
    ] = "10m",
    at_least: Annotated[
        int, typer.Option(metavar="N", help="The number of instances that a window has at least.")
    ] = 200,
    queue: Annotated[
        int, typer.Option(metavar="N", help="The number of instances that may wait at most.")
    ] = 10_000,
    console: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A console that gets the windows, in place of OUT; CILF_TOKEN is its token.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where notifications are posted, signed with CILF_WEBHOOK_SECRET.",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="A program that gets notifications on standard input."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once, and end: for a timer of the system.")
    ] = False,
    encoder: Encoders = None,
) -> None:
    """Watch a stream, detect novel classes in its windows, and tell what is new."""
    from cilf.serving import destinations, notifications
    from cilf.serving.watch import Pace, parse_duration
    from cilf.serving.watch import watch as watch_stream

    def print_notification(body: Mapping[str, Any]) -> str:
        sys.stdout.write(json.dumps(body) + "\n")
        sys.stdout.flush()
        return ""

    channels: dict[str, notifications.Send] = {"standard output": print_notification}
    if webhook is not None:
        secret = os.environ.pop(notifications.SECRET, None)
        channels["webhook"] = notifications.make_webhook(webhook, secret)
    if command is not None:
        channels["command"] = notifications.make_command(command)
    token = os.environ.pop("CILF_TOKEN", None)
    destination: destinations.Destination = destinations.FindingsFolders(out, source)
    if console is not None:
        send = destinations.make_transport(console, token)
        destination = destinations.ConsoleWindows(console, send)
    watch_stream(
        model, source, destination, state or out / "state",
        pace=Pace(parse_duration(every), at_least, queue, once), channels=channels,
        say=terminal.print_message,
    )  # fmt: skip
