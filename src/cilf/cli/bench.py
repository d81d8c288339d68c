"""``cilf bench``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cilf.cli import terminal
from cilf.cli.options import (
    INTERRUPTED,
    Address,
    EngineName,
    GpuShare,
    Jobs,
    Json,
    TensorBoard,
)

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench
    from cilf.benchmark.engines import Engine

FAILED = 1


def bench(
    grid: Annotated[Path, typer.Argument(metavar="GRID.toml", help="What to run.")],
    out: Annotated[Path | None, typer.Option(help="Where it goes (default: runs/GRID).")] = None,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    gpu_share: GpuShare = None,
    tensorboard: TensorBoard = False,
    as_json: Json = False,
) -> None:
    """Run every cell of a grid that is not done yet; stopped or killed, it goes on."""
    from cilf.benchmark.bench import Bench
    from cilf.benchmark.engines import make_engine
    from cilf.benchmark.grid import read_grid
    from cilf.evaluate.tensorboard import require_tensorboard

    runner = make_engine(engine, jobs, address=address, gpu_share=gpu_share)
    runner.check()
    if tensorboard:
        require_tensorboard()
    opened = Bench.open(read_grid(grid), out or Path("runs") / grid.stem)
    run_bench(opened, runner, tensorboard=tensorboard)
    _show(opened, grid, as_json)
    if opened.count("failed"):
        raise typer.Exit(FAILED)


def run_bench(bench: Bench, engine: Engine, *, tensorboard: bool = False) -> None:
    """Run what is not done yet, with what a person sees of it."""
    from cilf.cli.bench_display import announce, following

    announce(bench, engine)
    try:
        with following(bench, engine) as watch:
            for _ in watch.events(bench.run(engine, tensorboard=tensorboard)):
                pass
    except KeyboardInterrupt:
        done = f"{bench.count('done')} of {len(bench.states)} cells are done"
        terminal.message(f"stopped. {done}: the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None


def _show(bench: Bench, grid: Path, as_json: bool) -> None:
    from cilf.cli.bench_display import print_results

    show_failed(bench)
    if as_json:
        terminal.print_json(
            {
                "grid": str(grid),
                "out": str(bench.out),
                "n_done": bench.count("done"),
                "n_failed": bench.count("failed"),
                "cells": [state.to_json() for state in bench.states.values()],
            }
        )
        return
    print_results(bench)
    terminal.print_line(f"{bench.count('done')} of {len(bench.states)} cells done: {bench.out}")


def show_failed(bench: Bench) -> None:
    for state in bench.with_status("failed"):
        terminal.message(f"failed: {state.name}: {state.error} ({state.folder.error})")
