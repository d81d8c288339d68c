from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cilf.benchmark.paper.items import select_items
from cilf.benchmark.paper.make import open_bench, write_items
from cilf.benchmark.paper.setup import Setup
from cilf.report import write_report


def test_one_run_has_its_table_on_the_page_too(
    few_digits: Path, tmp_path: Path, keep_run: Any
) -> None:
    setup = Setup("smoke", data=(str(few_digits),), seeds=(0,), learners=("one-svm",))
    keep_run(setup, "one-svm", 0)
    (written,) = write_items(select_items(["table2"]), setup, tmp_path)
    others = 2  # its row with the shared space, and the floor
    assert written.to_json() == {"files": [str(f) for f in written.files], "n_missing": others}
    page = write_report(tmp_path).read_text()
    assert "Table 2. Novel class detection" in page
    assert "The best mean is bold if it has several seeds." in page


def test_items_that_share_cells_open_each_once_and_the_index_keeps_earlier_items(
    few_digits: Path, tmp_path: Path
) -> None:
    setup = Setup("smoke", data=(str(few_digits),), seeds=(0, 1), learners=("iforest",))
    bench = open_bench(select_items(["table2", "figure6"]), setup, tmp_path)
    assert len(bench.states) == 2 * 3  # as published, with the shared space, and the floor
    for name, n_missing in {"table2": 6, "figure6": 2}.items():
        (written,) = write_items(select_items([name]), setup, tmp_path)
        assert (written.files, written.n_missing) == ([], n_missing)
    assert list(json.loads((tmp_path / "paper.json").read_text())["items"]) == ["table2", "figure6"]
