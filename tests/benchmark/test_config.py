from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.benchmark import RunConfig
from cilf.benchmark.config import parse_changes, parse_query
from cilf.benchmark.scales import setting
from cilf.data import load_dataset
from cilf.errors import BadConfig
from cilf.learners.cilf import CurriculumDetector

NAMES = {"learner": "iforest", "data": "digits", "scenario": "multiple"}


def config(**values: Any) -> RunConfig:
    return RunConfig.of(**(NAMES | values))


def test_a_learner_takes_the_seed_the_scale_and_the_changes_in_that_order() -> None:
    assert config(seed=4).make_learner().get_params()["seed"] == 4
    assert config().make_learner().get_params()["memory_size"] == 100
    changed = config(seed=4, parameters={"seed": 5, "memory_size": 70}).make_learner()
    assert (changed.seed, changed.get_params()["memory_size"]) == (5, 70)


def test_a_learner_without_epochs_takes_no_epochs() -> None:
    assert "epochs" in setting("cpu", "mnist").learner
    learner = config(scale="cpu").make_learner()
    assert learner.get_params()["memory_size"] == 1000


def test_stream_arguments_are_complete() -> None:
    arguments = config(stream={"n_quiet": 2}).stream_arguments()
    assert arguments["n_quiet"] == 2
    assert arguments["vanishing"] == 0.1
    assert arguments["max_novel"] == 3
    assert arguments["window_size"] is None
    assert "max_novel" not in config(scenario="single").stream_arguments()
    assert not {"dataset", "seed"} & set(arguments)


@pytest.mark.parametrize("scenario", ["single", "multiple"])
def test_digits_suffice_for_every_scenario_and_quiet_windows(scenario: str) -> None:
    dataset = load_dataset("digits")
    for seed in range(10):
        stream = config(scenario=scenario, seed=seed, stream={"n_quiet": 2}).make_stream(dataset)
        assert len(set(stream.plan.arrivals)) == 10  # every class comes
        assert min(len(window.y) for window in stream) >= 10 * 3


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"learner": "ifores"}, "did you mean 'iforest'"),
        ({"scenario": "multi"}, "did you mean 'multiple'"),
        ({"scale": "smok"}, "did you mean 'smoke'"),
        ({"parameters": {"memory": 3}}, "parameter of 'iforest' 'memory': did you mean"),
        (
            {"learner": "odin-cnn", "parameters": {"training.batch": 3}},
            "parameter of 'training' of 'odin-cnn' 'batch': did you mean 'batch_size'",
        ),
        ({"stream": {"quiet": 1}}, "argument of the stream 'quiet': did you mean 'n_quiet'"),
        ({"seed": -1}, "seed is -1"),
        ({"query": 2.0}, "query is 2.0"),
        ({"query": True}, "query is True"),
        ({"query": "all"}, "query is 'all'"),
        ({"strategy": "mixt"}, "did you mean 'mixed'"),
        ({"strategy": None}, "unknown strategy None"),
        ({"propagate": True}, "propagate is True"),
        ({"n_novel": "tru"}, "n_novel"),
        ({"colour": "red"}, "colour is 'red'"),
    ],
)
def test_what_is_unknown_is_answered_in_one_line(values: dict[str, Any], said: str) -> None:
    with pytest.raises(BadConfig, match=said) as caught:
        config(**values)
    assert "\n" not in str(caught.value)


def test_an_unknown_data_set_is_answered() -> None:
    with pytest.raises(BadConfig, match="did you mean 'digits'"):
        load_dataset(config(data="digit").data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=5", 5), ("a=1e-3", 0.001), ("a=true", True), ("a=False", False), ("a=None", None),
        ("a=null", None), ("a=auto", "auto"), ('a="5"', "5"), ("a=[1, 2]", [1, 2]),
        ("a = 5", 5), ("a=x=y", "x=y"), ("a=", ""), ("a=NaN", "NaN"),
    ],
)  # fmt: skip
def test_values_are_read_as_people_write_them(text: str, value: Any) -> None:
    parameters, stream = parse_changes([text])
    assert parameters == {"a": value}
    assert type(parameters["a"]) is type(value)
    assert stream == {}


@pytest.mark.parametrize("text", ["epochs", "=5", ""])
def test_a_change_without_a_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(BadConfig, match="write name=value"):
        parse_changes([text])


def test_changes_are_read_back_as_they_were() -> None:
    given = config(
        parameters={"memory_size": 9, "contamination": "auto", "max_samples": "5"},
        stream={"n_windows": None},
    )
    assert parse_changes(given.changes()) == (given.parameters, given.stream)
    nested = config(learner="odin-cnn", parameters={"training": {"clip": None}})
    assert nested.changes() == ["training.clip=null"]
    assert parse_changes(nested.changes())[0] == nested.parameters


def test_a_part_is_replaced_by_name_and_changed() -> None:
    parameters, _ = parse_changes(["detector=curriculum", "detector.gamma=0.7"])
    learner = config(learner="cilf", parameters=parameters).make_learner()
    assert learner.get_params()["detector"] == CurriculumDetector(gamma=0.7)
    stored = config(learner="cilf", parameters=parameters).resolve()["parameters"]["detector"]
    assert (stored["name"], stored["gamma"]) == ("curriculum", 0.7)
    assert stored["count"] == {"name": "curvature"}


def test_data_may_be_a_path() -> None:
    given = config(data=Path("photos") / "birds", loading={"size": 32})
    assert (given.data, given.scale) == (str(Path("photos/birds")), "cpu")
    assert given.preset_name == "own-multiple-cpu"
    assert given.model_dump()["loading"] == {"size": 32}
    assert config(data="hf:someone/birds").data == "hf:someone/birds"


@pytest.mark.parametrize("data", [None, 5, ["digits"]])
def test_data_are_text_or_a_path(data: Any) -> None:
    with pytest.raises(BadConfig, match="data is"):
        config(data=data)


def test_loading_gives_the_named_data_set() -> None:
    assert config().load().name == "digits"


@pytest.mark.parametrize("query", [0, 1, 5, 0.0, 0.2, 1.0, "self"])
def test_a_query_keeps_its_kind(query: Any) -> None:
    given = config(query=query)
    again = RunConfig.model_validate_json(given.model_dump_json())
    for kept in (given.query, given.policy.query, again.query):
        assert (kept, type(kept)) == (query, type(query))


@pytest.mark.parametrize(
    ("text", "query"),
    [("0.2", 0.2), (".5", 0.5), ("5", 5), ("1", 1), ("1.0", 1.0), ("self", "self"), ("", "")],
)
def test_a_query_is_read_as_it_is_written(text: str, query: Any) -> None:
    read = parse_query(text)
    assert (read, type(read)) == (query, type(query))


def test_a_budget_of_numpy_stays_a_budget() -> None:
    config = RunConfig.of(learner="cilf", data="digits", scenario="single", query=np.int64(3))
    assert (config.query, type(config.query)) == (3, int)
    share = RunConfig.of(learner="cilf", data="digits", scenario="single", query=np.float32(0.5))
    assert (share.query, type(share.query)) == (0.5, float)
