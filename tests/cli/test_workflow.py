"""The practitioner's commands, as somebody uses them day by day."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import cilf
from cilf import workflow
from cilf.cli.terminal import UNDEFINED
from cilf.data import load_dataset
from cilf.learners import base
from cilf.nn import image_models
from cilf.nn.pretrained import Extractor

pytest.importorskip("pyarrow")

KNOWN, NEW = (0, 2, 4, 6), (3, 7)
PATIENCE = 120.0


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Folders "digits" of labelled digits and "new" of unlabelled ones, whose names tell."""
    data = load_dataset("digits")
    counts: dict[str, int] = {}
    for image, label in zip(data.train.X, data.train.y.tolist(), strict=True):
        nth = counts[label] = counts.get(label, -1) + 1
        if label in KNOWN and nth < 60:
            save(image, tmp_path / "labelled" / f"digit {label}" / f"{nth}.png")
        elif label in KNOWN + NEW and nth < 100:
            save(image, tmp_path / "new" / f"{label}-{nth}.png")
    return tmp_path


def save(image: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file, delimiter=","))


def as_a_spreadsheet_saves(table: Path, names: dict[str, str]) -> None:
    """Names in a table, and the table as some spreadsheets leave it."""
    rows = rows_of(table)
    lines = [";".join(rows[0])]
    for row in rows:
        row["name"] = names.get(row["identity"], "")
        lines += [";".join(row.values())]
    lines[3:3] = ["", ";;;;"]
    table.write_bytes("\r\n".join(lines).encode("utf-8-sig"))


def test_the_whole_story_on_a_folder_of_images(run: Any, shots: Path) -> None:
    done = run("fit", "labelled", "--out", "model", "--note", "first")
    assert done.code == 0, done.err
    assert "model: version 1, 4 classes from 192 instances" in done.out
    assert re.search(r"digit 2 +48 +16 +\d\.\d{3} \(0\.\d\d-[01]\.\d\d\) +12 +\d", done.out)
    assert re.search(r"on 64 held-out instances, [\d.]+ \([\d.-]+\) on 48 test", done.out)

    done = run("detect", "model", "new", "--out", "found")
    assert done.code == 0, done.err
    new = [row for row in rows_of(Path("found/findings.csv")) if row["cluster"]]
    truly = [row["identity"][0] in "37" for row in new]
    assert sum(truly) > 0.8 * len(new)
    assert f"found: of 360 instances {len(new)} are novel" in done.out
    assert "cilf update model found" in done.out
    for number in {row["cluster"] for row in new}:
        with Image.open(f"found/cluster-{number}.png") as sheet:
            assert sheet.size[0] > 300

    names = {row["identity"]: f"digit {row['identity'][0]}" for row in new}
    as_a_spreadsheet_saves(Path("found/findings.csv"), names)
    done = run("update", "model", "found/findings.csv", "--note", "looked at each")
    assert done.code == 0, done.err
    assert f"model: version 2, from {len(new)} labels; new classes: digit 3, digit 7" in done.out
    table = [line.split() for line in done.out.splitlines() if line.startswith(" digit ")]
    assert [row[1] for row in table] == ["0", "2", "4", "6", "3", "7"]
    assert [row[3] for row in table[-2:]] == [UNDEFINED, UNDEFINED]

    done = run("predict", "model", "new")
    predicted = {row["identity"]: row["label"] for row in csv.DictReader(done.out.splitlines())}
    right = [label == f"digit {identity[0]}" for identity, label in predicted.items()]
    assert len(right) == 360
    assert np.mean(right) > 0.9
    assert cilf.load("model").classes_.tolist() == [f"digit {d}" for d in (0, 2, 4, 6, 3, 7)]

    done = run("model", "model")
    for words in ("version 2 of 2", "6 classes", "8 x 8", "looked at each", "found/findings.csv"):
        assert words in " ".join(done.out.split()), words
    assert run("rollback", "model").out == "model: version 1 (before: 2), 4 classes\n"
    before = {
        row["label"] for row in csv.DictReader(run("predict", "model", "new").out.splitlines())
    }
    assert before == {f"digit {d}" for d in KNOWN}
    assert run("rollback", "model", "--to", "2").code == 0
    history = json.loads(run("model", "model", "--json").out)["history"]
    assert [event["event"] for event in history] == ["fit", "update", "rollback", "rollback"]
    assert history[1]["source"] == "found/findings.csv"


