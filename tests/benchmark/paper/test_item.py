from __future__ import annotations

from pathlib import Path

from cilf.benchmark.paper.item import Inputs, Item, cross
from cilf.benchmark.paper.make import write_items
from cilf.benchmark.paper.setup import Row, Setup, with_replay


def test_a_new_item_needs_no_more_than_a_function_that_writes_its_files(tmp_path: Path) -> None:
    def write(inputs: Inputs) -> list[Path]:
        path = inputs.out / f"{inputs.name}.csv"
        path.write_text(f"{inputs.title}, {inputs.setup.scale}\n")
        return [path]

    item = Item("Mine", "About it.", write, needs_runs=False)
    (written,) = write_items({"table9": item}, Setup("smoke"), tmp_path)
    assert (written.name, written.n_missing) == ("table9", 0)
    assert (tmp_path / "table9.csv").read_text() == "Mine, smoke\n"


def test_learners_are_crossed_with_data_sets() -> None:
    cells = cross([Row("cilf"), Row("cpe")], ["mnist", "cifar10"], "single")
    assert [cell[:3] for cell in cells] == [
        ("cilf", "mnist", "single"), ("cpe", "mnist", "single"),
        ("cilf", "cifar10", "single"), ("cpe", "cifar10", "single"),
    ]  # fmt: skip
    (given,) = cross([with_replay("dnn-base")], ["mnist"], "single", "given")
    config = given.config(Setup("cpu"), 1000)
    assert (given.name, config.protocol) == ("dnn-base, replay", "given")
    assert config.make_learner().get_params()["replay"] is True
