"""Encoded images as one array, which is decoded once into the cache and then memory-mapped.

A first pass reads the headers and chooses one form for all images. A second pass decodes. Both keep
only a few images in memory.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.cache import cached_folder
from cilf.core.documents import Document, read_document
from cilf.core.near_duplicates import count_near_duplicates, group_near_duplicates
from cilf.core.notices import warn_once
from cilf.core.progress import report
from cilf.core.types import Array, Bools
from cilf.data import pixels
from cilf.data.dataset import Dataset, Instances, Split
from cilf.data.npy import RowWriter
from cilf.data.options import Options
from cilf.data.pixels import Encoded, Form, Header, Size, Unreadable
from cilf.data.split import hold_out
from cilf.errors import BadInput

__all__ = [
    "Encoded",
    "EncodedImages",
    "Faults",
    "Source",
    "common_size",
    "decode_dataset",
    "decode_instances",
    "settle_faults",
]

FORMAT = 2  # version of the cached folder
LARGEST_SIDE = 96  # pixels; the networks take small images
SMALLEST_SIDE = 8
CHUNK = 32  # images that are decoded before they are written
CHUNK_ELSEWHERE = 4096  # the same, on a cluster
PARTS = "train", "test"
ALL = "all"  # the only part of unlabelled instances
NOTICES = "notices.json"
PIXELS_FOR_THREADS = 128 * 128  # threads do not speed up smaller images

Source = Callable[[], Iterable[tuple[str, Encoded]]]  # identities and images, in a fixed order
Faults = dict[int, str]  # row of an unreadable image -> its problem
Mapped = Callable[..., Iterable[Any]]  # the type of map

_elsewhere: ContextVar[Mapped | None] = ContextVar("cilf_decoding_map", default=None)


@contextmanager
def decoding_by(mapped: Mapped) -> Iterator[None]:
    """Let ``mapped``, in place of ``map``, read the headers and pixels of images in the block."""
    token = _elsewhere.set(mapped)
    try:
        yield
    finally:
        _elsewhere.reset(token)


@dataclass(frozen=True)
class EncodedImages:
    """Images that are still encoded.

    Attributes:
        where: the folder or file that holds the images, for messages.
        source: returns the identity and the content of each image, in the order of ``ids``.
        ids: the identities.
        y: the labels; None if there are none.
        in_test: whether each image is held out.
        key: plain values that identify the content.
        drawn_share: the share of each class that was drawn for ``in_test``; None if the data state
            what is held out. A drawn share is drawn again if there are near-duplicates.
    """

    where: str
    source: Source
    ids: Array  # (n,) str
    y: Array | None  # (n,)
    in_test: Bools  # (n,)
    key: Mapping[str, Any]
    drawn_share: float | None = None

    def __len__(self) -> int:
        return len(self.ids)


def decode_dataset(name: str, images: EncodedImages, options: Options) -> Dataset:
    """Decode labelled images to a data set; ``X`` of both splits is a memory map of uint8.

    Images are resized to one size (see :func:`common_size`) without cropping or padding. Their
    shape is (n, h, w) if all of them are grey, else (n, h, w, 3).
    """
    parts = dict(zip(PARTS, (~images.in_test, images.in_test), strict=True))
    train, test = _load_or_decode(images, options, parts)
    data = Dataset(name, train=Split(**train), test=Split(**test))
    if len(data.classes) < 2:
        raise BadInput(
            f"{images.where}: images of class {data.classes[0]!r} only are left to train on: "
            "give readable images of at least two classes."
        )
    return data


def decode_instances(images: EncodedImages, options: Options) -> Instances:
    """Decode all images to one form, without labels, as :func:`decode_dataset` does."""
    everything = {ALL: np.ones(len(images), dtype=bool)}
    (arrays,) = _load_or_decode(images, options, everything)
    return Instances(arrays["X"], arrays["ids"])


def common_size(sizes: Iterable[Size]) -> Size:
    """The height and width of resized images if no option states them.

    This is the size of the images if all share one of at most 96 pixels a side. Otherwise it is a
    square with the median of their larger sides, from 8 to 96 pixels.

    >>> common_size([(28, 20), (28, 20)])
    (28, 20)
    >>> common_size([(28, 20), (40, 60), (1000, 50)])
    (60, 60)
    """
    sizes = list(sizes)
    if len(set(sizes)) == 1 and max(sizes[0]) <= LARGEST_SIDE:
        return sizes[0]
    median = int(np.median([max(size) for size in sizes]))
    side = min(LARGEST_SIDE, max(SMALLEST_SIDE, median))
    return side, side


def _load_or_decode(
    images: EncodedImages, options: Options, parts: Mapping[str, Bools]
) -> list[dict[str, Array]]:
    """Load the arrays of each part from the cache, or decode the images."""
    key = _key(images, options, parts)
    make = partial(_make, images=images, options=options, parts=parts)
    folder = cached_folder("images", key, make)
    try:
        return _load(folder, parts)
    except (OSError, ValueError, EOFError):  # damaged
        shutil.rmtree(folder, ignore_errors=True)
        return _load(cached_folder("images", key, make), parts)


def _key(images: EncodedImages, options: Options, parts: Mapping[str, Bools]) -> dict[str, Any]:
    rows = {"ids": images.ids, "y": images.y, **parts}
    return {
        "format": FORMAT,
        "where": images.where,
        "content": dict(images.key),
        "rows": {name: None if array is None else _hash(array) for name, array in rows.items()},
        "size": options.size,
        "skip_bad": options.skip_bad,
        "drawn_share": images.drawn_share,
    }


def _hash(array: Array) -> str:
    hashed = hashlib.blake2b(array.dtype.str.encode(), digest_size=16)
    hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


class NoticesDocument(Document):
    """The schema of the notices that decoding gave."""

    lines: list[str]


def _load(folder: Path, parts: Iterable[str]) -> list[dict[str, Array]]:
    loaded = [_load_part(folder, part) for part in parts]
    for line in read_document(folder / NOTICES, NoticesDocument)["lines"]:
        warn_once(line)
    return loaded


def _load_part(folder: Path, part: str) -> dict[str, Array]:
    labelled = part != ALL
    arrays = {"X": np.load(folder / _file(part, "X"), mmap_mode="r", allow_pickle=False)}
    for name in ("ids", "y") if labelled else ("ids",):
        arrays[name] = np.load(folder / _file(part, name), allow_pickle=False)
    return arrays


def _file(part: str, name: str) -> str:
    return f"{part}-{name}.npy"


def _make(
    folder: Path, *, images: EncodedImages, options: Options, parts: Mapping[str, Bools]
) -> None:
    faults: Faults = {}
    with pixels.refuse_bombs():
        headers = _read_headers(images, faults)
        _refuse_faults(images.where, images.ids, faults, options.skip_bad)
        form = _common_form(headers, options)
        with _choose_map(headers) as mapped, _writers(folder, form, parts) as write:
            for row, image in _decode(images, form, mapped, faults):
                write(row, image)
    _refuse_faults(images.where, images.ids, faults, options.skip_bad)
    _write_rows(folder, images, faults, parts)
    if images.drawn_share is not None:
        _separate_near_duplicates(folder, images, images.drawn_share)
    lines = [
        *_describe_form(images, headers, form, options),
        *_describe_faults(images.where, images.ids, faults),
    ]
    (folder / NOTICES).write_text(json.dumps({"lines": lines}), encoding="utf-8")


def _read_headers(images: EncodedImages, faults: Faults) -> list[Header]:
    """Read the header of each image; unreadable images are added to the faults."""
    headers = []
    mapped = _elsewhere.get() or map
    encoded = (image for _, image in images.source())
    for row, header in enumerate(mapped(pixels.read_header, encoded)):
        if isinstance(header, Unreadable):
            faults[row] = header.reason
        else:
            headers.append(header)
        if (row + 1) % CHUNK == 0 or row + 1 == len(images):
            report("read", row + 1, len(images))
    return headers


def _common_form(headers: Sequence[Header], options: Options) -> Form:
    colour = not all(header.grey for header in headers)
    if isinstance(options.size, tuple):
        return Form.of_shape(options.size)
    if options.size is not None:
        return Form((options.size, options.size), colour)
    return Form(common_size(header.size for header in headers), colour)


@contextmanager
def _choose_map(headers: Sequence[Header]) -> Iterator[Mapped]:
    """Choose ``map`` of Python, or that of a thread pool for large images, or the one given."""
    if elsewhere := _elsewhere.get():
        yield elsewhere
        return
    typical = np.median([header.size[0] * header.size[1] for header in headers])
    if typical < PIXELS_FOR_THREADS:
        yield map
    else:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            yield pool.map


@contextmanager
def _writers(
    folder: Path, form: Form, parts: Mapping[str, Bools]
) -> Iterator[Callable[[int, Array], None]]:
    """Open the file of each part; yields a function that writes an image to its part."""
    with ExitStack() as stack:
        files = [
            (members, stack.enter_context(RowWriter(folder / _file(part, "X"), form.shape, "u1")))
            for part, members in parts.items()
        ]

        def write(row: int, image: Array) -> None:
            next(file for members, file in files if members[row]).append(image)

        yield write


def _decode(
    images: EncodedImages, form: Form, mapped: Mapped, faults: Faults
) -> Iterator[tuple[int, Array]]:
    """Yield the row and pixels of each readable image; add the others to the faults."""
    done, total = 0, len(images) - len(faults)
    rows = enumerate(encoded for _, encoded in images.source())
    readable = (item for item in rows if item[0] not in faults)
    size = CHUNK if _elsewhere.get() is None else CHUNK_ELSEWHERE
    while chunk := list(itertools.islice(readable, size)):
        results = mapped(partial(pixels.read_pixels, form=form), [image for _, image in chunk])
        for (row, _), result in zip(chunk, results, strict=True):
            if isinstance(result, Unreadable):
                faults[row] = result.reason
            else:
                yield row, result
        done += len(chunk)
        report("decode", done, total)


def _write_rows(
    folder: Path, images: EncodedImages, faults: Faults, parts: Mapping[str, Bools]
) -> None:
    good = np.ones(len(images), dtype=bool)
    good[list(faults)] = False
    for part, members in parts.items():
        if members.any() and not (members & good).any():
            raise BadInput(
                f"{images.where}: no image of its {part} part can be read "
                f"({_list(images.ids, faults, 3)}): give readable ones."
            )
        np.save(folder / _file(part, "ids"), images.ids[members & good])
        if images.y is not None:
            np.save(folder / _file(part, "y"), images.y[members & good])


def _separate_near_duplicates(folder: Path, images: EncodedImages, share: float) -> None:
    """Draw the held-out part again, so that near-duplicates are in one part."""
    train, test = (_load_part(folder, part) for part in PARTS)
    group = group_near_duplicates(train["X"], test["X"])
    if not count_near_duplicates(group):
        return
    both = {name: np.concatenate([train[name], test[name]]) for name in ("ids", "y")}
    place = {identity: row for row, identity in enumerate(images.ids.tolist())}
    order = np.argsort([place[identity] for identity in both["ids"].tolist()])
    in_test = hold_out(both["y"][order], share, where=images.where, group=group[order])
    new = folder / "new"
    new.mkdir()
    for part, rows in zip(PARTS, (order[~in_test], order[in_test]), strict=True):
        with RowWriter(new / _file(part, "X"), train["X"].shape[1:], "u1") as file:
            for row in rows.tolist():
                is_train = row < len(train["X"])
                file.append(train["X"][row] if is_train else test["X"][row - len(train["X"])])
        for name, values in both.items():
            np.save(new / _file(part, name), values[rows])
    for path in new.iterdir():
        path.replace(folder / path.name)
    new.rmdir()


def settle_faults(where: str, ids: Array, skip_bad: bool, faults: Faults) -> Bools:
    """Select the images to keep: all but those with faults, which are refused or reported."""
    _refuse_faults(where, ids, faults, skip_bad)
    for line in _describe_faults(where, ids, faults):
        warn_once(line)
    keep = np.ones(len(ids), dtype=bool)
    keep[list(faults)] = False
    return keep


def _refuse_faults(where: str, ids: Array, faults: Faults, skip_bad: bool) -> None:
    if len(faults) == len(ids):
        first = f" ({_list(ids, faults, 3)})" if faults else ""
        raise BadInput(
            f"{where}: none of {_count(len(ids), 'image')} can be read{first}: give readable ones."
        )
    if faults and not skip_bad:
        raise BadInput(
            f"{where}: {len(faults)} of {_count(len(ids), 'image')} cannot be read "
            f"({_list(ids, faults, 3)}): repair or remove them, or skip them "
            "(--skip-bad, skip_bad=True)."
        )


def _describe_faults(where: str, ids: Array, faults: Faults) -> list[str]:
    if not faults:
        return []
    return [
        f"{where}: skipped {len(faults)} of {_count(len(ids), 'image')} that cannot be read "
        f"({_list(ids, faults, 10)})"
    ]


def _describe_form(
    images: EncodedImages, headers: Sequence[Header], form: Form, options: Options
) -> list[str]:
    """Describe how the images were changed, if they were."""
    sizes = {header.size for header in headers}
    modes = {header.mode for header in headers}
    if sizes == {form.size} and len(modes) == 1:
        return []
    hint = " (size=..., on the command line --size, changes it)" if options.size is None else ""
    return [
        f"{images.where}: {_count(len(headers), 'image')} of {_count(len(sizes), 'size')} and "
        f"{_count(len(modes), 'mode')} are brought to {form.size[0]} x {form.size[1]} pixels, "
        f"{'colour' if form.colour else 'grey'}{hint}"
    ]


def _list(ids: Array, faults: Faults, most: int) -> str:
    shown = [f"{ids[row]}: {faults[row]}" for row in sorted(faults)[:most]]
    more = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
