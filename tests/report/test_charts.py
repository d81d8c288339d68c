from __future__ import annotations

from typing import Any

from cilf.core import WindowRecord
from cilf.evaluate.metric_table import shown_in
from cilf.report.charts import plot_counts, plot_metric, plot_metrics
from cilf.report.run import Run


def test_counts_stand_beside_the_truth(find_class: Any, run: Run) -> None:
    svg = plot_counts(run.records)
    values = [e.text for e in find_class(svg, "value")]
    assert values == ["2", "2", "0", "0", "2", "0", "5", "4"]
    assert [e.text for e in find_class(svg, "verdict")] == [
        "✓ exact",
        "✓ exact",
        "\N{MINUS SIGN}2",
        "\N{MINUS SIGN}1",
    ]


def test_an_undefined_metric_leaves_a_gap(find_class: Any, run: Run) -> None:
    svg = plot_metric(run.records, "auroc", "AUROC")
    assert [e.text for e in find_class(svg, "gap")] == ["n/a"]
    lines = [e.get("d", "") for e in find_class(svg, "line")]
    assert [path.count(" ") for path in lines] == [2]  # windows 3 and 4; window 1 stands alone
    assert len(find_class(svg, "dot")) == 3


def test_a_metric_that_is_never_defined_still_draws(find_class: Any, run: Run) -> None:
    quiet: list[WindowRecord] = [run.records[1]]
    assert not find_class(plot_metric(quiet, "auroc", "AUROC"), "dot")


def test_every_metric_of_the_charts_has_one(run: Run) -> None:
    charts = plot_metrics(run.records)
    assert [chart["title"] for chart in charts] == [m.title for m in shown_in("charts").values()]
    assert all(chart["chart"].startswith("<svg") and chart["meaning"] for chart in charts)
