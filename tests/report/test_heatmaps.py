from __future__ import annotations

from cilf.report.heatmaps import make_accuracy_heatmap, make_stream_heatmap
from cilf.report.run import Run


def test_the_stream_heatmap_tells_every_state(run: Run) -> None:
    states = {row.name: [cell.state for cell in row.cells] for row in make_stream_heatmap(run)}
    assert states["0"] == ["initial", "present", "gone", "gone", "gone"]
    assert states["5"] == ["ahead", "novel", "present", "present", "present"]
    assert states["6"] == ["ahead", "ahead", "ahead", "novel", "unlearned"]
    texts = [cell.text for row in make_stream_heatmap(run) if row.name == "6" for cell in row.cells]
    assert texts[3:] == ["★ 20", "☆ 20"]


def test_the_accuracy_heatmap_has_a_row_for_each_group_that_has_classes(run: Run) -> None:
    rows = make_accuracy_heatmap(run)
    assert [row.name for row in rows] == [
        "Initial classes",
        "Novel in window 1",
        "Novel in window 3",
        "Novel in window 4",
    ]
    assert [cell.text for cell in rows[2].cells] == ["", "", "0.00", "0.55"]
