from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from cilf.core import Detection, Labelled, Window, WindowRecord


def detection(cluster: list[int]) -> Detection:
    n = len(cluster)
    return Detection(
        novelty=np.zeros(n, dtype=np.float32),
        label=np.array(["a"] * n),
        cluster=np.array(cluster, dtype=np.int64),
        n_novel=2,
        curve={0: 0.1, 2: 0.5},
        embedding=np.zeros((n, 3), dtype=np.float32),
    )


MAPPINGS = {
    "holdout_accuracy": {0: 0.5, 2: 1.0},
    "holdout_classes": {0: 3, 2: 1},
    "named": {"novel-1": "a"},
    "extra": {"mine": 0.25},
}


def record(**changes: object) -> WindowRecord:
    names = [field.name for field in dataclasses.fields(WindowRecord)]
    values = {name: (i + 1) / 64 for i, name in enumerate(names)}
    counts = {"window": 2, "n_known": 5, "n_novel_true": 1, "n_novel_found": 2, "n_queried": 9}
    return WindowRecord(**(values | counts | MAPPINGS | changes))


def test_is_novel_is_where_a_cluster_is() -> None:
    found = detection([-1, 0, 1, -1])
    assert found.is_novel.tolist() == [False, True, True, False]
    assert found.is_novel.dtype == np.bool_
    assert len(found) == 4


def test_a_learner_that_does_not_estimate_is_certain_of_its_number() -> None:
    found = detection([-1, 0, 1, -1])
    assert found.count_probability == {2: 1.0}
    assert len(found.novelty_p) == 0  # ``Learner.detect`` adds it
    assert found.novelty_p.dtype == np.float32


def test_what_a_learner_estimates_is_kept() -> None:
    p = np.array([0.5, 0.01], dtype=np.float32)
    probability = {0: 0.25, 1: 0.75}
    found = dataclasses.replace(detection([-1, 0]), count_probability=probability, novelty_p=p)
    assert found.count_probability == probability
    assert found.novelty_p is p


def test_detections_and_records_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        detection([0]).n_novel = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        record().na = 1.0  # type: ignore[misc]


def test_labelled_unpacks_to_instances_and_labels() -> None:
    X, y = Labelled(np.zeros((2, 3)), np.array([1, 2]))
    assert X.shape == (2, 3)
    assert y.tolist() == [1, 2]


def test_a_record_survives_json() -> None:
    text = json.dumps(record().to_json(), allow_nan=False)
    assert WindowRecord.from_json(json.loads(text)) == record()


@pytest.mark.parametrize("name", ["na", "auroc", "known_auroc", "open_macro_f", "m_new", "f_new"])
def test_undefined_is_null_in_json_and_nan_again_after_it(name: str) -> None:
    plain = record(**{name: math.nan}).to_json()
    assert plain[name] is None
    back = WindowRecord.from_json(json.loads(json.dumps(plain, allow_nan=False)))
    assert math.isnan(getattr(back, name))
    assert dataclasses.replace(back, **{name: 0.0}) == record(**{name: 0.0})


def test_undefined_accuracy_of_a_group_is_null_too() -> None:
    plain = record(holdout_accuracy={0: math.nan, 3: 0.25}).to_json()
    assert plain["holdout_accuracy"] == {"0": None, "3": 0.25}
    back = WindowRecord.from_json(plain).holdout_accuracy
    assert list(back) == [0, 3]
    assert math.isnan(back[0])
    assert back[3] == 0.25


def test_a_metric_is_a_field_or_extra() -> None:
    assert record(na=0.5).metric("na") == 0.5
    assert record().metric("mine") == 0.25
    assert math.isnan(record().metric("unheard-of"))
    assert math.isnan(
        WindowRecord.from_json(record(extra={"mine": math.nan}).to_json()).extra["mine"]
    )


def test_every_field_is_written() -> None:
    assert list(record().to_json()) == [field.name for field in dataclasses.fields(WindowRecord)]


def test_a_window_without_identities_numbers_its_rows() -> None:
    window = Window(1, np.zeros((3, 2)), np.array([0, 1, 0]), novel=(1,), known=(0,))
    assert window.ids.tolist() == ["0", "1", "2"]


def test_names_a_learner_made_up_survive_json() -> None:
    made = record(named={"novel-1": "cat"}, n_propagated=3, propagated_right=math.nan)
    plain = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert (plain["named"], plain["propagated_right"]) == ({"novel-1": "cat"}, None)
    assert str(WindowRecord.from_json(plain)) == str(made)


def test_a_record_that_lacks_a_field_is_no_record() -> None:
    plain = record().to_json()
    del plain["holdout_classes"]
    with pytest.raises(KeyError, match="holdout_classes"):
        WindowRecord.from_json(plain)
