"""``cilf paper``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cilf.cli import terminal
from cilf.cli.bench import FAILED, run_bench, show_failed
from cilf.cli.options import Address, EngineName, GpuShare, Jobs, Json

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench
    from cilf.benchmark.paper.item import Item
    from cilf.benchmark.paper.make import WrittenItem
    from cilf.benchmark.paper.setup import Setup


def paper(
    items: Annotated[
        list[str],
        typer.Argument(metavar="ITEM...", help="table2 ... table5, figure2, figure4 ... or all."),
    ],
    scale: Annotated[str, typer.Option(help="smoke, cpu or paper.")] = "smoke",
    out: Annotated[
        Path | None, typer.Option(help="Where it goes (default: runs/paper-SCALE).")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="In place of the paper's data sets; may be repeated.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="In place of the scale's seeds; may be repeated.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(help="Only these of the paper's; FILE.py:CLASS adds your own. Repeatable."),
    ] = None,
    draw: Annotated[
        bool, typer.Option("--draw", help="Run nothing: make them of the runs that are there.")
    ] = False,
    jobs: Jobs = None,
    engine: EngineName = "local",
    address: Address = None,
    gpu_share: GpuShare = None,
    as_json: Json = False,
) -> None:
    """Make tables and figures of the paper: run what is missing, then draw."""
    from cilf.benchmark.engines import make_engine
    from cilf.benchmark.paper.items import select_items
    from cilf.benchmark.paper.make import open_bench, write_items
    from cilf.benchmark.paper.setup import Setup

    setup = Setup.of(scale=scale, data=data, seeds=seed, learners=learner)
    wanted = select_items(items)
    out = out or Path("runs") / f"paper-{scale}"
    runner = make_engine(engine, jobs, address=address, gpu_share=gpu_share)
    bench = open_bench(wanted, setup, out)
    if not draw:
        runner.check()
        _announce_models(wanted, setup, bench)
        run_bench(bench, runner)
    with terminal.progress(), terminal.aside():
        written = list(write_items(wanted, setup, out, fit=not draw))
    _show(bench, written, as_json)
    if bench.count("failed"):
        raise typer.Exit(FAILED)


def _announce_models(items: Mapping[str, Item], setup: Setup, bench: Bench) -> None:
    """What is fitted besides the cells; fitting is a part of a run, whose time is known."""
    from cilf.cli.bench_display import duration

    cells = [cell for item in items.values() for cell in item.models(setup)]
    if cells:
        times = [bench.run_time.expected(cell.config(setup, setup.all_seeds[0])) for cell in cells]
        known = [seconds for seconds in times if seconds is not None]
        most = f"at most {duration(sum(known))}" if len(known) == len(times) else duration(None)
        terminal.message(f"{len(cells)} models to fit besides the cells; expected time {most}")


def _show(bench: Bench, written: list[WrittenItem], as_json: bool) -> None:
    show_failed(bench)
    if as_json:
        items = {item.name: item.to_json() for item in written}
        failed = {state.name: state.error for state in bench.with_status("failed")}
        terminal.print_json({"out": str(bench.out), "items": items, "failed": failed})
        return
    for item in written:
        missing = f" ({item.n_missing} runs are missing)" if item.n_missing else ""
        names = ", ".join(path.name for path in item.files) or "nothing to show"
        terminal.print_line(f"{item.name}: {item.title}{missing}: {names}")
    terminal.print_line(f"{len(written)} items: {bench.out}")
