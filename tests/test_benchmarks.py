"""The grids and scripts in benchmarks/ fit the code they run."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from cilf.benchmark import read_grid
from cilf.benchmark.grid import cell_key
from cilf.benchmark.paper.items import ITEMS
from cilf.benchmark.paper.setup import Setup
from cilf.benchmark.scales import setting

FOLDER = Path(__file__).parent.parent / "benchmarks"
GRIDS = sorted(path.name for path in FOLDER.glob("*.toml"))
TUNING = ("study.toml", "budgets.toml")
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_has_cells_whose_learners_can_be_made(name: str) -> None:
    cells = read_grid(FOLDER / name).cells()
    assert len({cell.folder for cell in cells}) == len(cells) > 0
    assert all(cell.config.make_learner().seed == cell.config.seed for cell in cells)


@pytest.mark.parametrize("data", ["mnist", "cifar10"])
@pytest.mark.parametrize("learner", ["cfo", "dtc"])
def test_the_budgets_of_a_scale_are_a_row_of_their_curve(learner: str, data: str) -> None:
    configs = [cell.config for cell in read_grid(FOLDER / "budgets.toml").cells()]
    rows = [c.parameters for c in configs if (c.learner, c.data) == (learner, data)]
    assert len(rows) == 4
    budgets = setting("cpu", data).learner
    assert {name: budgets[name] for name in rows[0]} in rows


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_finds_what_it_imports(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "console.py":
        pytest.importorskip("httpx")
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name[:-3]}", FOLDER / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look up their types
    spec.loader.exec_module(module)
    assert callable(module.main)


def test_the_page_links_every_grid_script_and_record() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(([^)#]+)\)", page))
    records = {f"results/{path.name}" for path in (FOLDER / "results").glob("*.json")}
    assert {*GRIDS, *SCRIPTS, *records} <= links
    assert [link for link in links if not (FOLDER / link).exists()] == []


def test_the_grid_of_the_paper_has_the_cells_of_its_tables_and_figures() -> None:
    setup = Setup("cpu")
    wanted = {
        cell_key(cell.config(setup, seed))
        for item in ITEMS.values()
        for cell in item.cells(setup)
        for seed in setup.all_seeds
    }
    cells = read_grid(FOLDER / "paper-cpu.toml").cells()
    assert {cell.key for cell in cells} == wanted
    first = cells[0].config
    assert (first.learner, first.data, first.seed) == ("cilf", "mnist", 1000)


@pytest.mark.parametrize("name", sorted({*GRIDS} - {*TUNING}))
def test_grids_that_report_have_seeds_that_nothing_was_tuned_on(name: str) -> None:
    assert all(cell.config.seed >= 1000 for cell in read_grid(FOLDER / name).cells())
