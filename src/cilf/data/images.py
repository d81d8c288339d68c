"""Many encoded images as one array: decoded once into the cache, memory-mapped after that.

A first pass reads the headers and chooses one form for all, a second one decodes. Neither holds
more than a few images at a time.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.cache import cached_folder
from cilf.core.notices import notice
from cilf.core.progress import report
from cilf.core.types import Array, Bools
from cilf.data import pixels
from cilf.data.dataset import Dataset, Instances, Split
from cilf.data.npy import RowWriter
from cilf.data.options import Options
from cilf.data.pixels import Encoded, Form, Header, Size, Unreadable
from cilf.errors import BadInput

__all__ = ["Encoded", "Pictures", "Source", "common_size", "decoded_dataset", "decoded_instances"]

FORMAT = 1  # of the cached folder
LARGEST_SIDE = 96  # pixels; the networks are made for small images
SMALLEST_SIDE = 8
CHUNK = 32  # images that are decoded before they are written
ALL = "all"  # the one part of unlabelled instances
NOTICES = "notices.json"
PIXELS_FOR_THREADS = 128 * 128  # smaller images are decoded faster than handed to a thread

Source = Callable[[], Iterable[tuple[str, Encoded]]]  # identities and images, the same each time
Faults = dict[int, str]  # row -> why it cannot be read
Mapped = Callable[..., Iterable[Any]]  # the type of map


@dataclass(frozen=True)
class Pictures:
    """Images that are still encoded.

    Attributes:
        where: what messages call them, a folder or a file.
        source: gives the identity and the content of each image, in the order of ``ids``.
        ids: identities.
        y: labels; None if there are none.
        in_test: which images are held out.
        key: plain values that are others as soon as the content is another.
    """

    where: str
    source: Source
    ids: Array  # (n,) str
    y: Array | None  # (n,)
    in_test: Bools  # (n,)
    key: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.ids)


def decoded_dataset(name: str, pictures: Pictures, options: Options) -> Dataset:
    """Labelled images as a data set; both ``X`` are memory maps of uint8, of one form.

    Images are squeezed to one size (see :func:`common_size`), nothing is cropped or padded. They
    are (n, h, w) if all of them are grey, else (n, h, w, 3).
    """
    parts = {"train": ~pictures.in_test, "test": pictures.in_test}
    train, test = _decoded(pictures, options, parts)
    data = Dataset(name, train=Split(**train), test=Split(**test))
    if len(data.classes) < 2:
        raise BadInput(
            f"{pictures.where}: images of class {data.classes[0]!r} only are left to train on: "
            "give readable images of at least two classes."
        )
    return data


def decoded_instances(pictures: Pictures, options: Options) -> Instances:
    """All images without their labels, brought to one form as :func:`decoded_dataset` does."""
    everything = {ALL: np.ones(len(pictures), dtype=bool)}
    (arrays,) = _decoded(pictures, options, everything)
    return Instances(arrays["X"], arrays["ids"])


def common_size(sizes: Iterable[Size]) -> Size:
    """Height and width that images are brought to if nobody says otherwise.

    Their own if they share one of at most 96 pixels a side; else a square with the median of
    their larger sides, from 8 to 96 pixels.

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


def _decoded(
    pictures: Pictures, options: Options, parts: Mapping[str, Bools]
) -> list[dict[str, Array]]:
    """The arrays of each part, from the cache if they are there and whole."""
    key = _key(pictures, options, parts)
    make = partial(_make, pictures=pictures, options=options, parts=parts)
    folder = cached_folder("images", key, make)
    try:
        return _load(folder, parts)
    except (OSError, ValueError, EOFError):  # damaged
        shutil.rmtree(folder, ignore_errors=True)
        return _load(cached_folder("images", key, make), parts)


def _key(pictures: Pictures, options: Options, parts: Mapping[str, Bools]) -> dict[str, Any]:
    rows = {"ids": pictures.ids, "y": pictures.y, **parts}
    return {
        "format": FORMAT,
        "where": pictures.where,
        "content": dict(pictures.key),
        "rows": {name: None if array is None else _hash(array) for name, array in rows.items()},
        "size": options.size,
        "skip_bad": options.skip_bad,
    }


def _hash(array: Array) -> str:
    hashed = hashlib.blake2b(array.dtype.str.encode(), digest_size=16)
    hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def _load(folder: Path, parts: Iterable[str]) -> list[dict[str, Array]]:
    loaded = [_load_part(folder, part) for part in parts]
    for line in json.loads((folder / NOTICES).read_text(encoding="utf-8")):
        notice(line)
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
    folder: Path, *, pictures: Pictures, options: Options, parts: Mapping[str, Bools]
) -> None:
    faults: Faults = {}
    with pixels.strict_about_bombs():
        headers = _survey(pictures, faults)
        _refuse_faults(pictures, faults, options)
        form = _common_form(headers, options)
        with _mapping(headers) as mapped, _writers(folder, form, parts) as write:
            for row, image in _decode(pictures, form, mapped, faults):
                write(row, image)
    _refuse_faults(pictures, faults, options)
    _write_rows(folder, pictures, faults, parts)
    lines = [*_about_form(pictures, headers, form, options), *_about_faults(pictures, faults)]
    (folder / NOTICES).write_text(json.dumps(lines), encoding="utf-8")


