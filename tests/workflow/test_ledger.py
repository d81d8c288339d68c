from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.core.documents import Damage
from cilf.errors import BadInput
from cilf.workflow.ledger import (
    Answer,
    LabelledInstances,
    Ledger,
    hash_instances,
    unpack_instances,
)
from cilf.workflow.versions import ModelFolder

from .conftest import class_of
from .earlier import remove_digests


def test_a_hash_is_that_of_the_content() -> None:
    images = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    one, other = hash_instances(images)
    assert one != other
    assert hash_instances(images[::-1]) == [other, one]
    assert hash_instances(images.reshape(2, 4))[0] != one  # another shape
    assert hash_instances(np.array([[0.5]])) == hash_instances(np.array([[0.5]], np.float32))
    texts = np.array(["a", "a\udce9"], dtype=object)
    assert len(set(hash_instances(texts))) == 2


def test_answers_of_one_time_differ_by_identity() -> None:
    ledger = Ledger([Answer("a", "c", "cat", 1), Answer("b", "c", "dog", 1)])
    assert [ledger.find(identity, "c") for identity in ("a", " b", "z")] == ["cat", "dog", None]
    ledger.add([Answer("z", "c", "cow", 2)])
    assert [ledger.find(identity, "c") for identity in ("a", "b", "z")] == ["cow"] * 3
    assert ledger.counts == {"cow": 1}


def test_an_identity_without_its_content_is_no_answer() -> None:
    ledger = Ledger([Answer("a", "c", "cat", 1), Answer("old", "", "dog", 1)])
    assert ledger.find("a", "d") is None
    assert ledger.find("old", "") is None
    ledger.add([Answer("older", "", "dog", 2)])
    assert ledger.counts == {"cat": 1, "dog": 2}
    ledger.rename({"dog": "cat", "cat": "dog"})
    ledger.forget(["cat"])
    assert [answer.identity for answer in ledger] == ["a"]


def test_texts_are_packed_and_read_again() -> None:
    texts = np.array(["one", "zwei €"], dtype=object)
    packed = LabelledInstances(texts, ["1", "2"], ["a", "b"]).pack()
    assert unpack_instances(packed).tolist() == ["one", "zwei €"]
    for damaged in (b"", packed[:-30]):
        with pytest.raises(Damage, match=r"instances.npz is no npz file"):
            unpack_instances(damaged)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"name\na\n", b'identity,label,content\n"a'])
def test_a_damaged_table_of_labels(points: Path, content: bytes) -> None:
    (points / "model/versions/0001/labels.csv").write_bytes(content)
    with pytest.raises(BadInput, match=r"0001/labels.csv is not what was written\): restore it"):
        workflow.predict("model", "new.csv")
    remove_digests(points / "model")
    with pytest.raises(BadInput, match=r"0001/labels.csv (is no table|has other)"):
        workflow.predict("model", "new.csv")


def test_a_version_keeps_the_instances_of_its_answers(named_points: Path) -> None:
    workflow.update("model", *workflow.read_labels("found"))
    model = ModelFolder.open("model")
    assert model.instances(1) is None
    X = model.instances(2)
    assert X is not None
    assert hash_instances(X) == [answer.content for answer in model.answers(2)]
    assert model.ledger().counts == {"left": 48, "right": 48, "up": 30, "down": 30}
    assert model.ledger(1).counts == {"left": 48, "right": 48}


def test_labels_of_an_earlier_cilf_are_counted_but_match_nothing(named_points: Path) -> None:
    remove_digests(named_points / "model")
    table = named_points / "model/versions/0001/labels.csv"
    lines = [line.rpartition(",")[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(lines) + "\n")
    assert ModelFolder.open("model").ledger().counts == {"left": 48, "right": 48}
    predicted = workflow.predict("model", "known.csv")
    assert set(predicted.source.tolist()) == {"model"}


@pytest.fixture
def crossed(points: Path) -> Path:
    """A model that was told that some of the upper points are called left."""
    found = workflow.Findings.open("found")
    names = {i: class_of(i) for i in found.assignments.ids.tolist() if class_of(i) == "up"}
    crossed = dict.fromkeys(list(names)[:3], "left")
    workflow.update("model", found, names | crossed, force=True)
    return points


def test_predict_says_what_a_person_said(crossed: Path) -> None:
    lines = (crossed / "new.csv").read_text().splitlines()
    copied = [line.replace("up-0,", "copy,") for line in lines]
    (crossed / "copies.csv").write_text("\n".join(copied) + "\n")
    predicted = workflow.predict("model", "copies.csv")
    rows = {i: row for row, i in enumerate(predicted.ids.tolist())}
    told = [rows[identity] for identity in ("copy", "up-1", "up-2")]
    assert predicted.labels[told].tolist() == ["left"] * 3
    assert predicted.source[told].tolist() == ["person"] * 3
    assert predicted.novelty_p[told].tolist() == [1.0] * 3
    assert predicted.source[rows["down-0"]] == "model"


def test_what_a_person_named_is_in_no_cluster_again(crossed: Path) -> None:
    found = workflow.detect("model", "new.csv", "again").assignments
    named = np.array([identity.startswith("up") for identity in found.ids.tolist()])
    assert (found.cluster[named] < 0).all()
    assert found.source[named].tolist() == ["person"] * 30
    assert set(found.label[named].tolist()) == {"left", "up"}
    assert found.n_novel > 0  # the lower points, which nobody has named
    table = (crossed / "again/findings.csv").read_text()
    assert "up-0,left,person," in table


def test_after_a_rollback_an_answer_does_not_count(crossed: Path) -> None:
    ModelFolder.open("model").rollback()
    assert set(workflow.predict("model", "new.csv").source.tolist()) == {"model"}
