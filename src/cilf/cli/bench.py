"""``cilf bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cilf.cli import terminal
from cilf.cli.options import (
    FAILED,
    INTERRUPTED,
    Address,
    DryRun,
    EngineName,
    GpuShare,
    Jobs,
    Json,
    TensorBoard,
    Trackers,
    name_trackers,
)

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench
    from cilf.benchmark.engines import Engine


def bench(
    grid: Annotated[Path, typer.Argument(metavar="GRID.toml", help="The grid of runs.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs (default: runs/GRID).")
    ] = None,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    gpu_share: GpuShare = None,
    track: Trackers = None,
    tensorboard: TensorBoard = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Run the cells of a grid. The same command continues a benchmark that was stopped."""
    from cilf.benchmark.bench import Bench
    from cilf.benchmark.engines import make_engine
    from cilf.benchmark.grid import read_grid

    runner = make_engine(engine, jobs, address=address, gpu_share=gpu_share)
    runner.check()
    trackers = name_trackers(track, tensorboard)
    opened = Bench.open(read_grid(grid), out or Path("runs") / grid.stem)
    if dry_run:
        show_work(opened, runner, as_json)
        return
    run_bench(opened, runner, trackers=trackers)
    _show_results(opened, grid, as_json)
    if opened.count("failed"):
        raise typer.Exit(FAILED)


def run_bench(bench: Bench, engine: Engine, *, trackers: Sequence[str] = ()) -> None:
    """Run the cells that are not done yet, and show the progress."""
    from cilf.cli.bench_display import announce_bench, follow_bench

    try:
        bench.forecast()
        announce_bench(bench, engine)
        with follow_bench(bench, engine) as display:
            for _ in display.follow(bench.run(engine, trackers=trackers)):
                pass
    except KeyboardInterrupt:
        done = f"{bench.count('done')} of {len(bench.states)} cells are done"
        terminal.print_message(f"stopped. {done}: the same command continues.")
        raise typer.Exit(INTERRUPTED) from None


def show_work(bench: Bench, engine: Engine, as_json: bool) -> None:
    """Print how many cells there are and how long they would take, and run none of them."""
    from cilf.cli.bench_display import describe_work, work_to_json

    bench.forecast()
    if as_json:
        terminal.print_json(work_to_json(bench, engine))
        return
    for line in describe_work(bench, engine):
        terminal.print_line(line)


def _show_results(bench: Bench, grid: Path, as_json: bool) -> None:
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
        terminal.print_message(f"failed: {state.name}: {state.error} ({state.folder.error})")
