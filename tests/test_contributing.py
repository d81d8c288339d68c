"""What CONTRIBUTING.md says, done to the letter."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.clustering.class_count import COUNT_RULES
from cilf.console.app import make_app
from cilf.console.guard import Access
from cilf.console.service import Console
from cilf.console.state import OPEN, REJECTED, State
from cilf.console.store import Store
from cilf.console.verbs import VERBS, Context
from cilf.evaluate import METRICS, RunFolder, find_runs

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILE = "nearest_mean.py"
TABLES: list[dict[str, Any]] = [COUNT_RULES, METRICS, VERBS]


def blocks(kind: str, section: str) -> list[str]:
    """The fenced blocks of this kind in a section."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{kind}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def register(section: str) -> None:
    """Run the example of a section, which adds a line to a table."""
    (example,) = blocks("python", section)
    exec(example, {"__name__": __name__})


@pytest.fixture
def tables() -> Iterator[None]:
    """Remove what an example adds to a table."""
    before = [(table, dict(table)) for table in TABLES]
    yield
    for table, lines in before:
        table.clear()
        table.update(lines)


def test_every_package_has_a_layer() -> None:
    layers = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    source = ROOT / "src" / "cilf"
    packages = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    assert packages | {"errors"} == set(layers)


def test_paths_it_names_exist() -> None:
    paths = re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", PAGE)
    assert [path for path in paths if "a/b.py" not in path and not (ROOT / path).exists()] == [
        "tests/a/test_b.py"
    ]


def test_the_learner_it_shows_is_checked_run_resumed_reported_and_loaded(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, check, load = blocks("python", "Add a learner")
    assert len(learner.splitlines()) < 60
    Path(FILE).write_text(learner, encoding="utf-8")
    (grid,) = blocks("toml", "Add a learner")
    Path(grid.partition("\n")[0].removeprefix("# ")).write_text(grid, encoding="utf-8")
    monkeypatch.syspath_prepend(".")
    exec(check, {})
    for command in "".join(blocks("sh", "Add a learner")).splitlines():
        program, *arguments = shlex.split(command)
        done = run(*arguments)
        assert (program, done.code) == ("cilf", 0), done.err
    about = RunFolder.open("runs/mine").read_run()
    assert (about["learner"], about["learner_path"]) == ("nearest-mean", f"{FILE}:NearestMean")
    assert len(about["resumed"]) == 1
    names: dict[str, Any] = {}
    exec(load, names)
    assert len(names["learner"].classes_) == 10
    assert len(RunFolder.open("runs/mine").read_records()) == int(names["newest"].name)
    assert len(find_runs("runs/compared")) == 4
    rows = Path("runs/paper/table4.md").read_text(encoding="utf-8").splitlines()
    assert sum("| nearest-mean" in row for row in rows) == 1
    assert RunFolder.open("runs/wide").read_run()["parameters"]["reach"] == 0.99


@pytest.mark.usefixtures("tables")
def test_the_metric_it_shows_is_in_records_summaries_and_tables(run: Any) -> None:
    register("Add a metric")
    command = ("run", "--learner", "iforest", "--data", "digits", "--out", "runs/mine")
    done = run(*command, "--set", "stream.n_windows=1", "--json")
    (record,) = RunFolder.open("runs/mine").read_records()
    value = record.extra["novel_precision"]
    assert 0 < value < 1
    assert json.loads(done.out)["summary"]["novel_precision"] == value
    run("report", "runs/mine")
    head, _, row = Path("runs/mine/windows.md").read_text(encoding="utf-8").splitlines()[2:]
    assert head.split(" | ").index("novel precision") == row.split(" | ").index(f"{value:.3f}")


@pytest.mark.usefixtures("tables")
def test_the_counting_rule_it_shows_is_a_choice_of_the_detector(run: Any) -> None:
    register("Add a counting rule")
    command = ("run", "--data", "digits", "--set", "epochs=1", "--set", "stream.n_windows=1")
    rule = ("--set", "detector.count=within-margin", "--set", "detector.count.margin=0.1")
    done = run(*command, *rule, "--out", "runs/mine")
    assert done.code == 0, done.err
    detector = RunFolder.open("runs/mine").read_run()["parameters"]["detector"]
    assert detector["count"] == {"name": "within-margin", "margin": 0.1}
    misspelt = run(*command, "--set", "detector.count=within-margins", "--out", "runs/none")
    assert "did you mean 'within-margin'?" in misspelt.err


@pytest.mark.usefixtures("tables")
def test_the_verb_it_shows_is_in_the_rest_schema_and_does_what_it_says(tmp_path: Path) -> None:
    register("Add a verb of the console")
    store = Store(tmp_path)
    schema = make_app(Console(store, tmp_path / "model"), Access()).openapi()
    store.close()
    route = schema["paths"]["/api/windows/{window}/keep"]["post"]
    assert route["description"] == "Reject every other cluster."
    state = State(np.array([0, 0, 1, 2, -1]))
    verb = VERBS["keep"]
    state.apply(verb.function(Context(state, np.zeros((5, 2))), verb.body(clusters=[2])))
    assert [cluster.status for cluster in state.clusters.values()] == [REJECTED, OPEN, REJECTED]
