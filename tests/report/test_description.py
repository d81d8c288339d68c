from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cilf.evaluate import RunFolder, summarize
from cilf.report.description import describe_run
from cilf.report.run import Run

MakeRun = Callable[..., RunFolder]


def test_the_sentence_says_what_happened(run: Run) -> None:
    said = describe_run(run, summarize(run.records))
    assert said.startswith("cilf started from 3 labelled classes. 4 windows of unlabelled data")
    assert "with 7 novel classes." in said
    assert "exact number of novel classes in 2 of 4 windows. It queried 120 labels." in said
    assert "hold-out accuracy was 93 % on the initial classes" in said


def test_the_sentence_of_a_run_that_failed_says_why(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    folder.error.write_text("Traceback ...\nValueError: no way\n", encoding="utf-8")
    failed = Run.read(folder)
    assert describe_run(failed, summarize(failed.records)).endswith(
        "Then the run failed: ValueError: no way"
    )
    folder.write_records([])
    begun = Run.read(folder)
    said = "The run failed before its first window: ValueError: no way"
    assert describe_run(begun, summarize(begun.records)) == said


def test_the_sentence_of_a_run_that_was_told_does_not_praise_its_count(
    make_run: MakeRun, tmp_path: Path
) -> None:
    told = Run.read(make_run(tmp_path, n_novel="true"))
    said = describe_run(told, summarize(told.records))
    assert "was told the number of novel classes" in said
    assert "exact" not in said


def test_a_run_that_queried_nobody_says_how_many_classes_it_made(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = Run.read(make_run(tmp_path, query="self"))
    records = [replace(record, named={f"novel-{record.window}": "5"}) for record in run.records]
    said = describe_run(replace(run, records=records), summarize(records))
    assert "It queried no label and named 4 classes itself." in said
