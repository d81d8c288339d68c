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

KILO = 1000

app = typer.Typer()


@app.command(cls=CommandWithChoices)
def export(
    model: Model,
    to: Annotated[str, typer.Option(help="The format. One of: {formats}.")] = "onnx",
    out: Annotated[Path, typer.Option(help="The file.")] = Path("model.onnx"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Export a model to one file that runs without this package."""
    from cilf import workflow

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
