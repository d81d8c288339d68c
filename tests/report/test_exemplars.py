from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf.evaluate.records import RunFolder, Snapshot
from cilf.report import exemplars
from cilf.report.exemplars import encode_thumbnail, select_exemplars, select_missed
from cilf.report.run import Run


def test_wrong_members_are_shown_in_proportion(run: Run, last: Snapshot) -> None:
    mixed, _, _, unmatched = select_exemplars(last, run.styles)
    assert [m.right for m in mixed.exemplars] == [True] * 20 + [False] * 12
    assert mixed.more == 0
    assert mixed.others == [("4", 12)]
    assert mixed.style == run.styles["2"]
    assert unmatched.style is None
    assert {m.truth for m in unmatched.exemplars} == {"4"}


def test_a_large_cluster_is_cut_evenly(
    run: Run, last: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exemplars, "MAX_EXEMPLARS", 8)
    mixed = select_exemplars(last, run.styles)[0]
    assert (len(mixed.exemplars), mixed.more) == (8, 24)
    assert sum(m.right for m in mixed.exemplars) == 5  # 20 of 32


def test_missed_instances_are_those_of_novel_classes_called_known(last: Snapshot) -> None:
    missed = select_missed(last)
    assert missed.classes == [("9", 20)]
    assert {m.truth for m in missed.exemplars} == {"9"}
    assert {m.nearest for m in missed.exemplars} == {"3"}


def test_of_texts_fewer_are_shown(
    run: Run, make_run: Callable[..., RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make_run(tmp_path, texts=True).read_snapshot(4)
    assert snapshot is not None
    monkeypatch.setattr(exemplars, "MAX_TEXTS", 5)
    mixed = select_exemplars(snapshot, run.styles)[0]
    assert (mixed.form, len(mixed.exemplars), mixed.more) == ("texts", 5, 27)
    assert len(select_missed(snapshot).exemplars) == 5
    assert mixed.exemplars[0].text == snapshot.texts[np.flatnonzero(snapshot.truth == 2)[0]]
    assert not any(member.image for member in mixed.exemplars)


def test_thumbnails_keep_their_pixels() -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    assert np.array_equal(decode(encode_thumbnail(grey)), grey)
    colour = np.stack([grey, grey.T, 255 - grey], axis=-1)
    assert np.array_equal(decode(encode_thumbnail(colour)), colour)
    assert decode(encode_thumbnail(np.zeros((100, 60, 3), dtype=np.uint8))).shape[0] == 48


def decode(uri: str) -> np.ndarray:
    packed = uri.removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(packed))))