QUICK = ["--learner", "iforest", "--set", "contamination=0.05", "--set", "n_estimators=30"]


@pytest.fixture
def vectors(run: Any, tmp_path: Path) -> Any:
    """The command, in a folder with known.csv, new.csv, a model and what it found."""
    rng = np.random.default_rng(0)
    places = {"ant": (-6, 0, 0), "bee": (6, 0, 0), "cat": (0, 9, 9)}

    def lines(kinds: str, n: int, labelled: bool) -> list[str]:
        return [
            ",".join([*(f"{v:.3f}" for v in rng.normal(places[k], 0.5)), *[k] * labelled])
            for k in kinds.split()
            for _ in range(n)
        ]

    (tmp_path / "known.csv").write_text("\n".join(["a,b,c,kind", *lines("ant bee", 50, True)]))
    (tmp_path / "new.csv").write_text("\n".join(["a,b,c", *lines("ant bee cat", 25, False)]))
    assert run("fit", "known.csv", "--label", "kind", "--out", "model", *QUICK).code == 0
    assert run("detect", "model", "new.csv", "--out", "found").code == 0
    return run


def name_all(name: str) -> None:
    rows = rows_of(Path("found/clusters.csv"))
    lines = ["cluster,name", *(f"{row['cluster']},{name}" for row in rows)]
    Path("found/clusters.csv").write_text("\n".join(lines))


def test_a_model_shows_how_its_backbone_was_chosen(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_models, "best_installed", lambda: "efficientnet-lite2")
    blind = Extractor("efficientnet-lite2", "feed", "images", lambda X: np.ones((len(X), 4), "f4"))
    monkeypatch.setattr(base, "make_extractor", lambda name, device: blind)
    n = 400  # of which a fifth is held out
    y = np.arange(n) % 4
    X = np.random.default_rng(0).integers(0, 60, (n, 16, 16))
    X[np.arange(n), :, 4 * y] += 150
    np.savez(tmp_path / "bars.npz", X=X.astype(np.uint8), y=y)
    quick = ["--set", "epochs=2", "--set", "embedding_size=8"]
    chosen = run("fit", "bars.npz", "--out", "chosen", *quick)
    assert chosen.code == 0, chosen.err
    assert "backbone: convnet, which finds hidden classes again with H" in chosen.err
    shown = run("model", "chosen")
    assert "backbone by H on hidden classes: convnet " in shown.out
    about = json.loads(run("model", "chosen", "--json").out)
    assert about["compared_backbones"].keys() == {"convnet", "efficientnet-lite2"}
    assert about["frozen_network"] is None
    named = run("fit", "bars.npz", "--out", "named", "--backbone", "efficientnet-lite2", *quick)
    assert named.code == 0, named.err
    assert "hidden" not in named.err + run("model", "named").out
    assert json.loads(run("model", "named", "--json").out)["frozen_network"] == blind.name


def test_a_folder_may_be_called_like_a_data_set(run: Any, tmp_path: Path) -> None:
    """Only 'fit' takes data sets by name: nothing is written into a folder that is looked at."""
    (tmp_path / "digits").mkdir()
    for command in ("detect", "predict"):
        done = run(command, "model", "digits", "--out", "digits/out")
        assert "digits/out lies inside the data" in done.err
    done = run("fit", "digits", "--out", "digits/model", "--learner", "clif")
    assert "did you mean 'cilf'" in done.err


