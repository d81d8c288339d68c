from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cilf.benchmark import SCALES, Cell
from cilf.benchmark.scales import Setting
from cilf.evaluate import RunFolder

QUICK = [
    "run", "--learner", "iforest", "--set", "n_estimators=8", "--set", "max_samples=60",
    "--set", "stream.n_windows=2", "--set", "stream.window_size=8",
]  # fmt: skip
HASTY = ["--set", "epochs=3", "--set", "update_epochs=2"]


def test_run_shows_windows_and_a_report(run: Any) -> None:
    done = run(*QUICK, "--seed", "2")
    assert done.code == 0
    out = Path("runs/iforest-digits-multiple-seed2")
    assert (out / "report.html").is_file()
    lines = done.out.split("\n")
    assert lines[1].split() == ["true", "found", "hold-out", "hold-out"]
    assert [line.split()[:2] for line in lines[4:6]] == [["1", "2"], ["2", "2"]]
    assert max(len(line) for line in lines[:9]) <= 80
    assert "K exact 0." in done.out or "K exact 1." in done.out
    assert lines[-2] == f"report: {out / 'report.html'}"
    said = done.err.splitlines()
    assert said[0] == "iforest on digits: 3 initial classes, 2 windows"
    assert said[1].startswith("window 1 of 2: 2 novel classes")


def test_json_is_the_only_thing_on_standard_output(run: Any) -> None:
    done = run(*QUICK, "--out", "here", "--json")
    document = json.loads(done.out)
    assert [record["window"] for record in document["records"]] == [1, 2]
    assert document["records"] == [r.to_json() for r in RunFolder(Path("here")).read_records()]
    assert document["summary"]["n_windows"] == 2
    assert document["run"]["parameters"]["max_samples"] == 60
    assert (document["out"], document["report"]) == ("here", "here/report.html")
    assert "window 2 of 2" in done.err


def test_undefined_numbers_are_null(run: Any) -> None:
    done = run(*QUICK, "--json", "--set", "stream.n_windows=1", "--set", "stream.n_quiet=60")
    document = json.loads(done.out)
    assert document["records"][0]["n_novel_true"] == 0
    assert document["records"][0]["auroc"] is document["summary"]["auroc"] is None


def test_options_reach_the_run(run: Any) -> None:
    done = run(*QUICK, "--query", "0", "--n-novel", "true", "--scenario", "single", "--json")
    document = json.loads(done.out)
    assert [r["n_queried"] for r in document["records"]] == [0, 0]
    assert [r["n_novel_found"] for r in document["records"]] == [1, 2]  # nothing was learned
    assert document["run"]["n_novel"] == "true"
    assert json.loads(run(*QUICK, "--n-novel", "1", "--json").out)["run"]["n_novel"] == 1


@pytest.mark.parametrize(
    ("text", "query"), [("0.2", 0.2), ("5", 5), ("1.0", 1.0), ("1", 1), ("self", "self")]
)
def test_a_point_tells_a_share_from_a_budget(run: Any, text: str, query: Any) -> None:
    document = json.loads(run(*QUICK, "--query", text, "--json").out)
    kept = document["run"]["query"]
    assert (kept, type(kept)) == (query, type(query))
    assert (document["run"]["strategy"], document["run"]["propagate"]) == ("random", None)
    if query == 1 and isinstance(query, int):
        found = [r["n_novel_found"] for r in document["records"]]
        assert [r["n_queried"] for r in document["records"]] == found


def test_query_options_reach_the_run_its_report_and_the_terminal(run: Any) -> None:
    options = ("--query", "4", "--strategy", "mixed", "--propagate", "0.5", "--out", "here")
    done = run(*QUICK, *options)
    assert done.code == 0
    about = RunFolder(Path("here")).read_run()
    assert (about["strategy"], about["propagate"]) == ("mixed", 0.5)
    total = sum(r.n_propagated for r in RunFolder(Path("here")).read_records())
    assert total > 0
    assert f"{total} propagated (" in done.out
    page = (Path("here") / "report.html").read_text(encoding="utf-8")
    assert "--query 4 --strategy mixed --propagate 0.5" in page
    assert "propagated" in page
    again = run(*QUICK, *options, "--resume", "--json")
    assert sum(r["n_propagated"] for r in json.loads(again.out)["records"]) == total


