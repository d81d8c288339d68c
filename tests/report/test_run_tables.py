from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cilf.evaluate import RunFolder, summarize
from cilf.evaluate.metric_table import shown_in
from cilf.report.description import describe_run
from cilf.report.run import Run
from cilf.report.run_tables import make_run_table, make_window_footer, make_window_table, sort_runs

MakeRun = Callable[..., RunFolder]


def test_the_summary_skips_what_is_undefined(run: Run) -> None:
    s = summarize(run.records)
    assert (s["n_exact"], s["n_windows"], s["n_queried"]) == (2, 4, 120)
    assert s["na"] == pytest.approx((0.951 + 0.48 + 0.82) / 3)
    assert s["auroc"] == pytest.approx((0.985 + 0.71 + 0.93) / 3)
    assert s["holdout_first"] == 0.93
    assert s["holdout_all"] == pytest.approx((3 * 0.93 + 2 * 0.9 + 2 * 0.55 + 3 * 0.97) / 10)
    assert s["seconds"] == pytest.approx(8.0)


def test_the_window_table_has_a_column_for_each_metric_that_is_shown(run: Run) -> None:
    table = make_window_table(run)
    titles = tuple(metric.title for metric in shown_in("windows").values())
    assert table.columns == ("window", "true K", "found K", *titles, "queried", "seconds")
    old, new = (table.columns.index(f"hold-out {which}") for which in ("first", "new"))
    assert table.rows[3][old] == 0.93
    assert table.rows[3][new] == pytest.approx((0.9 + 0.55 + 0.97) / 3)
    assert table.rows[1][new] == 0.95  # the group of a window without novel classes does not count


def test_the_footer_fits_below_the_columns_of_metrics_and_totals(run: Run) -> None:
    footer = make_window_footer(run, summarize(run.records))
    table = make_window_table(run)
    assert len(footer) == len(table.columns) - 3
    below = dict(zip(table.columns[3:], footer, strict=True))
    assert (below["NA"], below["hold-out first"], below["queried"]) == ("0.750", "", "120")


def test_runs_on_the_same_data_are_in_the_order_of_h_and_no_single_run_is_best(
    make_run: MakeRun, tmp_path: Path
) -> None:
    runs = [
        Run.read(make_run(tmp_path / "a")),
        Run.read(make_run(tmp_path / "c", data="mnist")),
        Run.read(make_run(tmp_path / "b", n=1)),
    ]
    runs = sort_runs(runs)
    names = [run.folder.path.name for run in runs]
    assert names == ["b", "a", "c"]
    table = make_run_table(runs, names, [summarize(run.records) for run in runs])
    h = table.columns.index("H")
    assert table.rows[0][h] > table.rows[1][h]
    assert table.bold == frozenset()


def test_propagated_labels_have_columns_where_there_are_any(run: Run) -> None:
    first, *rest = run.records
    records = [replace(first, n_propagated=50, propagated_right=0.9), *rest]
    other = replace(run, records=records)
    table = make_window_table(other)
    assert table.columns[-2:] == ("propagated", "of these right")
    assert table.rows[0][-2:] == (50, 0.9)
    assert make_window_footer(other, summarize(records))[-2:] == ["50", "0.900"]
    text = describe_run(other, summarize(records))
    assert "queried 120 labels; the answers were propagated to 50 other instances, to 90 %" in text
