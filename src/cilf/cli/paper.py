"""``cilf paper``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cilf.cli import terminal
from cilf.cli.bench import run_bench, show_failed, show_work
from cilf.cli.options import FAILED, Address, DryRun, EngineName, GpuShare, Jobs, Json

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench
    from cilf.benchmark.paper.item import Item
    from cilf.benchmark.paper.make import WrittenItem
    from cilf.benchmark.paper.setup import Setup


def paper(
    items: Annotated[
        list[str],
        typer.Argument(metavar="ITEM...", help="Tables and figures: {items}, or all."),
    ],
    scale: Annotated[str, typer.Option(help="Size of the streams. One of: {scales}.")] = "smoke",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the files and runs (default: runs/paper-SCALE).")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Data set that replaces the paper's. Repeatable.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Seed that replaces those of the scale. Repeatable.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="Learner of the paper to run (default: all). FILE.py:CLASS adds your own to each "
            "comparison. Repeatable."
        ),
    ] = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Run nothing; use the finished runs.")
    ] = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    gpu_share: GpuShare = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Reproduce tables and figures of the paper: run the missing runs, then write the files."""
    from cilf.benchmark.engines import make_engine
    from cilf.benchmark.paper.items import select_items
    from cilf.benchmark.paper.make import open_bench, write_items
    from cilf.benchmark.paper.setup import Setup

    setup = Setup.of(scale=scale, data=data, seeds=seed, learners=learner)
    wanted = select_items(items)
    out = out or Path("runs") / f"paper-{scale}"
    runner = make_engine(engine, jobs, address=address, gpu_share=gpu_share)
    bench = open_bench(wanted, setup, out)
    if dry_run:
        runner.check()
        _announce_models(wanted, setup, bench)
        show_work(bench, runner, as_json)
        return
    if not plot:
        runner.check()
        _announce_models(wanted, setup, bench)
        run_bench(bench, runner)
    with terminal.show_progress(), terminal.redirect_prints():
        written = list(write_items(wanted, setup, out, fit=not plot))
    _show_items(bench, written, as_json)
    if bench.count("failed"):
        raise typer.Exit(FAILED)


def _announce_models(items: Mapping[str, Item], setup: Setup, bench: Bench) -> None:
    """Print how many models are fitted besides the cells, and how long that takes at most."""
    from cilf.cli.bench_display import format_duration

    cells = [cell for item in items.values() for cell in item.models(setup)]
    if cells:
        configs = [cell.config(setup, setup.all_seeds[0]) for cell in cells]
        bench.run_time.forecast(configs)
        times = [bench.run_time.estimate(config) for config in configs]
        known = [seconds for seconds in times if seconds is not None]
        total = sum(known) if len(known) == len(times) else None
        most = format_duration(total) if total is None else f"at most {format_duration(total)}"
        terminal.print_message(
            f"{len(cells)} models to fit besides the cells; expected time {most}"
        )


def _show_items(bench: Bench, written: list[WrittenItem], as_json: bool) -> None:
    show_failed(bench)
    if as_json:
        items = {item.name: item.to_json() for item in written}
        failed = {state.name: state.error for state in bench.with_status("failed")}
        terminal.print_json({"out": str(bench.out), "items": items, "failed": failed})
        return
    for item in written:
        missing = f" ({item.n_missing} runs missing)" if item.n_missing else ""
        names = ", ".join(path.name for path in item.files) or "no finished run"
        terminal.print_line(f"{item.name}: {item.title}{missing}: {names}")
    terminal.print_line(f"{len(written)} items: {bench.out}")
