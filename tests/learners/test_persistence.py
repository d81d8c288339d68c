from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.core import Detection
from cilf.errors import BadConfig, BadInput, CilfError
from cilf.learners import Learner, load, persistence
from cilf.learners.base import Arrays
from cilf.learners.iforest import IForest

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
Y = ["ant", "bee"] * 10


def scaled(values: np.ndarray) -> np.ndarray:
    return values


class Own(Learner):
    """A learner that is not one of ours, with a parameter that a file cannot hold."""

    name = "own"

    def __init__(self, *, seed: int = 0, transform: Any = None) -> None:
        self.seed = seed
        self.transform = transform

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self._mean = X.mean(0)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X), dtype=np.int64)

    def _embed(self, X: np.ndarray) -> np.ndarray:
        return X - self._mean

    def _detect(self, X: np.ndarray, n_novel: int | None) -> Detection:
        raise NotImplementedError

    def _update(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None:
        raise NotImplementedError

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        return {"mean": self._mean}, {}

    def _set_state(self, arrays: Arrays, plain: Any) -> None:
        self._mean = arrays["mean"]


@pytest.fixture
def learner() -> Own:
    return Own().fit(X, Y)


@pytest.fixture
def model(learner: Own, tmp_path: Path) -> Path:
    learner.save(tmp_path / "model")
    return tmp_path / "model"


def restored(folder: Path) -> Learner:
    return load(folder, learner=Own)


def mean_of(folder: Path) -> list[float]:
    return list(restored(folder)._mean.tolist())  # type: ignore[attr-defined]


def rewrite(model: Path, **changes: Any) -> None:
    head = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps(head | changes))


def tensors_of(model: Path) -> Path:
    return next(model.glob("*.safetensors"))


# ----------------------------------------------------------------- where a model can go


def test_saves_to_a_new_folder_with_new_parents(learner: Own, tmp_path: Path) -> None:
    learner.save(tmp_path / "some" / "where")
    assert mean_of(tmp_path / "some" / "where") == X.mean(0).tolist()


def test_saves_to_an_empty_folder_named_by_a_string(learner: Own, tmp_path: Path) -> None:
    learner.save(str(tmp_path))
    assert mean_of(tmp_path) == X.mean(0).tolist()


def test_replaces_a_model_and_leaves_nothing_of_it(model: Path) -> None:
    Own().fit(X + 1, Y).save(model)
    assert mean_of(model) == (X + 1).mean(0).tolist()
    assert len(list(model.iterdir())) == 2


def test_saving_the_same_again_keeps_it(model: Path, learner: Own) -> None:
    learner.save(model)
    assert mean_of(model) == X.mean(0).tolist()


