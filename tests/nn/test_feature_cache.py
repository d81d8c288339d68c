"""Features are computed once, and whatever happens to the cache, they are computed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cilf.core import notices, progress
from cilf.core.types import Array, Floats
from cilf.nn import feature_cache
from cilf.nn.feature_cache import cached_features, store_path
from cilf.nn.pretrained import Extractor

IMAGES = np.random.default_rng(0).integers(0, 256, (9, 4, 4, 3)).astype(np.uint8)


def means(X: Array) -> Floats:
    """Two features of an image or a text, by hand."""
    if X.ndim == 1:
        return np.array([[len(text), text.count("a")] for text in X], dtype=np.float32)
    flat = X.reshape(len(X), -1).astype(np.float32)
    return np.stack([flat.mean(1), flat.std(1)], axis=1)


class Counting:
    """An extractor's work that notes how many instances it was given at each call."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.given: list[int] = []
        self.fail_at = fail_at

    def __call__(self, X: Array) -> Floats:
        if len(self.given) == self.fail_at:
            raise KeyboardInterrupt
        self.given.append(len(X))
        return means(X)


def extractor(work: Callable[[Array], Floats], digest: str = "0123") -> Extractor:
    return Extractor("some:model/name", digest, "images", work)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))
    notices.forget()
    return tmp_path


def test_each_distinct_instance_is_computed_once_and_the_order_is_kept() -> None:
    work = Counting()
    X = IMAGES[[0, 1, 0, 2, 1, 0]]
    assert np.array_equal(cached_features(extractor(work), X), means(X))
    assert work.given == [3]
    X = IMAGES[[4, 2, 0, 3]]
    assert np.array_equal(cached_features(extractor(work), X), means(X))
    assert work.given == [3, 2]


def test_features_are_float32_rows_that_can_be_written_to() -> None:
    cached_features(extractor(means), IMAGES)
    features = cached_features(extractor(means), IMAGES)
    assert features.dtype == np.float32
    assert features.flags.writeable


def test_texts_are_kept_by_what_they_say() -> None:
    work = Counting()
    X = np.array(["banana", "fig", "banana", "a much longer text"], dtype=object)
    for _ in range(2):
        assert np.array_equal(cached_features(extractor(work), X), means(X))
    assert work.given == [3]


def test_equal_bytes_of_another_shape_or_kind_are_another_instance() -> None:
    work = Counting()
    for X in (IMAGES, IMAGES.reshape(9, 2, 8, 3), IMAGES.view(np.int8), IMAGES.astype(np.float32)):
        assert np.array_equal(cached_features(extractor(work), X), means(X))
    assert work.given == [9, 9, 9, 9]


def test_other_weights_have_a_file_of_their_own() -> None:
    work = Counting()
    one, other = extractor(work), extractor(work, digest="4567")
    cached_features(one, IMAGES)
    cached_features(other, IMAGES)
    assert work.given == [9, 9]
    assert store_path(one) != store_path(other)
    assert store_path(one).name == "some-model-name-0123.sqlite"


def test_an_interruption_loses_no_more_than_a_portion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_cache, "COMPUTED", 2)
    with pytest.raises(KeyboardInterrupt):
        cached_features(extractor(Counting(fail_at=3)), IMAGES)
    work = Counting()
    assert np.array_equal(cached_features(extractor(work), IMAGES), means(IMAGES))
    assert work.given == [2, 1]


def test_large_instances_are_taken_in_smaller_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_cache, "FEWEST", 2)
    monkeypatch.setattr(feature_cache, "BYTES", 4 * IMAGES[:1].nbytes)
    work = Counting()
    assert np.array_equal(cached_features(extractor(work), IMAGES), means(IMAGES))
    assert work.given == [4, 4, 1]
    monkeypatch.setattr(feature_cache, "BYTES", 1)
    cached_features(extractor(work, digest="4567"), IMAGES)
    assert work.given[3:] == [2, 2, 2, 2, 1]


def test_progress_is_told_in_instances_to_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_cache, "COMPUTED", 4)
    cached_features(extractor(means), IMAGES[:1])
    told: list[tuple[str, int, int]] = []
    with progress.listen(lambda *step: told.append(step)):
        cached_features(extractor(means), IMAGES)
        cached_features(extractor(means), IMAGES)
    assert told == [("features", 4, 8), ("features", 8, 8)]


def test_more_instances_than_one_query_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_cache, "LOOKED_UP", 4)
    work = Counting()
    for _ in range(2):
        assert np.array_equal(cached_features(extractor(work), IMAGES), means(IMAGES))
    assert work.given == [9]


def test_many_at_once_agree_and_leave_a_whole_cache(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feature_cache, "COMPUTED", 1)
    with ThreadPoolExecutor(6) as pool:
        every = list(pool.map(lambda _: cached_features(extractor(means), IMAGES), range(12)))
    assert all(np.array_equal(each, means(IMAGES)) for each in every)
    assert caplog.messages == []
    work = Counting()
    cached_features(extractor(work), IMAGES)
    assert work.given == []


# ------------------------------------------------------------------------------- trouble


def test_a_damaged_file_is_done_without_and_named(caplog: pytest.LogCaptureFixture) -> None:
    path = store_path(extractor(means))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database" * 1000)
    for _ in range(2):
        assert np.array_equal(cached_features(extractor(means), IMAGES), means(IMAGES))
    assert len(caplog.messages) == 1
    assert str(path) in caplog.messages[0]
    assert "not a database" in caplog.messages[0]


@pytest.mark.parametrize("value", [b"", b"\0" * 8, b"abc", None])
def test_a_garbled_value_is_computed_and_kept_again(value: bytes | None) -> None:
    cached_features(extractor(means), IMAGES)
    with sqlite3.connect(store_path(extractor(means))) as connection:
        connection.execute("UPDATE features SET value = ? WHERE rowid = 3", (value,))
    connection.close()
    work = Counting()
    for _ in range(2):
        assert np.array_equal(cached_features(extractor(work), IMAGES), means(IMAGES))
    assert work.given == [1]


def test_a_file_that_stays_locked_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cached_features(extractor(means), IMAGES[:4])
    monkeypatch.setattr(feature_cache, "PATIENCE", 0.01)
    connection = sqlite3.connect(store_path(extractor(means)))
    connection.execute("BEGIN EXCLUSIVE")
    try:
        assert np.array_equal(cached_features(extractor(means), IMAGES), means(IMAGES))
    finally:
        connection.close()
    assert ["locked" in message for message in caplog.messages] == [True]


def test_a_folder_that_cannot_be_made_is_done_without(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "cache").write_text("a file where the folder should be")
    assert np.array_equal(cached_features(extractor(means), IMAGES), means(IMAGES))
    assert ["set CILF_CACHE to another folder" in line for line in caplog.messages] == [True]


def test_a_file_that_breaks_while_it_is_used_costs_nothing_but_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_cache, "COMPUTED", 3)

    def dropping(X: Array) -> Floats:
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE IF EXISTS features")
        connection.close()
        return means(X)

    breaking = replace(extractor(means), extract=dropping)
    path = store_path(breaking)
    assert np.array_equal(cached_features(breaking, IMAGES), means(IMAGES))
    assert ["no such table" in message for message in caplog.messages] == [True]
