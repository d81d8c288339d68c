from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cilf.errors import BadInput
from cilf.evaluate.records import RunFolder
from cilf.report import heatmaps, summary
from cilf.report.class_style import COLOURS, SHAPES, assign_styles
from cilf.report.run import Run
from cilf.report.summary import Summary

MakeRun = Callable[..., RunFolder]


@pytest.fixture
def run(digits_run: RunFolder) -> Run:
    return Run.read(digits_run)


def test_classes_go_by_name_in_order_of_arrival(run: Run) -> None:
    assert run.classes == ("3", "0", "8", "5", "1", "6", "9", "2", "7", "4")
    assert run.group(0) == ("3", "0", "8")
    assert run.group(2) == ()
    assert run.group(4) == ("2", "7", "4")


def test_a_run_without_a_plan_is_refused_by_name(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_run({"learner": "cilf"})
    with pytest.raises(BadInput, match=r"run\.json has no usable plan"):
        Run.read(folder)


def test_summary_skips_what_is_undefined(run: Run) -> None:
    s = Summary.of(run)
    assert (s.n_exact, s.n_windows, s.n_queried) == (2, 4, 120)
    assert s.na == pytest.approx((0.951 + 0.48 + 0.82) / 3)
    assert s.auroc == pytest.approx((0.985 + 0.71 + 0.93) / 3)
    assert s.holdout_first == 0.93
    assert s.holdout_all == pytest.approx((3 * 0.93 + 2 * 0.9 + 2 * 0.55 + 3 * 0.97) / 10)
    assert s.seconds == pytest.approx(8.0)


def test_window_table_has_old_and_new_holdout_accuracy(run: Run) -> None:
    rows = summary.window_table(run).rows
    old, new = summary.WINDOW_COLUMNS.index("hold-out old"), -3
    assert rows[3][old] == 0.93
    assert rows[3][new] == pytest.approx((0.9 + 0.55 + 0.97) / 3)
    assert rows[1][new] == 0.95  # the group of a window without new classes does not count


def test_the_sentence_says_what_happened(run: Run) -> None:
    said = summary.sentence(run, Summary.of(run))
    assert said.startswith("Starting from 3 labelled classes, cilf watched 4 windows")
    assert "7 new classes turned up" in said
    assert "exactly in 2 of 4 windows, and asked for 120 labels" in said
    assert "93 % of the held-out instances" in said


def test_the_sentence_of_a_run_that_failed_says_why(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    folder.error.write_text("Traceback ...\nValueError: no way\n", encoding="utf-8")
    failed = Run.read(folder)
    assert summary.sentence(failed, Summary.of(failed)).endswith(
        "Then it failed: ValueError: no way"
    )
    folder.write_records([])
    begun = Run.read(folder)
    said = "The run failed before its first window: ValueError: no way"
    assert summary.sentence(begun, Summary.of(begun)) == said


def test_the_sentence_of_a_run_that_was_told_does_not_praise_its_count(
    make_run: MakeRun, tmp_path: Path
) -> None:
    told = Run.read(make_run(tmp_path, n_novel="true"))
    said = summary.sentence(told, Summary.of(told))
    assert "was told how many new classes" in said
    assert "exactly" not in said


def test_only_runs_on_the_same_stream_compete(make_run: MakeRun, tmp_path: Path) -> None:
    runs = [
        Run.read(make_run(tmp_path / "a")),
        Run.read(make_run(tmp_path / "b", n=1)),
        Run.read(make_run(tmp_path / "c", data="mnist")),
    ]
    table = summary.run_table(runs, ["a", "b", "c"])
    na = summary.RUN_COLUMNS.index("NA")
    assert {row for row, column in table.bold if column == na} == {1}
    assert not any(row == 2 for row, _ in table.bold)


def test_stream_map_tells_every_state(run: Run) -> None:
    states = {
        row.name: [cell.state for cell in row.cells] for row in heatmaps.make_stream_heatmap(run)
    }
    assert states["0"] == ["initial", "present", "gone", "gone", "gone"]
    assert states["5"] == ["ahead", "novel", "present", "present", "present"]
    assert states["6"] == ["ahead", "ahead", "ahead", "novel", "untold"]
    texts = [
        cell.text
        for row in heatmaps.make_stream_heatmap(run)
        if row.name == "6"
        for cell in row.cells
    ]
    assert texts[3:] == ["★ 20", "☆ 20"]


def test_accuracy_matrix_has_a_row_for_each_group_that_has_classes(run: Run) -> None:
    rows = heatmaps.make_accuracy_heatmap(run)
    assert [row.name for row in rows] == [
        "First classes",
        "New in window 1",
        "New in window 3",
        "New in window 4",
    ]
    assert [cell.text for cell in rows[2].cells] == ["", "", "0.00", "0.55"]


def test_marks_differ_until_every_colour_has_every_shape() -> None:
    many = assign_styles([str(i) for i in range(COLOURS * SHAPES)])
    assert len(set(many.values())) == COLOURS * SHAPES


def test_labels_nobody_gave_are_told_where_there_are_any(
    run: Run, make_run: MakeRun, tmp_path: Path
) -> None:
    assert summary.window_table(run).columns == summary.WINDOW_COLUMNS
    other = Run.read(make_run(tmp_path, query=4))
    first, *rest = other.records
    records = [replace(first, n_propagated=50, propagated_right=0.9), *rest]
    other = replace(other, records=records)
    table = summary.window_table(other)
    assert table.columns[-2:] == ("taught unasked", "rightly so")
    assert table.rows[0][-2:] == (50, 0.9)
    said = summary.sentence(other, Summary.of(other))
    assert "asked for 120 labels that named 50 other instances too, 90 % of them rightly" in said


def test_a_run_that_asked_nobody_says_how_many_classes_it_made(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = Run.read(make_run(tmp_path, query="self"))
    records = [replace(record, named={f"novel-{record.window}": "5"}) for record in run.records]
    said = summary.sentence(run, Summary.of(replace(run, records=records)))
    assert "without asking anybody" in said
    assert "label" not in said.split("It counted")[1].split(".")[0]
