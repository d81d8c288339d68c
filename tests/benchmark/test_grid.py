from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark import Grid, RunConfig, read_grid
from cilf.benchmark.grid import cell_key
from cilf.errors import BadConfig, BadInput
from cilf.nn.training import Training

BASE = {"learner": ["iforest", "one-svm"], "data": "digits", "seed": [0, 1]}


def configs(**changes: Any) -> list[RunConfig]:
    return [cell.config for cell in Grid.of(BASE | changes).cells()]


def test_a_grid_is_every_combination_in_order() -> None:
    found = configs(scenario=["single", "multiple"])
    names = [(c.scenario, c.learner, c.seed) for c in found]
    assert names == [
        (scenario, learner, seed)
        for scenario in ("single", "multiple")
        for learner in ("iforest", "one-svm")
        for seed in (0, 1)
    ]
    assert {(c.data, c.scale, c.query) for c in found} == {("digits", "smoke", 1.0)}


def test_settings_may_be_lists_too() -> None:
    found = configs(learner="iforest", seed=0, query=[1, 1.0, "self"], n_novel=["none", "true"])
    assert [(c.query, type(c.query), c.n_novel) for c in found] == [
        (query, type(query), n_novel) for query in (1, 1.0, "self") for n_novel in (None, "true")
    ]


def test_parameters_are_by_learner_and_the_stream_is_for_all() -> None:
    found = configs(parameters={"iforest": {"n_estimators": 9}}, stream={"n_quiet": 1})
    assert [c.parameters for c in found] == [{"n_estimators": 9}] * 2 + [{}] * 2
    assert {c.stream["n_quiet"] for c in found} == {1}


def test_an_override_adds_cells_where_it_applies() -> None:
    few = {"name": "few", "only": {"learner": "iforest", "seed": 1}, "query": 0.2}
    cells = Grid.of(BASE | {"override": [few]}).cells()
    assert [cell.override for cell in cells] == [None] * 4 + ["few"]
    added = cells[-1].config
    assert (added.learner, added.seed, added.query) == ("iforest", 1, 0.2)
    alone = Grid.of(BASE | {"override": [few], "plain": False}).cells()
    assert [cell.folder for cell in alone] == [cells[-1].folder]


def test_an_override_wins_and_what_it_leaves_out_stays() -> None:
    table = {
        "query": 0.5,
        "parameters": {"iforest": {"n_estimators": 9, "max_samples": 40}},
        "stream": {"n_quiet": 1},
        "plain": False,
        "override": [
            {"name": "a", "only": {"learner": "iforest"}, "parameters": {"max_samples": 50},
             "stream": {"n_windows": 2}}
        ],
    }  # fmt: skip
    first = configs(**table)[0]
    assert first.parameters == {"n_estimators": 9, "max_samples": 50}
    assert first.stream == {"n_quiet": 1, "n_windows": 2}
    assert first.query == 0.5


def test_vary_tries_every_combination() -> None:
    weights = {
        "name": "weights", "only": {"learner": "cilf"},
        "vary": {"parameters": {"loss": {"lambda1": [0.1, 1.0], "lambda2": [0.1, 1.0]}},
                 "stream": {"n_quiet": [0, 1]}},
    }  # fmt: skip
    table = {"learner": "cilf", "data": "digits", "plain": False, "override": [weights]}
    found = [cell.config for cell in Grid.of(table).cells()]
    tried = [(*c.parameters.values(), *c.stream.values()) for c in found]
    assert tried == [
        (one, two, quiet) for one in (0.1, 1.0) for two in (0.1, 1.0) for quiet in (0, 1)
    ]


def test_parameters_of_parts_are_dotted_keys() -> None:
    override = {
        "name": "parts", "parameters": {"training": {"clip": "none"}},
        "vary": {"parameters": {"training": {"batch_size": [8, 16]}}},
    }  # fmt: skip
    table = {"learner": "odin-cnn", "data": "digits", "plain": False, "override": [override],
             "parameters": {"odin-cnn": {"training": {"weight_decay": 0.5}}}}  # fmt: skip
    found = [cell.config.make_learner().get_params()["training"] for cell in Grid.of(table).cells()]
    plain = Training(weight_decay=0.5, clip=None)
    assert found == [plain.replace(batch_size=8), plain.replace(batch_size=16)]


def test_what_comes_first_in_the_file_is_run_first() -> None:
    first = {"name": "first", "only": {"seed": 1}, "query": 0.5}
    cells = Grid.of({**BASE, "learner": "iforest", "seed": [0, 1], "plain": False, "override": [
        first, {"name": "all", "query": 0.5},
    ]}).cells()  # fmt: skip
    assert [(cell.config.seed, cell.override) for cell in cells] == [(1, "first"), (0, "all")]


