from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cilf.core import WindowRecord
from cilf.data import load_dataset
from cilf.errors import BadConfig, BadInput
from cilf.evaluate import RunFolder, checkpoint, run_stream
from cilf.evaluate.checkpoint import first_difference
from cilf.learners import CILF, Learner
from cilf.learners.cilf import Detector
from cilf.learners.iforest import IForest
from cilf.stream import Stream, multiple_novel


class Crash(BaseException):
    """Stands for a kill: nothing in the code may catch it."""


def forest(**parameters: Any) -> IForest:
    return IForest(n_estimators=8, max_samples=40).set_params(**parameters)


def untimed(records: list[WindowRecord]) -> list[str]:
    """Records but for seconds, as text, in which NaN equals NaN."""
    return [str(dataclasses.replace(r, seconds_detect=0.0, seconds_update=0.0)) for r in records]


def crash_at(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, *, after: bool
) -> None:
    """Have the n-th call of a function crash, before or after its work."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def crashing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            raise Crash
        result = original(*args, **kwargs)
        if calls == call:
            raise Crash
        return result

    monkeypatch.setattr(owner, name, crashing)


@pytest.fixture(scope="module")
def uninterrupted(stream: Stream) -> list[str]:
    return untimed(list(run_stream(forest(), stream, query=0.5)))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (IForest, "fit", 1),
        (IForest, "detect", 2),
        (IForest, "update", 3),
        (RunFolder, "append_record", 1),
        (RunFolder, "append_record", 4),
        (IForest, "save", 1),
        (IForest, "save", 3),
        (checkpoint.shutil, "rmtree", 2),
    ],
)
def test_a_crash_at_any_point_changes_no_record(
    stream: Stream, tmp_path: Path, uninterrupted: list[str],
    owner: Any, name: str, call: int, after: bool,
) -> None:  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, owner, name, call, after=after)
        with pytest.raises(Crash):
            list(run_stream(forest(), stream, query=0.5, resume=tmp_path))
    assert untimed(list(run_stream(forest(), stream, 0.5, resume=tmp_path))) == uninterrupted
    assert untimed(RunFolder(tmp_path).read_records()) == uninterrupted
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["004"]


def test_files_cut_short_are_done_again(
    stream: Stream, tmp_path: Path, uninterrupted: list[str]
) -> None:
    records = run_stream(forest(), stream, query=0.5, resume=tmp_path)
    next(records), next(records)
    del records
    with (tmp_path / "records.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"window": 3, "n_kno')
    half = tmp_path / "checkpoint" / "003"
    half.mkdir()
    (half / "0123456789abcdef.safetensors").write_bytes(b"half")
    assert untimed(list(run_stream(forest(), stream, 0.5, resume=tmp_path))) == uninterrupted


def test_a_network_goes_on_exactly(stream: Stream, tmp_path: Path) -> None:
    def quick() -> Learner:
        return CILF(width=4, epochs=2, update_epochs=1, memory_size=60, detector=Detector(k_max=3))

    whole = untimed(list(run_stream(quick(), stream)))
    records = run_stream(quick(), stream, resume=tmp_path)
    next(records), next(records)
    del records
    assert untimed(list(run_stream(quick(), stream, resume=tmp_path))) == whole


@pytest.mark.parametrize(
    "policy", [{"query": "self"}, {"query": 4, "strategy": "mixed", "propagate": 0.6}]
)
@pytest.mark.parametrize("n_done", [1, 2, 3])
def test_names_go_on_where_they_were(
    stream: Stream, tmp_path: Path, policy: dict[str, Any], n_done: int
) -> None:
    whole = untimed(list(run_stream(forest(), stream, **policy)))
    records = run_stream(forest(), stream, resume=tmp_path, **policy)
    for _ in range(n_done):
        next(records)
    del records
    assert untimed(list(run_stream(forest(), stream, resume=tmp_path, **policy))) == whole


def test_a_finished_run_only_reads(stream: Stream, tmp_path: Path) -> None:
    first = list(run_stream(forest(), stream, resume=tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, IForest, "detect", 1, after=False)
        again = list(run_stream(forest(), stream, resume=tmp_path))
    assert [str(r) for r in again] == [str(r) for r in first]  # seconds and all


def test_the_first_difference_is_named_with_its_path() -> None:
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 1}}) is None
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}) == ("a.c", None, 2)
    assert first_difference({"a": 1}, {"a": {"b": 1}}) == ("a", 1, {"b": 1})


def test_one_label_of_each_cluster_is_not_all_labels() -> None:
    assert first_difference({"query": 1}, {"query": 1.0}) == ("query", 1, 1.0)
    assert first_difference({"lr": 1}, {"lr": 1.0}) is None


def test_other_parameters_are_refused(stream: Stream, tmp_path: Path) -> None:
    next(run_stream(forest(memory_size=50), stream, resume=tmp_path))
    with pytest.raises(BadConfig, match=r"parameters\.memory_size is 60 now and 50 in that run"):
        next(run_stream(forest(memory_size=60), stream, resume=tmp_path))


def test_another_learner_is_refused(stream: Stream, tmp_path: Path) -> None:
    next(run_stream(forest(), stream, resume=tmp_path))
    with pytest.raises(BadConfig, match="learner is 'cilf' now and 'iforest' in that run"):
        next(run_stream(CILF(), stream, resume=tmp_path))


def test_records_and_checkpoint_must_agree(stream: Stream, tmp_path: Path) -> None:
    records = run_stream(forest(), stream, resume=tmp_path)
    next(records), next(records)
    del records
    folder = RunFolder(tmp_path)
    kept = folder.read_records()
    folder.write_records(kept[:1])
    with pytest.raises(BadInput, match="has 1 records, but a checkpoint after 2 windows"):
        next(run_stream(forest(), stream, resume=tmp_path))


def test_records_without_a_checkpoint_are_not_thrown_away(
    stream: Stream, tmp_path: Path, uninterrupted: list[str]
) -> None:
    list(run_stream(forest(), stream, query=0.5, resume=tmp_path))
    (tmp_path / "checkpoint").rename(tmp_path / "moved")
    with pytest.raises(BadInput, match="no checkpoint"):
        next(run_stream(forest(), stream, query=0.5, resume=tmp_path))
    assert untimed(RunFolder(tmp_path).read_records()) == uninterrupted


def test_another_stream_is_refused(stream: Stream, tmp_path: Path) -> None:
    next(run_stream(forest(), stream, resume=tmp_path))
    with pytest.raises(BadConfig, match=r"plan\.\w+ is"):
        run_stream(forest(), multiple_novel(load_dataset("digits")), resume=tmp_path)


def test_a_folder_to_resume_is_a_run_folder(stream: Stream, tmp_path: Path) -> None:
    next(run_stream(forest(), stream, resume=tmp_path))
    run = RunFolder.open(tmp_path).read_run()
    assert (run["learner"], run["query"]) == ("iforest", 1.0)
    assert run["plan"] == json.loads(json.dumps(stream.describe()))


def test_a_run_of_another_query_is_not_resumed(tmp_path: Path, stream: Stream) -> None:
    next(run_stream(forest(), stream, query=0.5, resume=tmp_path / "run"))
    for change, named in (({"query": 1}, "query is 1"), ({"query": 0.2}, "query is 0.2")):
        with pytest.raises(BadConfig, match=named):
            next(run_stream(forest(), stream, **change, resume=tmp_path / "run"))
    with pytest.raises(BadConfig, match="strategy is 'mixed' now and 'random' in"):
        next(run_stream(forest(), stream, query=0.5, strategy="mixed", resume=tmp_path / "run"))
    assert len(list(run_stream(forest(), stream, query=0.5, resume=tmp_path / "run"))) > 1


def test_a_name_of_its_own_that_was_changed_is_not_made_up_again(stream: Stream) -> None:
    learner = forest()
    seen: list[str] = []
    for _ in run_stream(learner, stream, query="self"):
        new = [name for name in learner.classes_.tolist() if name.startswith("novel-")]
        assert not set(new) & set(seen)
        seen += new
        learner.rename({name: f"class {name}" for name in new})
    assert len(seen) > 1