@pytest.mark.parametrize("name", ["notes.txt", "weights.safetensors", "important.pending"])
def test_refuses_a_folder_of_other_things(learner: Own, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(BadInput, match=f"holds other things .{name}"):
        learner.save(tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_keeps_what_someone_put_beside_the_model(model: Path, learner: Own) -> None:
    (model / "weights.safetensors").write_text("mine")
    Own().fit(X + 1, Y).save(model)
    assert (model / "weights.safetensors").read_text() == "mine"


def test_refuses_a_file(learner: Own, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="it is a file"):
        learner.save(tmp_path / "file")


# ----------------------------------------------------------------- what is no model


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is not a model: it has no model\.json"):
        load(tmp_path)
    with pytest.raises(BadInput, match="is not a model: it is not a folder"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("size", [0, 1, 40, -1])
def test_a_truncated_description(model: Path, size: int) -> None:
    content = (model / "model.json").read_bytes()
    (model / "model.json").write_bytes(content[:size])
    with pytest.raises(BadInput, match="is damaged"):
        restored(model)


def test_any_flipped_bit_of_the_description(model: Path) -> None:
    content = (model / "model.json").read_bytes()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1
        (model / "model.json").write_bytes(bytes(damaged))
        if _means_the_same(bytes(damaged), content):
            continue
        with pytest.raises(BadInput, match=r"is damaged|of format"):
            restored(model)


def _means_the_same(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


NO_DESCRIPTIONS = [
    b"[]", b"null", b"{}", b"\xff\xfe", b'{"format": 2}', b'{"format": 2, "a": NaN}', b"[" * 10**5,
]  # fmt: skip


@pytest.mark.parametrize("content", NO_DESCRIPTIONS, ids=lambda content: repr(content[:20]))
def test_a_description_of_something_else(model: Path, content: bytes) -> None:
    (model / "model.json").write_bytes(content)
    with pytest.raises(BadInput, match="is damaged"):
        restored(model)


def test_a_changed_description(model: Path) -> None:
    rewrite(model, classes=["bee", "ant"])
    with pytest.raises(BadInput, match=r"model\.json is not what was written"):
        restored(model)


@pytest.mark.parametrize(("format", "remedy"), [(3, "upgrade cilf"), (1, "fit it again")])
def test_another_format(model: Path, format: int, remedy: str) -> None:
    rewrite(model, format=format)
    message = f"a model of format {format}, this cilf reads format 2: {remedy}"
    with pytest.raises(BadInput, match=message):
        restored(model)


def test_missing_tensors(model: Path) -> None:
    tensors_of(model).unlink()
    with pytest.raises(BadInput, match=r"\.safetensors cannot be read: No such file"):
        restored(model)


@pytest.mark.parametrize("size", [0, 4, 20, -1])
def test_truncated_tensors(model: Path, size: int) -> None:
    tensors = tensors_of(model)
    tensors.write_bytes(tensors.read_bytes()[:size])
    with pytest.raises(BadInput, match=r"\.safetensors is not what was written"):
        restored(model)


def test_any_flipped_bit_of_the_tensors(model: Path) -> None:
    content = tensors_of(model).read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 128
        tensors_of(model).write_bytes(bytes(damaged))
        with pytest.raises(BadInput, match=r"\.safetensors is not what was written"):
            restored(model)


# ----------------------------------------------------------------- parameters


def test_a_foreign_learner_needs_its_class(model: Path) -> None:
    with pytest.raises(BadInput, match=r"'own', which is not one of ours.*learner=\.\.\."):
        load(model)
    assert type(restored(model)) is Own


def test_an_own_function_is_handed_in_again(tmp_path: Path) -> None:
    Own(transform=scaled).fit(X, Y).save(tmp_path)
    with pytest.raises(BadConfig, match=r"your own transform 'scaled'.*transform=scaled"):
        load(tmp_path, learner=Own)
    assert load(tmp_path, learner=Own, transform=scaled).get_params()["transform"] is scaled


def test_parameters_can_be_replaced(model: Path) -> None:
    assert load(model, learner=Own, seed=7).get_params()["seed"] == 7
    with pytest.raises(BadConfig, match="did you mean 'seed'"):
        load(model, learner=Own, sed=7)


def test_numpy_numbers_become_plain_ones(tmp_path: Path) -> None:
    Own(transform=np.float64(0.5)).fit(X, Y).save(tmp_path)
    assert type(restored(tmp_path).get_params()["transform"]) is float


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_a_parameter_no_file_can_hold_is_refused_before_anything_is_written(
    tmp_path: Path, value: object
) -> None:
    with pytest.raises(BadConfig, match="cannot save with transform="):
        Own(transform=value).fit(X, Y).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_learner_of_ours_is_found_by_name(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules["cilf.learners"].LEARNERS, "iforest", IForest)
    learner = IForest(n_estimators=5).fit(X, Y).update(X[:2] + 30, ["cow", "cow"])
    learner.save(tmp_path)
    loaded = load(tmp_path)
    assert repr(loaded) == repr(learner)
    assert loaded.classes_.tolist() == ["ant", "bee", "cow"]
    assert loaded.predict(X[:4] + 30).tolist() == ["cow"] * 4
    assert loaded._describe() == learner._describe()


# ----------------------------------------------------------------- a kill at any moment

# Forks once for each moment, so that cilf is imported once; prints how each save ended.
KILLED_SAVES = """
    import os, signal, sys
    from collections import Counter
    from pathlib import Path
    import numpy as np
    from cilf.learners import persistence

    def save(folder, content):
        description = {
            "learner": "own", "parameters": {}, "content": content, "classes": [], "history": [],
            "instance_shape": [3], "features": None, "state": {},
        }
        persistence.write(folder, description, {"content": np.full(50, len(content))})

    def save_and_die(folder, moment):
        seen = Counter()

        def watched(function, name):
            def call(*args, **kwargs):
                seen[name] += 1
                if moment == f"before {name} {seen[name]}":
                    os.kill(os.getpid(), signal.SIGKILL)
                result = function(*args, **kwargs)
                if moment == f"after {name} {seen[name]}":
                    os.kill(os.getpid(), signal.SIGKILL)
                return result
            return call

        Path.replace = watched(Path.replace, "rename")
        Path.unlink = watched(Path.unlink, "unlink")
        os.fsync = watched(os.fsync, "sync")
        save(folder, "new")

    for number, moment in enumerate(sys.argv[2:]):
        folder = Path(sys.argv[1]) / str(number)
        save(folder, "older")
        child = os.fork()
        if child == 0:
            save_and_die(folder, moment)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

# The tensors are written first, then the description: each is synced, renamed, synced.
MOMENTS = [
    "before sync 1", "before rename 1", "after rename 1", "after sync 2",
    "before sync 3", "before rename 2", "after rename 2", "before unlink 1", "after unlink 1",
]  # fmt: skip
FIRST_WITH_THE_NEW_MODEL = MOMENTS.index("after rename 2")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for each moment, in which a save was killed just then."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-c", textwrap.dedent(KILLED_SAVES), str(folder), *MOMENTS]
    ended = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert ended == [str(-signal.SIGKILL)] * len(MOMENTS)
    return folder


@pytest.mark.parametrize("number", range(len(MOMENTS)), ids=MOMENTS)
def test_a_killed_save_leaves_one_whole_model(killed: Path, number: int) -> None:
    expected = "new" if number >= FIRST_WITH_THE_NEW_MODEL else "older"
    description, arrays = persistence.read(killed / str(number))
    assert description["content"] == expected
    assert arrays["content"].tolist() == [len(expected)] * 50


@pytest.mark.parametrize("number", range(len(MOMENTS)), ids=MOMENTS)
def test_the_next_save_clears_up_after_a_killed_one(
    killed: Path, number: int, tmp_path: Path, learner: Own
) -> None:
    model = tmp_path / "model"
    shutil.copytree(killed / str(number), model)
    learner.save(model)
    assert mean_of(model) == X.mean(0).tolist()
    assert len(list(model.iterdir())) == 2


def test_a_first_save_that_was_killed_can_be_repeated(
    killed: Path, tmp_path: Path, learner: Own
) -> None:
    unfinished = tmp_path / "model"
    shutil.copytree(killed / str(MOMENTS.index("before sync 3")), unfinished)
    (unfinished / "model.json").unlink()
    learner.save(unfinished)
    assert mean_of(unfinished) == X.mean(0).tolist()
    assert len(list(unfinished.iterdir())) == 2


def test_a_folder_of_versions_is_read_at_its_pointer(tmp_path: Path) -> None:
    for version, label in (("0001", "cat"), ("0002", "dog")):
        IForest(n_estimators=5).fit(X, ["ant", label] * 10).save(tmp_path / "versions" / version)
    (tmp_path / "current").write_text("0002\n")
    assert load(tmp_path).classes_.tolist() == ["ant", "dog"]
    (tmp_path / "current").write_text("0001")
    assert load(tmp_path).classes_.tolist() == ["ant", "cat"]
    head = hashlib.sha256((tmp_path / "versions/0002/model.json").read_bytes()).hexdigest()
    (tmp_path / "current").write_text(f"0002 {head} {head}\n")
    assert load(tmp_path).classes_.tolist() == ["ant", "dog"]
    (tmp_path / "current").write_text(f"0001 {head} {head}\n")
    with pytest.raises(BadInput, match=r"damaged \(0001/model.json is not what was written\)"):
        load(tmp_path)
    for wrong in ("0003", "../versions/0001", "", "1"):
        (tmp_path / "current").write_text(wrong)
        with pytest.raises(BadInput, match=r"current names the version .*, which is not there"):
            load(tmp_path)
    with pytest.raises(BadInput, match="holds other things"):
        IForest(n_estimators=5).fit(X, Y).save(tmp_path)


# ----------------------------------------------------------------- made-up files, with checksums


def forge(model: Path, arrays: bytes | None = None, **changes: Any) -> None:
    """Change a model as somebody would who knows how its checksums are made."""
    head = json.loads((model / "model.json").read_text())
    del head["checksum"]
    head |= changes
    if arrays is not None:
        stated = hashlib.sha256(arrays).hexdigest()
        head["tensors"] = {"file": f"{stated[:16]}.safetensors", "sha256": stated}
        (model / head["tensors"]["file"]).write_bytes(arrays)
    checksum = hashlib.sha256(json.dumps(head, indent=1, sort_keys=True).encode()).hexdigest()
    (model / "model.json").write_text(json.dumps(head | {"checksum": checksum}))


def pack_bfloat16() -> bytes:
    head = b'{"sample":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    return len(head).to_bytes(8, "little") + head + bytes(4)


@pytest.mark.parametrize(
    "changes",
    [
        {"tensors": {"file": "../x.safetensors", "sha256": "0" * 64}},
        {"tensors": {"file": "0123456789abcdef.safetensors"}},
        {"classes": {"a": 1}}, {"classes": ["\ud800"]}, {"instance_shape": [10**30]},
        {"instance_shape": "3"}, {"features": {"name": 3}}, {"history": [3]}, {"state": []},
        {"parameters": {"n_estimators": "many"}}, {"parameters": {"unheard": 1}},
        {"learner": 3}, {"learner": "nobody"}, {"compared_backbones": {"a": "b"}},
        {"arrays": b""}, {"arrays": b"x" * 40}, {"arrays": pack_bfloat16()},
    ],
    ids=lambda changes: str(changes)[:30],
)  # fmt: skip
def test_a_made_up_model_is_one_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    IForest(n_estimators=5).fit(X, Y).save(tmp_path / "model")
    forge(tmp_path / "model", **changes)
    with pytest.raises(CilfError) as caught:
        load(tmp_path / "model")
    assert "\n" not in str(caught.value)
