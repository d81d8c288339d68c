from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cilf.core import notices
from cilf.core.progress import listen
from cilf.data import pixels
from cilf.data.images import (
    Encoded,
    EncodedImages,
    common_size,
    decode_dataset,
    decode_instances,
    decoding_by,
)
from cilf.data.options import Options
from cilf.errors import BadConfig, BadInput


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))
    notices.forget()
    return tmp_path / "cache"


def image(level: int, size: tuple[int, int] = (6, 8), mode: str = "L") -> bytes:
    """A PNG of one level of grey, of this height and width."""
    file = io.BytesIO()
    Image.new("L", size[::-1], level).convert(mode).save(file, "PNG")
    return file.getvalue()


def truncated() -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    return file.getvalue()[:1000]


def pictures(
    images: Sequence[Encoded], *, in_test: Iterable[int] = (1,), **more: Any
) -> EncodedImages:
    ids = [f"{row}.png" for row in range(len(images))]
    held_out = np.isin(np.arange(len(images)), list(in_test))
    values: dict[str, Any] = {
        "where": "photos",
        "source": partial(zip, ids, images),
        "ids": np.array(ids),
        "y": np.array(["a", "a", "b", "b"] * len(images))[: len(images)],
        "in_test": held_out,
        "key": {"files": "1"},
    }
    return EncodedImages(**(values | more))


LEVELS = [image(level) for level in (10, 20, 30, 40)]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "cilf"]


def only_folder(cache: Path) -> Path:
    (folder,) = (cache / "images").iterdir()
    return folder


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(pixels, "_pillow", fail)


def test_rows_keep_their_label_and_identity_in_both_splits() -> None:
    data = decode_dataset("mine", pictures(LEVELS, in_test=[1, 2]), Options())
    assert data.name == "mine"
    assert data.train.X.shape == (2, 6, 8)
    assert data.train.X[:, 0, 0].tolist() == [10, 40]
    assert data.train.y.tolist() == ["a", "b"]
    assert data.train.ids.tolist() == ["0.png", "3.png"]
    assert data.test.X[:, 0, 0].tolist() == [20, 30]
    assert data.test.y.tolist() == ["a", "b"]
    assert data.test.ids.tolist() == ["1.png", "2.png"]


def test_images_are_memory_maps_of_bytes() -> None:
    data = decode_dataset("mine", pictures(LEVELS), Options())
    assert isinstance(data.train.X, np.memmap)
    assert isinstance(data.test.X, np.memmap)
    assert data.train.X.dtype == np.uint8
    assert not data.train.X.flags.writeable


def test_nothing_may_be_held_out() -> None:
    data = decode_dataset("mine", pictures(LEVELS, in_test=[]), Options())
    assert data.test.X.shape == (0, 6, 8)


def test_instances_are_all_images_without_labels(caplog: pytest.LogCaptureFixture) -> None:
    for y in (None, np.array([1, 1, 2, 2])):
        found = decode_instances(pictures(LEVELS, y=y), Options())
        assert isinstance(found.X, np.memmap)
        assert found.X[:, 0, 0].tolist() == [10, 20, 30, 40]
        assert found.ids.tolist() == ["0.png", "1.png", "2.png", "3.png"]
    assert said(caplog) == []


def test_another_map_reads_headers_and_pixels() -> None:
    images = pictures([image(level) for level in range(5)])
    plain, used = decode_instances(images, Options()).X, []

    def elsewhere(read: Any, encoded: Iterable[Encoded]) -> Iterable[Any]:
        results = [read(one) for one in encoded]
        used.append(len(results))
        return results

    with decoding_by(elsewhere):
        X = decode_instances(images, Options(size=(6, 8))).X  # which is not in the cache
    assert np.array_equal(X, plain)
    assert used == [5, 5]


def test_int_labels_stay_ints() -> None:
    data = decode_dataset("mine", pictures(LEVELS, y=np.array([7, 7, 9, 9])), Options())
    assert data.classes == [7, 9]