def test_the_same_cell_is_there_once() -> None:
    default = {"name": "spelt out", "only": {"learner": "iforest"},
               "parameters": {"n_estimators": 100}}  # fmt: skip
    cells = Grid.of(BASE | {"override": [default]}).cells()
    assert [cell.override for cell in cells] == [None] * 4


def test_the_hash_is_of_everything_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"learner": "iforest", "data": "digits", "scenario": "single"}
    plain = cell_key(RunConfig.of(**names))
    assert cell_key(RunConfig.of(**names, scale="smoke")) == plain
    others: list[dict[str, Any]] = [
        {"seed": 1}, {"query": 1}, {"query": 0.5}, {"n_novel": "true"}, {"strategy": "mixed"},
        {"scale": "cpu"}, {"parameters": {"max_samples": 40}}, {"stream": {"n_quiet": 1}},
        {"propagate": 0.8}, {"scenario": "multiple"}, {"learner": "one-svm"},
    ]  # fmt: skip
    keys = [cell_key(RunConfig.of(**(names | other))) for other in others]
    assert len({plain, *keys}) == 1 + len(others)


def test_a_file_that_changes_makes_other_cells(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "from cilf.learners import IForest\nclass Mine(IForest):\n    name = 'mine'\n"
    file.write_text(text, encoding="utf-8")
    config = RunConfig.of(learner=f"{file}:Mine", data="digits", scenario="single")
    before = cell_key(config)
    assert cell_key(config) == before
    file.write_text(text + "# changed\n", encoding="utf-8")
    assert cell_key(config) != before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learners": "cilf"}, "unknown key of the grid 'learners': did you mean 'learner'"),
        ({"learner": "iforrest"}, "did you mean 'iforest'"),
        ({"data": "digit"}, "unknown data set 'digit': did you mean 'digits'"),
        ({"scenario": "singel"}, "did you mean 'single'"),
        ({"scale": "smok"}, "did you mean 'smoke'"),
        ({"seed": []}, "seed"),
        ({"seed": "a"}, "seed.0 is 'a'"),
        ({"seed": -1}, "seed is -1"),
        ({"query": 1.5}, "query is 1.5"),
        ({"plain": "no"}, "plain is 'no'"),
        ({"plain": False}, "the grid has no cell"),
        ({"stream": {"quiet": 1}}, "did you mean 'n_quiet'"),
        ({"parameters": {"iforrest": {}}}, "unknown learner in .parameters. 'iforrest'"),
        ({"parameters": {"iforest": {"n_estimator": 3}}}, "did you mean 'n_estimators'"),
        ({"parameters": {"iforest": {"n_estimators": "none"}}}, "^n_estimators is None"),
        ({"loading": {"photos": {}}}, "unknown data set in .loading. 'photos'"),
        ({"loading": {"digits": {"lable": "x"}}}, "did you mean 'label'"),
        ({"override": [{"query": 0.5}]}, "an ..override..: name is missing"),
        ({"override": [{"name": "a"}]}, "override 'a' changes nothing"),
        ({"override": [{"name": "a", "qery": 1}]}, "key of override 'a' 'qery': did you mean 'que"),
        ({"override": [{"name": "a", "query": 1, "only": {"lerner": "x"}}]}, "did you mean 'learn"),
        ({"override": [{"name": "a", "query": 1, "only": {"learner": "cilf"}}]}, "learner in over"),
        (
            {"override": [{"name": "a", "vary": {"max_samples": [1]}}]},
            "key of override 'a', vary 'max_samples",
        ),
        ({"override": [{"name": "a", "vary": {"parameters": 3}}]}, "vary: parameters is 3"),
        (
            {"override": [{"name": "a", "parameters": {"n_estimators": 5}}]},
            "override 'a': unknown parameter of 'one-svm' .*only.learner names those it is for",
        ),
    ],
)
def test_a_mistake_is_found_before_anything_is_run(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        Grid.of(BASE | changes)


@pytest.mark.parametrize("value", [math.inf, datetime.date(2026, 1, 1)])
def test_what_cannot_be_kept_is_refused_in_one_line(value: Any) -> None:
    table = {"learner": "iforest", "data": "digits", "parameters": {"iforest": {"seed": value}}}
    with pytest.raises(BadConfig, match="cannot be kept"):
        Grid.of(table)


def test_what_has_to_be_there_is_missed() -> None:
    with pytest.raises(BadConfig, match="the grid: data is missing"):
        Grid.of({"learner": "cilf"})


def test_a_file_that_is_no_grid_costs_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_grid(tmp_path / "nowhere.toml")
    path = tmp_path / "grid.toml"
    path.write_text("learner = [", encoding="utf-8")
    with pytest.raises(BadConfig, match="is no TOML"):
        read_grid(path)
    path.write_text('learner = "clif"\ndata = "digits"\n', encoding="utf-8")
    with pytest.raises(BadConfig, match=r"grid\.toml: unknown learner 'clif'"):
        read_grid(path)
