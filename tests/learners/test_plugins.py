"""Learners in files outside the package."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import cilf
from cilf.errors import BadConfig, BadInput
from cilf.learners import IForest, learner_class, make
from cilf.learners.plugins import get_digest

HEAD = "from cilf.learners import IForest, Learner\n"
MINE = HEAD + (
    "class Mine(IForest):\n"
    "    name = 'mine'\n"
    "    def __init__(self, *, seed=0, n_estimators=5, max_samples=60):\n"
    "        super().__init__(seed=seed, n_estimators=n_estimators, max_samples=max_samples)\n"
)


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "my_file.py").write_text(MINE, encoding="utf-8")
    return f"{tmp_path / 'my_file.py'}:Mine"


def test_a_class_in_a_file_is_a_learner_like_any_other(mine: str) -> None:
    learner = make(mine, n_estimators=7)
    assert (learner.name, learner.get_params()["n_estimators"]) == ("mine", 7)
    assert isinstance(learner, IForest)
    with pytest.raises(BadConfig, match="did you mean 'n_estimators'"):
        make(mine, n_estimator=7)


def test_the_same_file_gives_the_same_class_and_a_changed_one_another(mine: str) -> None:
    path = Path(mine.rpartition(":")[0])
    first = learner_class(mine)
    assert learner_class(mine) is first
    assert get_digest(first) == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(MINE.replace("n_estimators=5", "n_estimators=6"), encoding="utf-8")
    assert learner_class(mine)().get_params()["n_estimators"] == 6
    assert get_digest(learner_class(mine)) != get_digest(first)
    assert get_digest(IForest) is None


def test_nothing_is_left_beside_the_file(mine: str) -> None:
    path = Path(mine.rpartition(":")[0])
    learner_class(mine)
    assert [p.name for p in path.parent.iterdir()] == ["my_file.py"]


def test_its_model_is_loaded_by_whoever_names_the_file(mine: str, tmp_path: Path) -> None:
    X = np.arange(12.0).reshape(6, 2)
    learner = make(mine).fit(X, ["a", "a", "a", "b", "b", "b"])
    learner.save(tmp_path / "model")
    assert cilf.load(tmp_path / "model", learner=mine).predict(X).tolist() == (
        learner.predict(X).tolist()
    )
    with pytest.raises(BadInput, match=r"'mine', which is not one of ours.*file\.py:Class"):
        cilf.load(tmp_path / "model")
    with pytest.raises(BadInput, match="made by learner 'mine', but learner is 'iforest'"):
        cilf.load(tmp_path / "model", learner="iforest")


@pytest.mark.parametrize(
    ("content", "wanted", "said"),
    [
        (MINE, "", "write path/to/file.py:Class"),
        (MINE, ":", "write path/to/file.py:Class"),
        (MINE, ":Mien", "did you mean 'Mine'"),
        (HEAD, ":Mine", "is no learner: let a class in the file extend cilf.learners.Learner"),
        (HEAD + "class Mine: pass", ":Mine", "Mine in .* is no learner"),
        (MINE, ":IForest", "IForest in .* is no learner"),  # imported, not defined
        (HEAD + "class Mine(IForest): pass", ":Mine", "the name 'iforest', which one of ours has"),
        (HEAD + "class Mine(Learner): name = 'mine'", ":Mine", "does not write _detect, _embed"),
        (MINE.replace("*, ", ""), ":Mine", "takes 'seed' without a keyword"),
        (MINE.replace("seed=0,", "seed,"), ":Mine", "takes 'seed' without a keyword or a default"),
        (
            MINE.replace("*, seed=0, n", "*, n").replace("seed=seed", "seed=0"),
            ":Mine",
            "takes no seed",
        ),
        (
            MINE.replace("max_samples=60", "max_samples=60, depth=2"),
            ":Mine",
            "does not keep 'depth'",
        ),
        (MINE + "        raise OSError('no')", ":Mine", r"cannot be made \(OSError: no\)"),
        ("x = 1\ny = x.z\n" + MINE, ":Mine", "does not load .AttributeError: .*, line 2"),
        ("class Mine(:", ":Mine", "does not load .SyntaxError"),
        ("import no_such_package", ":Mine", "No module named 'no_such_package', line 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, content: str, wanted: str, said: str
) -> None:
    (tmp_path / "my_file.py").write_text(content, encoding="utf-8")
    with pytest.raises(BadConfig, match=said) as refused:
        learner_class(f"{tmp_path / 'my_file.py'}{wanted}")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"cannot read .*nowhere\.py \(No such file"):
        learner_class(f"{tmp_path / 'nowhere.py'}:Mine")