@pytest.mark.parametrize("side", [8, 200])  # without and with threads
def test_many_images_from_paths_stay_in_order(tmp_path: Path, side: int) -> None:
    paths = []
    for row in range(70):
        paths.append(tmp_path / f"{row}.png")
        paths[-1].write_bytes(image(row, (side, side)))
    found = decode_instances(pictures(paths), Options(size=8))
    assert found.X[:, 3, 3].tolist() == list(range(70))


# One size and mode


def test_one_size_and_mode_is_kept_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    found = decode_instances(pictures([image(1, (5, 96), "RGB")] * 2), Options())
    assert found.X.shape == (2, 5, 96, 3)
    assert said(caplog) == []


def test_mixed_sizes_and_modes_are_brought_to_one_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    images = [image(10, (20, 10)), image(20, (12, 30), "RGB"), image(30, (40, 40), "RGBA")]
    found = decode_instances(pictures(images), Options())
    assert found.X.shape == (3, 30, 30, 3)
    assert found.X[:, 15, 15, 1].tolist() == [10, 20, 30]
    told = "photos: 3 images of 3 sizes and 3 modes are brought to 30 x 30 pixels, colour"
    assert said(caplog) == [f"{told} (size=..., on the command line --size, changes it)"]


def test_mixed_grey_modes_stay_grey(caplog: pytest.LogCaptureFixture) -> None:
    images = [image(255), image(255, mode="1"), image(99, mode="LA"), image(9, mode="I;16")]
    found = decode_instances(pictures(images), Options())
    assert found.X.shape == (4, 6, 8)
    assert found.X[:3, 0, 0].tolist() == [255, 255, 99]
    (line,) = said(caplog)
    assert "4 images of 1 size and 4 modes are brought to 6 x 8 pixels, grey" in line


def test_the_size_can_be_chosen(caplog: pytest.LogCaptureFixture) -> None:
    found = decode_instances(pictures(LEVELS), Options(size=16))
    assert found.X.shape == (4, 16, 16)
    assert said(caplog) == [
        "photos: 4 images of 1 size and 1 mode are brought to 16 x 16 pixels, grey"
    ]


def test_turned_photos_have_the_size_they_are_shown_in(caplog: pytest.LogCaptureFixture) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    Image.new("L", (6, 8), 5).save(file, "PNG", exif=exif)
    found = decode_instances(pictures([image(1, (6, 8)), file.getvalue()]), Options())
    assert found.X.shape == (2, 6, 8)
    assert said(caplog) == []


@pytest.mark.parametrize(
    ("sizes", "common"),
    [
        ([(3, 4)] * 2, (3, 4)),
        ([(96, 20)] * 2, (96, 20)),
        ([(97, 20)] * 2, (96, 96)),
        ([(3, 4), (4, 3)], (8, 8)),
        ([(10, 20), (30, 20)], (25, 25)),
        ([(10, 20), (30, 20), (500, 1)], (30, 30)),
        ([(1000, 2000), (1, 300)], (96, 96)),
    ],
)
def test_common_size(sizes: list[tuple[int, int]], common: tuple[int, int]) -> None:
    assert common_size(sizes) == common
    assert all(type(side) is int for side in common_size(sizes))


sides = st.integers(1, 300)


@given(st.lists(st.tuples(sides, sides), min_size=1))
def test_a_common_size_is_moderate_and_does_not_depend_on_order(
    sizes: list[tuple[int, int]],
) -> None:
    height, width = common_size(sizes)
    assert max(height, width) <= 96
    assert (height, width) == common_size(sizes[::-1])
    assert (height, width) in sizes or (height == width and height >= 8)


# Images that cannot be read


def test_unreadable_images_are_refused_by_name(cache: Path) -> None:
    images = [LEVELS[0], b"x", LEVELS[1], b"x", b"x", b"x"]
    message = (
        "photos: 4 of 6 images cannot be read (1.png: not an image of a known format; 3.png: not "
        "an image of a known format; 4.png: not an image of a known format; and 1 more): repair "
        "or remove them, or skip them (--skip-bad, skip_bad=True)."
    )
    with pytest.raises(BadInput, match=re.escape(message)):
        decode_instances(pictures(images), Options())
    assert list((cache / "images").iterdir()) == []


