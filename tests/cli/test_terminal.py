from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import pytest
from rich.progress import Progress

from cilf.cli import terminal
from cilf.core import WindowRecord
from cilf.core.notices import warn_once
from cilf.evaluate import summarize
from cilf.evaluate.metric_table import METRICS, Metric, shown_in


def record(window: int, **values: Any) -> WindowRecord:
    numbers: dict[str, Any] = dict.fromkeys((field.name for field in fields(WindowRecord)), 0)
    empty: dict[str, Any] = {"named": {}, "extra": {}, "holdout_classes": {0: 3, 1: 2}}
    holdout = {"holdout_accuracy": {0: 0.9, 1: 0.7}}
    return WindowRecord(**numbers | empty | holdout | {"window": window} | values)


def test_a_table_of_windows_shows_the_metrics_of_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Metric("Luck", "How lucky it was.", lambda outcome: 0.0, shown=("windows", "bench"))
    monkeypatch.setitem(METRICS, "luck", new)
    shown = dict.fromkeys(shown_in("windows"), 0.5) | {"luck": 0.777}
    terminal.print_windows([record(1, extra=shown)])
    printed = capsys.readouterr().out
    assert all(word in printed for m in shown_in("windows").values() for word in m.title.split())
    assert "0.777" in printed
    assert "How lucky it was." in " ".join(printed.split())


def test_metrics_of_a_detection_that_was_not_made_are_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    undefined = {name: math.nan for name, metric in METRICS.items() if metric.of_window}
    terminal.print_windows([record(1, n_novel_found=None, extra=undefined)])
    printed = capsys.readouterr().out
    assert "AUROC" not in printed
    assert "hold-out" in printed


def test_a_summary_is_one_line_of_the_metrics_of_a_benchmark() -> None:
    scores = {"plan_h": 0.4, "plan_aks": 0.8, "plan_aus": 0.2, "plan_na": 0.5}
    records = [record(1, extra=scores, n_queried=7, seconds_detect=1.25)]
    line = terminal.format_summary(summarize(records))
    assert line == (
        "H 0.400 · AKS 0.800 · AUS 0.200 · NA 0.500 · K exact 1.000 · hold-out all 0.820 · "
        "7 labels queried · 1.2 s"  # AUROC is undefined
    )
    propagated = [record(1, n_queried=7, n_propagated=4, propagated_right=0.75)]
    line = terminal.format_summary(summarize(propagated))
    assert "7 labels queried, 4 propagated (0.750 right)" in line


def test_undefined_numbers_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({1: math.nan, "list": [0.5, (math.nan,)]})
    assert json.loads(capsys.readouterr().out) == {"1": None, "list": [0.5, [None]]}


def test_signs_of_markup_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_line("[red]x[/red]")
    terminal.print_error("in\n  two [lines]")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("[red]x[/red]\n", "error: in two [lines]\n")


def test_notices_and_prints_of_others_go_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal.show_notices()
    terminal.show_notices()
    warn_once("a notice of the test")
    with terminal.redirect_prints():
        print("from a learner")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "a notice of the test\nfrom a learner\n"


def test_windows_are_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        record(1, n_novel_planned=2, n_novel_found=1, n_queried=9, n_propagated=3),
        record(2, n_novel_planned=1, n_novel_found=None, n_queried=30),
    ]
    with terminal.show_window_progress(4) as windows:
        assert list(windows.follow(records)) == records
    assert capsys.readouterr().err == (
        "window 1 of 4: 2 novel classes, 1 found, 9 labels queried, 3 propagated\n"
        "window 2 of 4: 1 novel classes, given, 30 labels queried\n"
    )


def test_features_show_instances_per_second_of_their_own_stage() -> None:
    now = [0.0]
    bars = Progress(terminal._RateColumn(), get_time=lambda: now[0], disable=True)
    stage = terminal._StageBar(bars)
    for second in range(1, 4):
        now[0] = float(second)
        stage("fit", 1000 * second, 5000)
    assert str(terminal._RateColumn().render(bars.tasks[0])) == ""
    for second in range(4, 8):
        now[0] = float(second)
        stage("features", 40 * (second - 3), 400)
    assert str(terminal._RateColumn().render(bars.tasks[0])) == "40/s"
    assert bars.tasks[0].time_remaining == 6  # of 240 instances


def test_a_terminal_obeys_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "a\x1b[2J\x07\u202eb"
    terminal.print_line(evil)
    terminal.print_message(evil)
    terminal.print_error(evil)
    terminal.print_table(["name"], [[evil]])
    terminal.print_csv(b"x\r\n")
    assert capsys.readouterr().out.endswith("x\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    terminal.print_csv(evil.encode())
    shown = "".join(capsys.readouterr())
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
