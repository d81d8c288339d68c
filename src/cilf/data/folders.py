"""Folders of images: a folder for each class, or a flat folder of unlabelled images."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath

import numpy as np

from cilf.core.cache import fingerprint
from cilf.core.notices import warn_once
from cilf.core.types import Array, Bools
from cilf.data.dataset import Dataset, Instances
from cilf.data.images import EncodedImages, decode_dataset, decode_instances
from cilf.data.options import Options
from cilf.data.pixels import IMAGE_SUFFIXES, is_image
from cilf.data.reader import Reader
from cilf.data.split import hold_out, parse_split
from cilf.errors import BadInput

CLUTTER = frozenset({"__macosx", "thumbs.db"})  # left behind by operating systems
WHOLE_NUMBER = re.compile("0|[1-9][0-9]{0,17}")  # 18 digits fit in 64 bits
REMEDY = "put the images of each class into a folder of its own"


def read_folder(path: Path, options: Options) -> EncodedImages:
    """Find the images of a folder of class folders; the name of a class folder is the label.

    Images may lie at any depth below a class folder. Labels are ints if all names are whole
    numbers without leading zeros. The class folders may lie in folders ``train``, ``test`` and
    ``val``; the images in ``test`` and ``val`` are held out then. Otherwise a share of each class
    is held out. The identity of an image is its path in the folder.
    """
    images = _find_images(path)
    n_above = 1 if _is_split(images) else 0  # folders above the class folders
    _require_class_folders(path, images, n_above)
    _report_empty(path, images, n_above)
    names = [image.parts[n_above] for image in images]
    _require_text(path, names)
    y = _to_labels(names)
    if len(np.unique(y)) < 2:
        raise BadInput(
            f"{path} has images of one class only ({y[0].item()!r}): {REMEDY}, for at least "
            "two classes."
        )
    in_test = _find_test_images(path, images) if n_above else None
    if in_test is not None:
        return _collect(path, images, y, in_test)
    in_test = hold_out(y, options.test_share, where=str(path))
    return replace(_collect(path, images, y, in_test), drawn_share=options.test_share)


def read_flat_folder(path: Path) -> EncodedImages:
    """Find the images of :func:`find_flat`, without labels."""
    chosen = find_flat(path)
    return _collect(path, chosen, None, np.zeros(len(chosen), dtype=bool))


def find_flat(path: Path) -> list[PurePath]:
    """Find the images directly in a folder; at any depth if there are none."""
    images = _find_images(path)
    direct = [image for image in images if len(image.parts) == 1]
    if direct and len(direct) < len(images):
        warn_once(f"{path}: {len(images) - len(direct)} images in folders inside it are left out")
    return direct or images


def _collect(
    path: Path, images: Sequence[PurePath], y: Array | None, in_test: Bools
) -> EncodedImages:
    folder = path.absolute()
    ids = [image.as_posix() for image in images]
    files = [folder / image for image in images]
    # A dangling link has no fingerprint. It is reported as an unreadable image.
    key = {"files": fingerprint(file for file in files if file.exists())}
    return EncodedImages(str(path), partial(zip, ids, files), np.array(ids), y, in_test, key)


def _find_images(path: Path) -> list[PurePath]:
    """Find all images below a folder, as relative paths in natural order."""
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise BadInput(f"{path} {what}: name a folder of images.")
    files = [PurePath(file.relative_to(path)) for file in _walk(path)]
    files.sort(key=lambda file: [_sort_key(part) for part in file.parts])
    images = [file for file in files if is_image(file)]
    if not images:
        kinds = " ".join(sorted(IMAGE_SUFFIXES))
        raise BadInput(f"{path} holds no images: name a folder that does ({kinds}).")
    others = [file.as_posix() for file in files if not is_image(file)]
    if others:
        files_are = "file that is no image" if len(others) == 1 else "files that are no images"
        warn_once(f"{path}: ignored {len(others)} {files_are} ({_shorten(others)})")
    return images


def _walk(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield all files below a folder; links are followed unless they lead back up."""
    real = folder.resolve()
    if real in above:
        return
    for entry in folder.iterdir():
        if _is_clutter(entry):
            continue
        if entry.is_dir():
            yield from _walk(entry, above | {real})
        else:
            yield entry


def _is_clutter(entry: PurePath) -> bool:
    return entry.name.startswith(".") or entry.name.lower() in CLUTTER


def _sort_key(name: str) -> tuple[list[str | int], str]:
    """The key that sorts 10 after 9; the name itself distinguishes 1 from 01."""
    pieces = re.split("([0-9]+)", name.casefold())
    return [int(piece) if odd % 2 else piece for odd, piece in enumerate(pieces)], name


def _shorten(names: Iterable[str]) -> str:
    """Join the first few names."""
    names = list(names)
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _is_split(images: Sequence[PurePath]) -> bool:
    tops = {image.parts[0] for image in images if len(image.parts) > 1}
    return bool(tops) and None not in map(parse_split, tops)


def _require_class_folders(path: Path, images: Sequence[PurePath], n_above: int) -> None:
    """Refuse images outside class folders."""
    loose = [image.as_posix() for image in images if len(image.parts) < n_above + 2]
    if not loose:
        return
    classes = dict.fromkeys(
        "/".join(image.parts[: n_above + 1]) for image in images if len(image.parts) > n_above + 1
    )
    if not classes:
        raise BadInput(f"{path} holds images ({_shorten(loose)}) but no class folders: {REMEDY}.")
    raise BadInput(
        f"{path} holds images ({_shorten(loose)}) beside class folders ({_shorten(classes)}): "
        f"{REMEDY}, or move them away."
    )


def _report_empty(path: Path, images: Sequence[PurePath], n_above: int) -> None:
    """Report class folders without images, which make no class."""
    filled = {PurePath(*image.parts[: n_above + 1]) for image in images}
    above = dict.fromkeys(PurePath(*image.parts[:n_above]) for image in images)
    folders = (folder for upper in above for folder in (path / upper).iterdir() if folder.is_dir())
    names = (PurePath(folder.relative_to(path)) for folder in folders if not _is_clutter(folder))
    if empty := sorted(name.as_posix() for name in names if name not in filled):
        warn_once(f"{path}: no images, hence no class, in {_shorten(empty)}")


def _require_text(path: Path, classes: Iterable[str]) -> None:
    """Refuse class names that are not UTF-8: reports and plots cannot show them."""
    for name in dict.fromkeys(classes):
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"{path} has a class folder {name!r}, which is not UTF-8: rename it."
            ) from error


def _to_labels(names: Sequence[str]) -> Array:
    if all(WHOLE_NUMBER.fullmatch(name) for name in set(names)):
        return np.array(names, dtype=np.int64)
    return np.array(names, dtype=str)


def _find_test_images(path: Path, images: Sequence[PurePath]) -> Bools | None:
    """Find the images in a test folder; None if there is no such folder."""
    in_test = np.array([parse_split(image.parts[0]) == "test" for image in images])
    if in_test.all():
        raise BadInput(
            f"{path} has images to test on ({images[0].parts[0]}) but none to train on: add a "
            "folder train, or name the folder above the class folders."
        )
    return in_test if in_test.any() else None


def _read_dataset(path: Path, name: str, options: Options) -> Dataset:
    return decode_dataset(name, read_folder(path, options), options)


def _read_instances(path: Path, options: Options) -> Instances:
    return decode_instances(read_flat_folder(path), options)


READER = Reader(
    check=read_folder,
    about="a folder of images, or of class folders with images",
    options=frozenset({"size"}),
    read_dataset=_read_dataset,
    read_instances=_read_instances,
)