def test_images_that_turn_out_unreadable_later_are_refused_by_name(cache: Path) -> None:
    message = r"photos: 1 of 3 images cannot be read \(1.png: .*truncated.*\): repair or remove"
    with pytest.raises(BadInput, match=message):
        decode_instances(pictures([LEVELS[0], truncated(), LEVELS[1]]), Options())
    assert list((cache / "images").iterdir()) == []


def test_skipped_images_leave_all_arrays_and_are_told(caplog: pytest.LogCaptureFixture) -> None:
    images = [LEVELS[0], b"x", LEVELS[1], truncated(), LEVELS[2], LEVELS[3]]
    options = Options(skip_bad=True, size=8)
    y = np.array(["a", "a", "a", "b", "b", "b"])
    data = decode_dataset("mine", pictures(images, in_test=[1, 2], y=y), options)
    assert data.train.X[:, 0, 0].tolist() == [10, 30, 40]
    assert data.train.y.tolist() == ["a", "b", "b"]
    assert data.train.ids.tolist() == ["0.png", "4.png", "5.png"]
    assert data.test.X[:, 0, 0].tolist() == [20]
    assert data.test.y.tolist() == ["a"]
    assert data.test.ids.tolist() == ["2.png"]
    _, told = said(caplog)
    start = "photos: skipped 2 of 6 images that cannot be read (1.png: not an image of a known"
    assert told.startswith(start)
    assert "; 3.png: " in told


def test_ten_skipped_images_are_named(caplog: pytest.LogCaptureFixture) -> None:
    decode_instances(pictures([LEVELS[0], *[b"x"] * 12]), Options(skip_bad=True))
    (told,) = said(caplog)
    assert "skipped 12 of 13 images" in told
    assert "10.png" in told
    assert "11.png" not in told
    assert told.endswith("; and 2 more)")


def test_skipping_was_not_agreed_to_just_because_it_was_once() -> None:
    bad = pictures([*LEVELS, b"x"])
    decode_instances(bad, Options(skip_bad=True))
    with pytest.raises(BadInput, match="1 of 5 images cannot be read"):
        decode_instances(bad, Options())


@pytest.mark.parametrize("content", [b"x", truncated()])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_nothing_readable_is_refused_either_way(content: bytes, skip_bad: bool) -> None:
    with pytest.raises(BadInput, match=r"none of 2 images can be read \(0.png: .*: give readable"):
        decode_instances(pictures([content] * 2), Options(skip_bad=skip_bad))


def test_no_images_at_all_are_refused() -> None:
    with pytest.raises(BadInput, match="none of 0 images can be read: give readable ones"):
        decode_instances(pictures([]), Options())


def test_a_split_that_loses_all_its_images_is_refused() -> None:
    bad = pictures([LEVELS[0], b"x", LEVELS[1], b"x"], in_test=[1, 3])
    with pytest.raises(BadInput, match=r"no image of its test part can be read \(1.png: "):
        decode_dataset("mine", bad, Options(skip_bad=True))


def test_a_class_left_in_the_test_split_only_is_refused() -> None:
    bad = pictures([LEVELS[0], LEVELS[0], b"x", LEVELS[1]], in_test=[3])
    with pytest.raises(BadInput, match=re.escape("training split lacks (['b'])")):
        decode_dataset("mine", bad, Options(skip_bad=True))


def test_a_single_class_left_is_refused() -> None:
    bad = pictures([LEVELS[0], LEVELS[0], b"x", b"x"])
    with pytest.raises(BadInput, match=r"class 'a' only are left .* at least two classes"):
        decode_dataset("mine", bad, Options(skip_bad=True))


