"""``cilf paper``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cilf import terminal
from cilf.cli.bench import FAILED, make_engine, run_bench, show_failed
from cilf.cli.options import Address, EngineName, GpuShare, Jobs, Json

if TYPE_CHECKING:
    from cilf.benchmark.bench import Bench
    from cilf.paper.make import Made


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
    from cilf.paper.make import chosen, make, open_bench
    from cilf.paper.setup import Setup

    setup = Setup.of(scale=scale, data=data, seeds=seed, learners=learner)
    wanted = chosen(items)
    out = out or Path("runs") / f"paper-{scale}"
    runner = make_engine(engine, jobs, address, gpu_share)
    bench = open_bench(wanted, setup, out)
    if not draw:
        runner.check()
        run_bench(bench, runner)
    with terminal.progress():
        made = list(make(wanted, setup, out))
    _show(bench, made, as_json)
    if bench.count("failed"):
        raise typer.Exit(FAILED)


def _show(bench: Bench, made: list[Made], as_json: bool) -> None:
    show_failed(bench)
    if as_json:
        items = {each.item.name: each.to_json() for each in made}
        terminal.print_json({"out": str(bench.out), "items": items})
        return
    for each in made:
        missing = f" ({each.n_missing} runs are missing)" if each.n_missing else ""
        names = ", ".join(path.name for path in each.files) or "nothing to show"
        terminal.print_line(f"{each.item.name}: {each.item.title}{missing}: {names}")
    terminal.print_line(f"{len(made)} items: {bench.out}")