def test_a_run_that_queries_nobody_says_so(run: Any) -> None:
    done = run(*QUICK, "--query", "self", "--out", "here")
    assert done.code == 0
    assert "0 labels queried, " in done.out
    page = (Path("here") / "report.html").read_text(encoding="utf-8")
    assert "It queried no label and named" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--learner", "iforrest"], "did you mean 'iforest'"),
        (["run", "--data", "digit"], "did you mean 'digits'"),
        (["run", "--set", "epoch=3"], "did you mean 'epochs'"),
        (["run", "--set", "stream.quiet=3"], "did you mean 'n_quiet'"),
        (["run", "--set", "epochs"], "write name=value"),
        (["run", "--n-novel", "many"], "n_novel is 'many': give a whole number, 'true' or None"),
        (["run", "--n-novel", "-1"], "n_novel is -1: give a whole number of at least 0"),
        (["run", "--seed", "-1"], "seed is -1: give a whole number of at least 0"),
        (["run", "--query", "nan"], "query is nan: give a share from 0.0 to 1.0"),
        (["run", "--query", "1.5"], "query is 1.5: give a share from 0.0 to 1.0"),
        (["run", "--query", "-2"], "query is -2: give a share"),
        (["run", "--query", "all"], "query is 'all': give a share"),
        (["run", "--strategy", "mixd"], "unknown strategy 'mixd': did you mean 'mixed'"),
        (["run", "--propagate", "2"], "propagate is 2.0: give a number from 0 to 1"),
        (["run", "--propagate", "0.8", "--query", "self"], "there are no answers to propagate"),
        (["run", "--propagate", "0.8", "--query", "2"], "a cluster needs 3 answers"),
        (["run", "--strategy", "mixed", "--query", "self"], "nobody is queried then"),
        (["run", "--out", f"{__file__}/inside"], "name another folder"),
        (["run", "--seed", "x"], "--seed"),
        (["run", "--sed", "1"], "--seed"),
        (["run", "--resume", "--overwrite"], "give one of them"),
        (["rum"], "Did you mean 'run'"),
        (["report"], "DIR"),
        (["report", "nowhere"], "holds no run"),
    ],
)
def test_a_user_s_mistake_costs_one_line(run: Any, arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert said in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert not Path("runs").exists()


def test_a_bad_parameter_is_found_by_the_learner(run: Any) -> None:
    done = run(*QUICK, "--set", "n_estimators=none")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("error: n_estimators is None")
    assert "Traceback" not in done.err
    assert run(*QUICK).code == 0  # the folder is still free


def test_an_older_run_is_kept_unless_told(run: Any) -> None:
    assert run(*QUICK).code == 0
    refused = run(*QUICK)
    assert refused.code == 2
    assert "--resume" in refused.err
    assert run(*QUICK, "--resume").code == 0
    assert run(*QUICK, "--overwrite").code == 0


def test_anything_else_leaves_a_traceback_and_exit_code_1(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cell, "build", lambda config: 1 / 0)
    done = run(*QUICK)
    assert done.code == 1
    assert "ZeroDivisionError" in done.err


def test_a_missing_extra_costs_the_report_only(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run(*QUICK)
    assert done.code == 0
    assert "pip install 'cilf[report]'" in done.err
    assert done.out.splitlines()[-1] == "run: runs/iforest-digits-multiple-seed0"


def test_report_writes_the_page_again(run: Any) -> None:
    run(*QUICK, "--out", "here")
    Path("here/report.html").unlink()
    done = run("report", "here")
    assert (done.code, done.out) == (0, "here/report.html\n")
    assert Path("here/report.html").is_file()
    assert json.loads(run("report", "here", "--json").out) == {"report": "here/report.html"}


def test_the_demo_replaces_itself_but_no_other_run(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = {"width": 4, "epochs": 1, "update_epochs": 1, "detector__k_max": 3}
    monkeypatch.setitem(SCALES["smoke"], "digits", Setting({"window_size": 6}, hasty))
    for _ in range(2):
        done = run("demo")
        assert done.code == 0
        assert done.out.splitlines()[-1] == "report: runs/demo/report.html"
    plan = RunFolder.open("runs/demo").read_run()["plan"]
    assert [] in [window["novel"] for window in plan["windows"]]
    run(*QUICK, "--out", "mine")
    refused = run("demo", "--out", "mine")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert RunFolder.open("mine").read_run()["learner"] == "iforest"


def test_a_run_on_a_folder_of_images(run: Any, folder: Path) -> None:
    done = run("run", "--learner", "cilf", "--data", str(folder), "--scenario", "single", *HASTY)
    assert done.code == 0, done.err
    out = RunFolder.open("runs/cilf-shots-single-seed0")
    about = out.read_run()
    assert about["dataset"]["train_rows"] + about["dataset"]["test_rows"] == 400
    assert about["dataset"]["instance_shape"] == [8, 8]
    snapshot = out.read_snapshot(1)
    assert snapshot is not None
    assert all((folder / str(name)).is_file() for name in snapshot.ids)
    assert {str(label).split()[0] for label in snapshot.truth} == {"digit"}


def test_a_run_on_a_table_of_features(run: Any, table: Path) -> None:
    done = run(
        "run", "--learner", "cilf", "--data", str(table), "--label", "digit",
        "--scenario", "single", "--out", "here", *HASTY,
    )  # fmt: skip
    assert done.code == 0, done.err
    about = RunFolder.open("here").read_run()
    assert about["dataset"]["instance_shape"] == [64]
    assert about["loading"] == {"label": "digit"}
    snapshot = RunFolder.open("here").read_snapshot(1)
    assert snapshot is not None
    assert all(str(name).startswith("pixels.csv:") for name in snapshot.ids)


def test_a_column_that_has_to_be_named(run: Any, table: Path) -> None:
    done = run("run", "--data", str(table))
    assert done.code == 2
    assert "no column that looks like a label" in done.err
    assert "--label" in done.err


def test_a_run_on_texts(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    phrases = {
        "cooking": "stir the soup with {} and salt",
        "football": "the striker scored {} goals in the match",
        "weather": "rain and wind are expected for {} days",
    }
    rows = [
        f"{phrase.format(number)},{topic}"
        for topic, phrase in phrases.items()
        for number in range(2, 32)
    ]
    (tmp_path / "notes.csv").write_text("\n".join(["text,label", *rows]))
    done = run("run", "--data", "notes.csv", "--scenario", "single", "--out", "here", *HASTY)
    assert done.code == 0, done.err
    assert "texts are embedded by minilm" in done.err
    folder = RunFolder.open("here")
    assert folder.read_run()["features"] == "minilm"
    snapshot = folder.read_snapshot(1)
    assert snapshot is not None
    assert set(snapshot.texts.tolist()) <= {row.partition(",")[0] for row in rows}
    assert str(snapshot.texts[0]) in (folder.path / "report.html").read_text()


def test_auto_says_which_network_photographs_are_seen_through(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    rng = np.random.default_rng(0)
    for name, colour in {
        "red": (220, 40, 40),
        "green": (40, 200, 60),
        "blue": (40, 60, 220),
    }.items():
        (tmp_path / "shots" / name).mkdir(parents=True)
        for i in range(16):
            noisy = np.clip(rng.normal(colour, 25, (16, 16, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(tmp_path / "shots" / name / f"{i}.png")
    arguments = ["run", "--data", "shots", "--scenario", "single", "--scale", "smoke", *HASTY]
    auto = run(*arguments, "--out", "auto")
    assert auto.code == 0, auto.err
    assert "colour images are embedded by efficientnet-lite2" in auto.err
    about = RunFolder.open("auto").read_run()
    assert about["features"] == about["frozen_network"] == "efficientnet-lite2"
    assert "efficientnet-lite2 (pre-trained, frozen)" in Path("auto/report.html").read_text()
    scratch = run(*arguments, "--out", "scratch", "--set", "backbone=convnet")
    assert scratch.code == 0, scratch.err
    assert "efficientnet" not in scratch.err
    assert RunFolder.open("scratch").read_run()["features"] is None