def test_json_is_the_only_thing_on_standard_output(vectors: Any) -> None:
    fitted = json.loads(vectors("fit", "known.csv", "--label", "kind", *QUICK, "--json").out)
    assert (fitted["model"], fitted["version"], fitted["n_labels"]) == ("runs/model", 1, 80)
    found = json.loads(vectors("detect", "model", "new.csv", "--json").out)
    assert found["out"] == "runs/findings"
    assert found["n_instances"] == 75
    assert found["n_clusters"] == len(found["clusters"]) >= 1
    assert sum(found["known"].values()) + found["n_novel"] == 75
    name_all("cat")
    updated = json.loads(vectors("update", "model", "found", "--json").out)
    assert (updated["version"], updated["refused"]) == (2, False)
    assert updated["new_classes"] == ["cat"]
    assert [c["label"] for c in updated["classes"]] == ["ant", "bee", "cat"]
    predicted = json.loads(vectors("predict", "model", "new.csv", "--json").out)
    assert {p["label"] for p in predicted["predictions"][50:]} == {"cat"}
    assert json.loads(vectors("model", "model", "--json").out)["current"] == 2
    checked = json.loads(vectors("model", "model", "--verify", "--json").out)["verified"]
    assert checked == {"n_files": 9, "unsealed": []}
    assert "9 files are as they were written\n" in vectors("model", "model", "--verify").out
    back = json.loads(vectors("rollback", "model", "--json").out)
    assert (back["model"], back["version"], back["before"]) == ("model", 1, 2)


def test_clusters_are_split_and_merged(vectors: Any) -> None:
    before = workflow.Findings.open("found").assignments.cluster_sizes
    n = len(before)
    done = vectors("split", "found", str(n), "--into", "3")
    assert f"found: cluster {n} is split into {n}, {n + 1}, {n + 2}" in done.out
    merged = vectors("merge-clusters", "found", str(n), str(n + 1), str(n + 2), "--json")
    assert [cluster["instances"] for cluster in json.loads(merged.out)["clusters"]] == before
    again = vectors("split", "found", str(n)).out
    assert f"cluster {n} is split into {n}, {n + 1}\n" in again
    assert "clusters 1, 2 are merged into 1" in vectors("merge-clusters", "found", "2", "1").out


def test_the_page_of_the_findings_is_named(vectors: Any) -> None:
    found = vectors("detect", "model", "new.csv", "--out", "later")
    assert "every member of every cluster: later/index.html" in found.out
    assert Path("later/index.html").is_file()


def test_history_says_what_classes_are_called_now(vectors: Any) -> None:
    name_all("cat")
    workflow.update("model", *workflow.read_labels("found"), renames={"ant": "emmet"})
    history = " ".join(vectors("model", "model").out.split())
    assert "new classes: cat; ant renamed to emmet;" in history
    assert "emmet" in vectors("predict", "model", "new.csv").out


def test_classes_are_edited(vectors: Any) -> None:
    name_all("cta")
    workflow.update("model", *workflow.read_labels("found"))
    name_all("cat")
    done = vectors("update", "model", "found")
    assert "from 0 labels" in done.out
    assert "corrected); new classes: none; cta corrected to cat;" in done.out
    predicted = json.loads(vectors("predict", "model", "new.csv", "--json").out)["predictions"]
    assert "person" in {p["source"] for p in predicted if p["label"] == "cat"}
    done = vectors("rename", "model", "ant", "emmet", "--note", "as Kim says")
    assert done.out.startswith("model: version 4, ant renamed to emmet; classes: emmet, bee, cat")
    done = vectors("merge", "model", "emmet", "bee")
    assert "version 5, bee became part of emmet; classes: emmet, cat" in done.out
    vectors("rollback", "model")
    forgotten = json.loads(vectors("forget", "model", "emmet", "--json").out)
    assert (forgotten["version"], forgotten["forgotten"]) == (6, ["emmet"])
    history = " ".join(vectors("model", "model").out.split())
    assert (
        "'emmet' was forgotten in version 6; earlier versions still hold it (1, 2, 3, 4)" in history
    )
    for event in (
        "rename: ant renamed to emmet",
        "forget: emmet was forgotten",
        "cta corrected to",
    ):
        assert event in history
    rebuilt = vectors("rebuild", "model")
    assert "model: version 7, from" in rebuilt.out
    assert rebuilt.out.rstrip().endswith("classes: bee, cat")
    done = vectors("forget", "model", "wasp")
    assert (done.code, done.out) == (2, "")
    assert "'wasp' is no class of model: its classes are 'bee', 'cat'." in done.err