def test_a_claim_to_be_huge_is_no_reason_to_die(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # 1,600 pixels warn, 10,000 are an error
    images = [LEVELS[0], image(1, (40, 40)), image(1, (100, 100))]
    with pytest.raises(BadInput, match=r"2 of 3 images cannot be read .*exceeds limit.*exceeds"):
        decode_instances(pictures(images), Options())


# The cache


def test_a_second_load_reads_no_image(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = pictures([LEVELS[0], image(20, (9, 9)), *LEVELS[2:], b"x"])
    options = Options(skip_bad=True)
    first = decode_dataset("mine", mixed, options)
    told = said(caplog)
    assert len(told) == 2
    forbid_reading(monkeypatch)
    caplog.clear()
    again = decode_dataset("mine", mixed, options)
    assert said(caplog) == []  # told already
    assert (again.train.X == first.train.X).all()
    assert again.train.ids.tolist() == first.train.ids.tolist()
    assert again.test.y.tolist() == first.test.y.tolist()
    notices.forget()  # as in a new process
    decode_dataset("mine", mixed, options)
    assert said(caplog) == told


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        pytest.param({"key": {"files": "2"}}, Options(), id="content"),
        pytest.param({"in_test": [2]}, Options(), id="split"),
        pytest.param({"y": np.array(["b", "b", "a", "a"])}, Options(), id="labels"),
        pytest.param({"ids": np.array(["p", "q", "r", "s"])}, Options(), id="identities"),
        pytest.param({}, Options(size=8), id="size"),
    ],
)
def test_whatever_changes_is_decoded_again(
    cache: Path, changes: dict[str, Any], options: Options
) -> None:
    decode_dataset("mine", pictures(LEVELS), Options())
    decode_dataset("mine", pictures(LEVELS, **changes), options)
    assert len(list((cache / "images").iterdir())) == 2


@pytest.mark.parametrize("name", ["train-X.npy", "test-ids.npy", "train-y.npy", "notices.json"])
@pytest.mark.parametrize("size", [None, 0, 30, 140])
def test_a_damaged_cache_is_made_again(cache: Path, name: str, size: int | None) -> None:
    images = [image(level, (20, 20)) for level in (1, 2, 3, 4)]
    decode_dataset("mine", pictures(images), Options())
    path = only_folder(cache) / name
    whole = path.read_bytes()
    if size is None:
        path.unlink()
    else:
        path.write_bytes(whole[: min(size, len(whole) - 1)])
    data = decode_dataset("mine", pictures(images), Options())
    assert path.read_bytes() == whole
    assert data.train.X[:, 0, 0].tolist() == [1, 3, 4]


def test_pillow_is_asked_for_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(BadConfig, match=re.escape("reading images needs PIL: pip install")):
        decode_instances(pictures(LEVELS), Options())


# Progress and memory


def test_both_passes_tell_how_far_they_are() -> None:
    heard: list[tuple[str, int, int]] = []
    with listen(lambda *step: heard.append(step)):
        decode_instances(pictures([*[LEVELS[0]] * 40, b"x"]), Options(skip_bad=True))
    assert heard == [("read", 32, 41), ("read", 41, 41), ("decode", 32, 40), ("decode", 40, 40)]


def test_few_encoded_images_are_held_at_a_time() -> None:
    class Content(bytes):
        alive, most = 0, 0

        def __init__(self, _: bytes) -> None:
            Content.alive += 1
            Content.most = max(Content.most, Content.alive)

        def __del__(self) -> None:
            Content.alive -= 1

    ids = np.array([f"{row}.png" for row in range(300)])

    def source() -> Iterable[tuple[str, bytes]]:
        return ((name, Content(LEVELS[0])) for name in ids)

    found = decode_instances(pictures([b""] * 300, source=source, ids=ids), Options())
    assert len(found) == 300
    assert Content.most < 100


def test_the_filters_of_warnings_are_left_as_they_were() -> None:
    before = list(warnings.filters)
    decode_instances(pictures(LEVELS), Options())
    assert list(warnings.filters) == before
