"""Findings: what a model sees in new data, in a folder that a person can look at and edit.

::

    FINDINGS/
      findings.csv      identity, label, novelty, cluster, name: a line for each instance
      clusters.csv      a line for each new kind; its name is that of all its members
      cluster-1.png     typical members of a new kind (cluster-1.txt if they are texts)
      instances.npz     the instances themselves, so that a model can be taught from here
      findings.json     which model and data they are from

The column ``name`` is empty: what people write into it is what ``service.labels`` reads.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cilf.core import Detection
from cilf.core.files import make_folder, put_folder, replace_file, writing
from cilf.core.notices import notice
from cilf.core.progress import report
from cilf.core.types import Array, Floats, Ints
from cilf.data import Instances
from cilf.data.spreadsheets import escape_surrogates, format_csv
from cilf.errors import BadConfig, BadInput
from cilf.evaluate.snapshot import excerpts, thumbnails
from cilf.query import choose_queries
from cilf.report.contact_sheet import contact_sheet
from cilf.workflow.models import load_model
from cilf.workflow.reading import read_new

FORMAT = 1
HEAD, ROWS, CLUSTERS, KEPT = "findings.json", "findings.csv", "clusters.csv", "instances.npz"
COLUMNS = ("identity", "label", "novelty", "cluster", "name")
CLUSTER_COLUMNS = ("cluster", "instances", "looks_like", "sheet", "name")
MOST_SHOWN = 40  # members of a cluster on its sheet
SHEET_SIDE = 96  # pixels of an image on it
STALE = 24 * 3600  # seconds after which a folder that was never finished is nobody's


@dataclass(frozen=True)
class Found:
    """What a model believes about each instance; labels are texts."""

    ids: Array  # (n,)
    label: Array  # (n,) the known class it is, or looks most like
    novelty: Floats  # (n,)
    cluster: Ints  # (n,) -1 known, else the new kind, from 0

    @property
    def known(self) -> dict[str, int]:
        """Known class -> how many instances of it, the most frequent first."""
        return dict(Counter(self.label[self.cluster < 0].tolist()).most_common())

    @property
    def sizes(self) -> list[int]:
        """How many instances each new kind has."""
        sizes: list[int] = np.bincount(self.cluster[self.cluster >= 0]).tolist()
        return sizes

    @property
    def n_novel(self) -> int:
        return int((self.cluster >= 0).sum())

    def looks_like(self, cluster: int) -> str:
        """The known class that most members of a new kind look most like."""
        return str(Counter(self.label[self.cluster == cluster].tolist()).most_common(1)[0][0])


class Findings:
    """A findings folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: str | Path) -> Findings:
        """The findings in this folder; refused if there are none."""
        findings = cls(path)
        if not findings.exists():
            raise BadInput(f"{path} holds no findings: name a folder that 'cilf detect' wrote.")
        version = findings.about.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise BadInput(
                f"{path} has findings of format {version!r}, this cilf reads up to {FORMAT}: "
                "upgrade cilf."
            )
        return findings

    def exists(self) -> bool:
        return (self.path / HEAD).is_file()

    @cached_property
    def about(self) -> dict[str, Any]:
        """The content of findings.json."""
        try:
            return dict(json.loads((self.path / HEAD).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(f"{HEAD} does not read") from error

    @property
    def id(self) -> str:
        return str(self.about.get("id"))

    @cached_property
    def found(self) -> Found:
        """What the model believed."""
        names = ("ids", "label", "novelty", "cluster")
        return Found(**{name: self._kept[name] for name in names})

    @property
    def embedding(self) -> Floats:
        """Where each instance lies, (n, d), as the model saw it when it looked for new kinds."""
        if "embedding" not in self._kept:
            raise BadInput(
                f"{self.path} keeps no embedding, it is from an older cilf: detect again."
            )
        return self._kept["embedding"]

    def instances(self, rows: Ints) -> Array:
        """Some of the instances, as the model takes them."""
        if "X" in self._kept:
            return np.asarray(self._kept["X"][rows])
        return _unpacked_texts(self._kept["texts"], self._kept["ends"])[rows]

    def sheet(self, cluster: int) -> Path | None:
        """The contact sheet of a new kind, counted from 0, if there is one."""
        paths = (self.path / _sheet_name(cluster, end) for end in ("png", "txt"))
        return next((path for path in paths if path.is_file()), None)

    @cached_property
    def _kept(self) -> dict[str, Array]:
        try:
            content = (self.path / KEPT).read_bytes()
            if hashlib.sha256(content).hexdigest() != self.about.get("sha256"):
                raise self._damaged(f"{KEPT} is not what was written")
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except BadInput:
            raise
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise self._damaged(f"{KEPT} does not read") from error

    def _damaged(self, why: str) -> BadInput:
        return BadInput(f"the findings in {self.path} are damaged ({why}): detect again.")


# ----------------------------------------------------------------- detecting


def detect(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    n_novel: int | None = None,
    column: str | None = None,
    skip_bad: bool = False,
    seen: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> Findings:
    """Find out what is known and what is new in some data, and keep it in a folder.

    Args:
        model: a model folder.
        data: a folder of images or a table.
        out: the findings folder.
        n_novel: how many new kinds there are; estimated if None.
        column, skip_bad: see :func:`cilf.data.load_instances`.
        seen: earlier findings; what they hold is left out.
        overwrite: replace the findings that ``out`` holds.
    """
    _require_room(Path(out), overwrite)
    loaded = load_model(model)
    instances = _unseen(read_new(data, loaded, column=column, skip_bad=skip_bad), seen, data)
    found = loaded.learner.detect(instances.X, n_novel)
    about = {"model_id": loaded.id, "version": loaded.version, "data": str(data)}
    return _write(Path(out), about, instances, found)


def _unseen(instances: Instances, seen: Sequence[str | Path], data: str | Path) -> Instances:
    if not seen:
        return instances
    before = np.concatenate([Findings.open(path).found.ids for path in seen])
    fresh = ~np.isin(_written(instances.ids), before)
    if not fresh.any():
        raise BadInput(
            f"{data} holds nothing that earlier findings do not hold ({len(instances)} instances): "
            "come back when there is more, or leave --seen out."
        )
    return Instances(instances.X[fresh], instances.ids[fresh], instances.columns)


def _written(ids: Array) -> Array:
    """Identities as a file can hold them: a path need not be UTF-8."""
    return np.array([escape_surrogates(str(identity)) for identity in ids.tolist()], dtype=str)


def _require_room(out: Path, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not Findings(out).exists():
        raise BadInput(f"{out} holds other things: name a new folder for the findings.")
    if not overwrite:
        raise BadInput(
            f"{out} holds findings already, which somebody may have edited: name another folder, "
            "or replace them (--overwrite)."
        )


# ----------------------------------------------------------------- writing


def _write(
    out: Path, about: dict[str, Any], instances: Instances, detection: Detection
) -> Findings:
    """Write a folder that appears whole or not at all."""
    found = Found(
        ids=_written(instances.ids),
        label=detection.label.astype(str),
        novelty=detection.novelty.astype(np.float32),
        cluster=detection.cluster.astype(np.int64),
    )
    make_folder(out.parent)
    _sweep(out)
    pending = _pending(out)
    shutil.rmtree(pending, ignore_errors=True)
    try:
        with writing(out):
            pending.mkdir()
            _fill(pending, about, instances, detection, found)
            _put(pending, out)
    finally:
        shutil.rmtree(pending, ignore_errors=True)  # there only if something went wrong
    return Findings(out)


def _fill(
    folder: Path, about: dict[str, Any], instances: Instances, detection: Detection, found: Found
) -> None:
    shown = choose_queries(detection, MOST_SHOWN, strategy="representative", seed=0, window=0)
    _write_sheets(folder, instances, found, shown)
    _write_tables(folder, found)
    kept = _packed(found, instances.X, detection.embedding)
    replace_file(folder / KEPT, kept)
    head = {
        "format": FORMAT,
        "id": uuid.uuid4().hex,
        **about,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_instances": len(found.ids),
        "known": found.known,
        "clusters": found.sizes,
        "sha256": hashlib.sha256(kept).hexdigest(),
    }
    replace_file(folder / HEAD, json.dumps(head, indent=1).encode())


def _pending(out: Path) -> Path:
    return out.with_name(f".{out.name}.{os.getpid()}.pending")


def _sweep(out: Path) -> None:
    """Remove what killed processes have left half made."""
    for left in out.parent.glob(f".{out.name}.*.pending"):
        if time.time() - left.stat().st_mtime > STALE:
            shutil.rmtree(left, ignore_errors=True)


def _put(pending: Path, out: Path) -> None:
    if not out.exists():
        put_folder(pending, out)
        return
    old = pending.with_suffix(".replaced")
    out.rename(old)
    put_folder(pending, out)
    shutil.rmtree(old)


def _packed(found: Found, X: Array, embedding: Floats) -> bytes:
    own: dict[str, Any] = {"X": np.asarray(X)} if X.ndim > 1 else _packed_texts(X)
    packed = io.BytesIO()
    np.savez_compressed(
        packed,
        ids=found.ids,
        label=found.label,
        novelty=found.novelty,
        cluster=found.cluster,
        embedding=embedding,
        **own,
    )
    return packed.getvalue()


def _packed_texts(X: Array) -> dict[str, Array]:
    """Texts one after another, and where each ends: arrays of objects would be pickles."""
    encoded = [text.encode() for text in X.tolist()]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {"texts": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}


def _unpacked_texts(texts: Array, ends: Array) -> Array:
    whole, starts = texts.tobytes(), [0, *ends.tolist()[:-1]]
    X = np.empty(len(ends), dtype=object)
    X[:] = [whole[a:b].decode() for a, b in zip(starts, ends.tolist(), strict=True)]
    return X


def _write_tables(folder: Path, found: Found) -> None:
    rows = list(_rows(found))
    replace_file(folder / ROWS, format_csv(COLUMNS, rows))
    clusters = [_cluster_row(folder, found, cluster) for cluster in range(len(found.sizes))]
    replace_file(folder / CLUSTERS, format_csv(CLUSTER_COLUMNS, clusters))


def _rows(found: Found) -> Iterator[tuple[str, str, str, str, str]]:
    """New kinds first, the most novel members first; then what is known, as it came."""
    novel = found.cluster >= 0
    order = np.lexsort(
        (np.where(novel, -found.novelty, 0), np.where(novel, found.cluster, 1 << 32))
    )
    for row in order.tolist():
        new = bool(novel[row])
        label = "" if new else str(found.label[row])
        cluster = str(found.cluster[row] + 1) if new else ""
        yield str(found.ids[row]), label, f"{found.novelty[row]:.4g}", cluster, ""


def _cluster_row(folder: Path, found: Found, cluster: int) -> tuple[str, ...]:
    sheet = Findings(folder).sheet(cluster)
    size, near = found.sizes[cluster], found.looks_like(cluster)
    return str(cluster + 1), str(size), near, "" if sheet is None else sheet.name, ""


def _write_sheets(folder: Path, instances: Instances, found: Found, shown: Ints) -> None:
    n_clusters = len(found.sizes)
    for cluster, size in enumerate(found.sizes):
        rows = shown[found.cluster[shown] == cluster]
        title = f"new kind {cluster + 1}: {len(rows)} of {size} instances"
        try:
            end, content = _sheet(instances.X[rows], found.ids[rows].tolist(), title)
        except BadConfig as missing:  # the packages that pictures need are an extra
            notice(f"no contact sheets: {missing}")
            return
        replace_file(folder / _sheet_name(cluster, end), content)
        report("sheets", cluster + 1, n_clusters)


def _sheet(X: Array, ids: list[str], title: str) -> tuple[str, bytes]:
    if X.ndim == 1:
        texts = zip(ids, excerpts(X).tolist(), strict=True)
        lines = [title, "", *(f"{identity}: {text}" for identity, text in texts)]
        return "txt", ("\n".join(lines) + "\n").encode(errors="replace")
    return "png", contact_sheet(thumbnails(X, largest=SHEET_SIDE), ids, title)


def _sheet_name(cluster: int, end: str) -> str:
    return f"cluster-{cluster + 1}.{end}"