def test_predictions_go_to_a_file(vectors: Any) -> None:
    done = vectors("predict", "model", "new.csv", "--out", "out/labels.csv")
    assert done.out.rstrip().endswith("labels: out/labels.csv")
    rows = rows_of(Path("out/labels.csv"))
    assert [row["identity"] for row in rows[:2]] == ["new.csv:0", "new.csv:1"]
    assert {row["label"] for row in rows} <= {"ant", "bee"}
    assert list(rows[0]) == ["identity", "label", "novelty_p", "source"]  # no probabilities
    again = vectors("predict", "model", "new.csv", "--out", "out/labels.csv")
    assert (again.code, "is there already" in again.err) == (2, True)
    net = ["--set", "epochs=3"]
    assert vectors("fit", "known.csv", "--label", "kind", "--out", "net", *net).code == 0
    done = vectors("predict", "net", "new.csv", "--out", "out/labels.csv", "--overwrite")
    assert done.code == 0
    rows = rows_of(Path("out/labels.csv"))
    assert list(rows[0]) == [
        "identity", "label", "confidence", "second", "novelty_p", "source",
    ]  # fmt: skip
    assert all(0.5 <= float(row["confidence"]) <= 1 for row in rows)
    assert all({row["label"], row["second"]} == {"ant", "bee"} for row in rows)
    told = json.loads(vectors("predict", "net", "new.csv", "--json").out)
    assert list(told["predictions"][0]) == list(rows[0])


