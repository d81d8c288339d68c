from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark import Cell, RunConfig, run_cell
from cilf.core import WindowRecord, parameters
from cilf.data import Split, load_dataset
from cilf.errors import BadConfig, BadInput
from cilf.evaluate import RunFolder, run_stream

QUICK = {"n_estimators": 8, "max_samples": 60}
SMALL = {"n_windows": 2, "window_size": 8}


def config(**values: Any) -> RunConfig:
    names = {"learner": "iforest", "data": "digits", "scenario": "multiple"}
    return RunConfig.of(**(names | {"parameters": QUICK, "stream": SMALL} | values))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that is done; read only."""
    out = tmp_path_factory.mktemp("cell") / "run"
    assert len(list(run_cell(config(seed=3), out))) == 2
    return RunFolder.open(out)


def windows(records: Iterator[Any]) -> list[int]:
    return [record.window for record in records]


def test_a_run_says_all_it_depends_on(finished: RunFolder) -> None:
    run = finished.read_run()
    cell = Cell.build(config(seed=3))
    assert run["parameters"] == parameters.to_json(cell.learner)
    assert run["parameters"]["seed"] == run["seed"] == 3
    assert run["stream"]["window_size"] == 8
    assert run["dataset"] == {
        "train_rows": 1437, "test_rows": 360, "n_classes": 10, "instance_shape": [8, 8],
        "part_of_rows": None, "digest": load_dataset("digits").digest(),
    }  # fmt: skip
    assert run["changes"][0] == "n_estimators=8"
    assert run["changes"][-1] == "stream.window_size=8"
    assert set(run["versions"]) == {"python", "cilf", "torch", "numpy", "scikit-learn"}
    assert set(run["machine"]) == {"system", "cpu", "cores"}
    assert {"commit", "started", "scale", "query", "n_novel"} <= set(run)


def test_the_plan_counts_the_instances_of_each_class(finished: RunFolder) -> None:
    plan = finished.read_run()["plan"]
    stream = Cell.build(config(seed=3)).stream
    assert plan["initial"] == list(stream.plan.initial)
    for told, window in zip(plan["windows"], stream, strict=True):
        assert (told["novel"], told["known"]) == (list(window.novel), list(window.known))
        assert dict(told["counts"]) == dict.fromkeys(window.known + window.novel, 8)


def test_records_are_those_of_run_stream(finished: RunFolder) -> None:
    cell = Cell.build(config(seed=3))
    expected = [r.to_json() for r in run_stream(cell.learner, cell.stream)]
    kept = [r.to_json() for r in finished.read_records()]
    for record in expected + kept:
        del record["seconds_detect"], record["seconds_update"]
    assert kept == expected


def test_every_window_is_drawn(finished: RunFolder) -> None:
    for record in finished.read_records():
        snapshot = finished.read_snapshot(record.window)
        assert snapshot is not None
        assert len(snapshot.sizes) == record.n_novel_found


def test_a_record_is_on_disk_when_it_is_yielded(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    for done, _ in enumerate(run_cell(config(), folder.path), start=1):
        assert len(folder.read_records()) == done
        assert folder.read_snapshot(done) is not None
        assert [path.name for path in folder.checkpoint.iterdir()] == [f"{done:03d}"]


def test_a_run_is_neither_joined_nor_replaced_unasked(tmp_path: Path) -> None:
    next(run_cell(config(), tmp_path / "run"))
    with pytest.raises(BadInput, match="already holds a run: resume it"):
        run_cell(config(), tmp_path / "run")


def test_resuming_goes_on_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "run"
    next(run_cell(config(), out))
    started = RunFolder(out).read_run()["started"]
    assert windows(run_cell(config(), out, resume=True)) == [1, 2]
    run = RunFolder(out).read_run()
    assert run["started"] == started
    assert [set(again) for again in run["resumed"]] == [
        {"versions", "commit", "machine", "started"}
    ]


def test_resuming_where_nothing_is_starts(tmp_path: Path) -> None:
    assert windows(run_cell(config(), tmp_path, resume=True)) == [1, 2]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 1}, "seed is 1 now and 0 in that run"),
        ({"parameters": QUICK | {"max_samples": 40}}, "parameters.max_samples is 40 now and 60"),
        ({"stream": SMALL | {"n_quiet": 1}}, "stream.n_quiet is 1 now and 0"),
        ({"query": 0.5}, "query is 0.5 now and 1.0"),
        ({"query": 1}, "query is 1 now and 1.0"),
        ({"query": "self"}, "query is 'self' now and 1.0"),
        ({"strategy": "mixed"}, "strategy is 'mixed' now and 'random'"),
        ({"propagate": 0.8}, "propagate is 0.8 now and None"),
    ],
)
def test_only_the_same_run_is_resumed(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    run_cell(config(), tmp_path)  # claims the folder
    with pytest.raises(BadConfig, match=said):
        run_cell(config(**changed), tmp_path, resume=True)


def test_a_run_is_not_resumed_on_other_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cell(config(), tmp_path)
    data = load_dataset("digits")
    fewer = Split(data.test.X[:-1], data.test.y[:-1], data.test.ids[:-1])
    monkeypatch.setattr(RunConfig, "load", lambda _: replace(data, test=fewer))
    with pytest.raises(BadConfig, match=r"dataset\.test_rows is 359 now and 360 in that run"):
        run_cell(config(), tmp_path, resume=True)


def test_a_run_of_an_older_format_is_not_resumed(tmp_path: Path) -> None:
    run_cell(config(), tmp_path)
    folder = RunFolder(tmp_path)
    folder.write_run(folder.read_run() | {"format": 1})
    with pytest.raises(BadInput, match="has run format 1 and this cilf reads 3"):
        run_cell(config(), tmp_path, resume=True)


@pytest.mark.parametrize(
    "changed", [{"query": "self"}, {"query": 4, "strategy": "mixed", "propagate": 0.6}]
)
def test_a_run_that_names_classes_goes_on_as_if_it_never_stopped(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    def untimed(records: Iterable[WindowRecord]) -> list[str]:
        return [str(replace(r, seconds_detect=0.0, seconds_update=0.0)) for r in records]

    whole = untimed(run_cell(config(**changed), tmp_path / "whole"))
    next(run_cell(config(**changed), tmp_path / "stopped"))
    assert untimed(run_cell(config(**changed), tmp_path / "stopped", resume=True)) == whole


def test_an_equal_run_is_resumed_however_it_was_written(tmp_path: Path) -> None:
    run_cell(config(), tmp_path)
    again = config(parameters=QUICK | {"sample_size": 10_000})  # the default, spelt out
    assert windows(run_cell(again, tmp_path, resume=True)) == [1, 2]


def test_overwriting_starts_afresh(tmp_path: Path) -> None:
    assert windows(run_cell(config(), tmp_path)) == [1, 2]
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    next(run_cell(config(seed=1), tmp_path, overwrite=True))
    folder = RunFolder.open(tmp_path)
    assert folder.read_run()["seed"] == 1
    assert len(folder.read_records()) == 1
    assert folder.read_snapshot(2) is None
    assert (tmp_path / "notes.txt").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_of_other_things_is_refused(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(BadInput, match=r"holds other things \(thesis\.tex"):
        run_cell(config(), tmp_path, overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_cannot_be_built_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="window_size"):
        run_cell(config(stream={"window_size": 500}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_run_json_is_json(finished: RunFolder) -> None:
    text = (finished.path / "run.json").read_text(encoding="utf-8")
    assert json.loads(text)["format"] == 3
    assert str(finished.path.parent) not in text


OWN = (
    "from cilf.learners import IForest\n"
    "class Mine(IForest):\n"
    "    name = 'mine'\n"
    "    def __init__(self, *, seed=0, n_estimators=8, max_samples=60):\n"
    "        super().__init__(seed=seed, n_estimators=n_estimators, max_samples=max_samples)\n"
)


def test_a_learner_in_a_file_is_resumed_while_the_file_is_the_same(tmp_path: Path) -> None:
    file, moved, out = tmp_path / "mine.py", tmp_path / "moved.py", tmp_path / "run"
    file.write_text(OWN, encoding="utf-8")
    own = {"learner": f"{file}:Mine", "parameters": {}}
    assert config(**own).title == "mine-digits-multiple-seed0"
    next(run_cell(config(**own), out))
    run = RunFolder(out).read_run()
    assert (run["learner"], run["learner_path"]) == ("mine", f"{file}:Mine")
    assert len(run["learner_digest"]) == 64
    file.rename(moved)
    own["learner"] = f"{moved}:Mine"
    assert windows(run_cell(config(**own), out, resume=True)) == [1, 2]
    moved.write_text(OWN + "# changed\n", encoding="utf-8")
    with pytest.raises(BadConfig, match=r"learner_digest is '\w+' now and '\w+' in that run"):
        run_cell(config(**own), out, resume=True)


def test_one_command_at_a_time_runs_in_a_folder(tmp_path: Path) -> None:
    records = run_cell(config(), tmp_path / "run")
    first = next(records)
    for options in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(BadInput, match=r"another command is changing .*run \(process \d+ on"):
            run_cell(config(), tmp_path / "run", **options)
    assert [first, *records] == RunFolder(tmp_path / "run").read_records()