def _survey(pictures: Pictures, faults: Faults) -> list[Header]:
    """The header of each readable image; what is not goes to the faults."""
    headers = []
    for row, (_, encoded) in enumerate(pictures.source()):
        header = pixels.read_header(encoded)
        if isinstance(header, Unreadable):
            faults[row] = header.reason
        else:
            headers.append(header)
        if (row + 1) % CHUNK == 0 or row + 1 == len(pictures):
            report("read", row + 1, len(pictures))
    return headers


def _common_form(headers: Sequence[Header], options: Options) -> Form:
    colour = not all(header.grey for header in headers)
    if isinstance(options.size, tuple):
        height, width, *channels = options.size
        return Form((height, width), bool(channels))
    if options.size is not None:
        return Form((options.size, options.size), colour)
    return Form(common_size(header.size for header in headers), colour)


@contextmanager
def _mapping(headers: Sequence[Header]) -> Iterator[Mapped]:
    """``map``, or one that works on several images at a time if that is faster."""
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
    """A function that adds an image to the file of the part that its row belongs to."""
    with ExitStack() as stack:
        files = [
            (members, stack.enter_context(RowWriter(folder / _file(part, "X"), form.shape, "u1")))
            for part, members in parts.items()
        ]

        def write(row: int, image: Array) -> None:
            next(file for members, file in files if members[row]).append(image)

        yield write


def _decode(
    pictures: Pictures, form: Form, mapped: Mapped, faults: Faults
) -> Iterator[tuple[int, Array]]:
    """The row and pixels of every image without a fault; those that show one now are noted."""
    done, total = 0, len(pictures) - len(faults)
    rows = enumerate(encoded for _, encoded in pictures.source())
    readable = (item for item in rows if item[0] not in faults)
    while chunk := list(itertools.islice(readable, CHUNK)):
        results = mapped(partial(pixels.read_pixels, form=form), [image for _, image in chunk])
        for (row, _), result in zip(chunk, results, strict=True):
            if isinstance(result, Unreadable):
                faults[row] = result.reason
            else:
                yield row, result
        done += len(chunk)
        report("decode", done, total)


def _write_rows(
    folder: Path, pictures: Pictures, faults: Faults, parts: Mapping[str, Bools]
) -> None:
    good = np.ones(len(pictures), dtype=bool)
    good[list(faults)] = False
    for part, members in parts.items():
        if members.any() and not (members & good).any():
            raise BadInput(
                f"{pictures.where}: no image of its {part} part can be read "
                f"({_listed(pictures, faults, 3)}): give readable ones."
            )
        np.save(folder / _file(part, "ids"), pictures.ids[members & good])
        if pictures.y is not None:
            np.save(folder / _file(part, "y"), pictures.y[members & good])


def _refuse_faults(pictures: Pictures, faults: Faults, options: Options) -> None:
    if len(faults) == len(pictures):
        first = f" ({_listed(pictures, faults, 3)})" if faults else ""
        raise BadInput(
            f"{pictures.where}: none of {_count(len(pictures), 'image')} can be read{first}: "
            "give readable ones."
        )
    if faults and not options.skip_bad:
        raise BadInput(
            f"{pictures.where}: {len(faults)} of {_count(len(pictures), 'image')} cannot be read "
            f"({_listed(pictures, faults, 3)}): repair or remove them, or skip them "
            "(--skip-bad, skip_bad=True)."
        )


def _about_faults(pictures: Pictures, faults: Faults) -> list[str]:
    if not faults:
        return []
    return [
        f"{pictures.where}: skipped {len(faults)} of {_count(len(pictures), 'image')} that cannot "
        f"be read ({_listed(pictures, faults, 10)})"
    ]


def _about_form(
    pictures: Pictures, headers: Sequence[Header], form: Form, options: Options
) -> list[str]:
    """What was done to the images, if anything was."""
    sizes = {header.size for header in headers}
    modes = {header.mode for header in headers}
    if sizes == {form.size} and len(modes) == 1:
        return []
    hint = " (size=..., on the command line --size, changes it)" if options.size is None else ""
    return [
        f"{pictures.where}: {_count(len(headers), 'image')} of {_count(len(sizes), 'size')} and "
        f"{_count(len(modes), 'mode')} are brought to {form.size[0]} x {form.size[1]} pixels, "
        f"{'colour' if form.colour else 'grey'}{hint}"
    ]


def _listed(pictures: Pictures, faults: Faults, most: int) -> str:
    shown = [f"{pictures.ids[row]}: {faults[row]}" for row in sorted(faults)[:most]]
    more = len(faults) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