def test_what_cannot_be_done_is_one_line_and_exit_code_2(vectors: Any) -> None:
    Path("found/wrong.csv").write_text("identity,kind\nnew.csv:60,cat\n")
    Path("found/right.csv").write_text("identity,label\nnew.csv:60,cat\n")
    Path("found/unknown.csv").write_text("identity,label\nnew.csv:99,cat\n")
    for arguments, problem in [
        (("fit", "known.csv", "--out", "model", "--label", "kind"), "holds a model already"),
        (("fit", "known.csv", "--set", "stream.n_quiet=1"), "--set stream.n_quiet is for a stream"),
        (("fit", "known.csv", "--learner", "clif"), "did you mean 'cilf'"),
        (("detect", "nowhere", "new.csv"), "there is no folder nowhere"),
        (("detect", "model", "nowhere.csv"), "there is no folder or file nowhere.csv"),
        (("detect", "model", "new.csv", "--out", "found"), "holds findings already"),
        (("detect", "model", ".", "--out", "here"), "lies inside the data"),
        (("update", "model", "found"), "names nothing"),
        (("update", "model", "found/wrong.csv"), "it needs 'identity' and 'label'"),
        (("update", "model", "found/unknown.csv"), "'new.csv:99' in line 2"),
        (("update", "model", "found/right.csv", "--tolerance", "2"), "tolerance is 2.0"),
        (("split", "found", "9"), "cluster is 9: the findings in found have clusters 1 to"),
        (("split", "found", "1", "--into", "1"), "into is 1: give a whole number of at least 2"),
        (("merge-clusters", "found", "1"), "clusters is [1]: name at least two different ones"),
        (("merge-clusters", "model", "1", "2"), "model holds no findings"),
        (("rollback", "model"), "the first: there is no earlier one"),
        (("model", "found"), "found is no model"),
    ]:
        done = vectors(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert problem in done.err, arguments
        assert done.err.splitlines()[-1].startswith("error: ")
        assert "Traceback" not in done.err


def test_a_costly_update_shows_what_it_costs(vectors: Any) -> None:
    weak = ["--set", "readout=prototype"]  # which wrong labels harm most
    assert vectors("fit", "known.csv", "--label", "kind", "--out", "net", *weak).code == 0
    assert vectors("detect", "net", "new.csv", "--out", "seen").code == 0
    lines = ["identity,label", *(f"new.csv:{row},wasp" for row in range(25, 50))]
    Path("seen/wrong.csv").write_text("\n".join(lines))  # these are bees
    done = vectors("update", "net", "seen/wrong.csv")
    assert done.code == 2
    assert [line.split()[0] for line in done.out.splitlines()[3:6]] == ["ant", "bee", "wasp"]
    assert "(bee: 1.000 before" in done.err.splitlines()[-1]
    assert "--force" in done.err.splitlines()[-1]
    document = json.loads(vectors("update", "net", "seen/wrong.csv", "--json").out)
    assert (document["refused"], document["version"]) == (True, None)
    assert document["loss"] > 0.05
    assert json.loads(vectors("model", "net", "--json").out)["current"] == 1
    forced = vectors("update", "net", "seen/wrong.csv", "--force")
    assert forced.code == 0
    assert "overestimates" not in forced.out
    assert "seen/wrong.csv, forced; new classes: wasp" in " ".join(
        vectors("model", "net").out.split()
    )


def test_a_learner_that_holds_nothing_out_is_said_to_be_overestimated(vectors: Any) -> None:
    name_all("cat")
    assert "measured on its training instances, which" in vectors("update", "model", "found").out


def test_texts(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    topics = {
        "cooking": ("simmer the sauce", "knead the dough", "season the soup", "bake the bread"),
        "football": ("score a goal", "pass the ball", "win the match", "save a penalty"),
        "weather": ("heavy rain", "strong winds tonight", "a sunny morning", "snow is coming"),
    }
    extras = ("today", "again", "this week", "at last", "right now", "for us")

    def lines(*chosen: str) -> list[str]:
        return [f"{p} {e},{t}" for t in chosen for p in topics[t] for e in extras]

    (tmp_path / "notes.csv").write_text("\n".join(["text,topic", *lines("cooking", "football")]))
    (tmp_path / "new.csv").write_text("\n".join(["text,topic", *lines(*topics)]))
    assert run("fit", "notes.csv", "--label", "topic", "--out", "model").code == 0
    done = run("detect", "model", "new.csv", "--out", "found", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    sheet = Path(found["clusters"][0]["sheet"])
    assert sheet.suffix == ".txt"
    assert "tonight" in sheet.read_text() or "morning" in sheet.read_text()
    name_all("weather")
    assert run("update", "model", "found").code == 0
    predicted = json.loads(run("predict", "model", "new.csv", "--json").out)["predictions"]
    assert [p["label"] for p in predicted[48:]].count("weather") > 20


def test_a_real_process_killed_while_it_learns(vectors: Any) -> None:
    name_all("cat")
    program = "from cilf.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "update", "model", "found"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    pending = Path("model/versions/0002.pending")
    while process.poll() is None and not pending.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    current = Path("model/current").read_text().split()[0]
    assert current in ("0001", "0002")
    whole = cilf.load("model").classes_.tolist()
    if current == "0001":  # it nearly always is
        assert whole == ["ant", "bee"]
        assert vectors("update", "model", "found").code == 0
    assert cilf.load("model").classes_.tolist() == ["ant", "bee", "cat"]
