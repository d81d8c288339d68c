"""``cilf paper`` on little data: files, and nothing twice."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from cilf.benchmark.bench import CELLS
from cilf.cli import main
from cilf.report import Table, write_report


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["paper", *arguments])
    return int(ended.value.code or 0)


def test_tables_and_figures_of_few_runs(
    few_digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper"
    few = [
        "--data",
        str(few_digits),
        "--learner",
        "iforest",
        "--learner",
        "one-svm",
        "--out",
        str(out),
    ]
    assert run("table2", "figure4", "figure6", *few, "--jobs", "1") == 0
    assert "table2" in capsys.readouterr().out
    rows = list(csv.DictReader((out / "table2.csv").read_text().splitlines()))
    assert len(rows) == 7 * 5  # metrics, two rows of each learner, and the floor
    assert all(0 <= float(row["mean"]) <= 1 for row in rows)
    table = Table.from_json((out / "table2.json").read_text())
    assert len(table.rows) == 5
    assert table.bold == frozenset()  # of one seed
    for name in ("figure4-few-single", "figure6"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}.svg").read_text().startswith("<?xml")
    page = write_report(out).read_text()
    assert "Table 2. Novel class detection" in page
    assert page.count("data:image/png;base64") >= 3
    assert all((cell / "report.html").exists() for cell in (out / CELLS).iterdir())


def test_what_is_there_is_not_run_again(few_digits: Path, tmp_path: Path) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(few_digits), "--learner", "iforest", "--out", str(out), "--jobs", "1"]
    assert run("table2", *few) == 0
    cells = sorted((out / CELLS).iterdir())
    before = [(cell / "records.jsonl").stat().st_mtime_ns for cell in cells]
    assert run("figure6", *few, "--json") == 0
    assert cells == sorted((out / CELLS).iterdir())
    assert [(cell / "records.jsonl").stat().st_mtime_ns for cell in cells] == before
    assert set(json.loads((out / "paper.json").read_text())["items"]) == {"table2", "figure6"}
    assert run("table2", *few, "--seed", "0", "--seed", "1", "--plot") == 0
    assert cells == sorted((out / CELLS).iterdir())


def test_unknown_names_are_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tabel2") == 2
    assert "did you mean 'table2'" in capsys.readouterr().err
    assert run("table2", "--learner", "clif") == 2
    assert "did you mean 'cilf'" in capsys.readouterr().err
    assert run("table2", "--scale", "huge") == 2
    assert "unknown scale 'huge'" in capsys.readouterr().err


TALKS = """\
from cilf.learners import IForest

print("hello")

class Talks(IForest):
    name = "talks"

    def _fit(self, X, y):
        print("fitting")
        super()._fit(X, y)
"""


def test_json_is_alone_on_standard_output(
    few_digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "talks.py"
    file.write_text(TALKS, encoding="utf-8")
    mine = ["--learner", "iforest", "--learner", f"{file}:Talks"]
    out = tmp_path / "paper"
    assert run("figure2", "--data", str(few_digits), *mine, "--out", str(out), "--json") == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["failed"], document["items"]["figure2"]["n_missing"]) == ({}, 0)
    assert "1 models to fit besides the cells; expected time unknown" in told.err
    assert "fitting" in told.err
    # Kept by what the file is: snapshot fits nothing, and a changed file is another model.
    (kept,) = (out / "maps").iterdir()
    assert run("figure2", "--data", str(few_digits), *mine, "--out", str(out)) == 0
    assert "fitting" not in capsys.readouterr().err
    file.write_text(TALKS.replace("hello", "other"), encoding="utf-8")
    assert run("figure2", "--data", str(few_digits), *mine, "--out", str(out), "--plot") == 0
    assert "no finished run" in capsys.readouterr().out
    assert [kept] == list((out / "maps").iterdir())


def test_items_without_any_of_the_chosen_learners_show_nothing(
    few_digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(few_digits), "--learner", "dnn-ewc", "--out", str(out)]
    assert run("figure2", "figure6", "figure10", "figure11", *few, "--jobs", "1") == 0
    told = capsys.readouterr()
    assert told.out.count("no finished run") == 4
    assert "0 cells" in told.err


def test_drawing_alone_makes_a_folder_that_is_known_and_reported(
    few_digits: Path, tmp_path: Path
) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(few_digits), "--out", str(out)]
    assert run("figure4", *few, "--plot") == 0
    assert run("figure4", *few, "--jobs", "1") == 0
    page = write_report(out).read_text()
    assert "Figure 4. Which class comes when" in page
    assert "Overview" not in page


def test_a_dry_run_of_own_data_forecasts_the_time_and_does_nothing(
    few_digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper"
    few = ["--data", str(few_digits), "--learner", "cpe", "--out", str(out), "--jobs", "2"]
    assert run("table2", "figure2", *few, "--dry-run") == 0
    told = capsys.readouterr()
    assert told.out.startswith("3 cells, 0 of them done already; 3 to run, 2 at once, expected")
    assert "images/s" in told.out
    assert "1 models to fit besides the cells; expected time at most" in told.err
    assert run("table2", *few, "--engine", "ray", "--scale", "paper", "--dry-run", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["expected_seconds"] > 0
    assert document["speeds"][0]["device"] in ("cpu", "cuda", "cuda:0")
    assert not out.exists()
