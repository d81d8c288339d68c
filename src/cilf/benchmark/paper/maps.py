"""Figures 2, 4, 5 and 7: embeddings as maps of the plane, and the maps of streams."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from cilf.benchmark import RunConfig
from cilf.benchmark.config import data_file_name
from cilf.benchmark.job import one_thread
from cilf.benchmark.paper.panels import Map, plot_maps, write_files
from cilf.benchmark.paper.results import Cell, Making, Results, datas, of_data, stem
from cilf.benchmark.paper.setup import Setup
from cilf.core import Label
from cilf.core.files import make_folder, replace_file
from cilf.core.random import derived_seed, generator
from cilf.core.types import Array, Ints
from cilf.data import Dataset
from cilf.errors import BadInput
from cilf.evaluate.records import Drawing
from cilf.evaluate.snapshot import flat_map
from cilf.learners import Learner
from cilf.report.run import Run
from cilf.report.stream_map import plan_rows, write_stream_map
from cilf.report.tables import Table
from cilf.stream import Stream

RAW = "raw"
CONFUSED = ("cpe", "cfo")  # a discriminative and a generative one
MOST_OF_A_CLASS = 800  # instances on a map
N_KNOWN, N_NOVEL = 5, 2  # classes of figure 2
COLUMNS = ("learner", "column", "x", "y", "class", "novel")


def write_windows(making: Making, name: str, title: str) -> list[Path]:
    """A map of each window as raw data and as each learner sees it, all on the same stream."""
    results, out = making.results, making.out
    written: list[Path] = []
    for data in datas(results):
        runs = _on_one_stream(of_data(results, data))
        rows: dict[str, dict[str, Map]] = {}
        for learner, run in runs.items():
            drawings = {f"window {r.window}": run.drawing(r.window) for r in run.records}
            there = {column: drawn for column, drawn in drawings.items() if drawn is not None}
            if there and RAW not in rows:
                rows[RAW] = {column: _raw_map(drawn) for column, drawn in there.items()}
            if there:
                rows[learner] = {column: _seen_map(drawn) for column, drawn in there.items()}
        if rows:
            figure = plot_maps(rows, next(iter(runs.values())).classes)
            written += write_files(figure, _table(title, rows), out, stem(name, data, results))
    return written


def _on_one_stream(results: Results) -> dict[str, Run]:
    """The runs of one seed, by learner: of the first seed that most learners have."""
    n_runs = Counter(seed for runs in results.values() for seed in sorted(runs))
    seed = max(n_runs, key=lambda one: (n_runs[one], -one), default=0)
    return {cell.name: runs[seed] for cell, runs in results.items() if seed in runs}


def _seen_map(drawing: Drawing) -> Map:
    return _some_of_each(Map(drawing.map, drawing.truth.astype(str), drawing.novel))


def _raw_map(drawing: Drawing) -> Map:
    """Of pixels, as the drawing keeps them."""
    pixels = drawing.thumbnails.reshape(len(drawing.ids), -1).astype(np.float32)
    places = flat_map(pixels, derived_seed(0, RAW))
    return _some_of_each(Map(places, drawing.truth.astype(str), drawing.novel))


def _some_of_each(drawn: Map) -> Map:
    rows = _some(drawn.classes, np.unique(drawn.classes), MOST_OF_A_CLASS, seed=0)
    return Map(drawn.places[rows], drawn.classes[rows], drawn.novel[rows])


def _table(title: str, rows: dict[str, dict[str, Map]]) -> Table:
    lines = [
        (learner, column, float(x), float(y), str(label), bool(new))
        for learner, maps in rows.items()
        for column, drawn in maps.items()
        for (x, y), label, new in zip(drawn.places, drawn.classes, drawn.novel, strict=True)
    ]
    return Table(title, COLUMNS, tuple(lines))


def write_streams(making: Making, name: str, title: str) -> list[Path]:
    """The stream map of the first seed, in both scenarios."""
    setup, out = making.setup, making.out
    make_folder(out)
    written: list[Path] = []
    for data in setup.data_for(["cifar10"]):
        for scenario in ("single", "multiple"):
            config = Cell("cilf", data, scenario).config(setup, setup.repetitions[0])
            stream = config.make_stream(config.load())
            path = out / f"{name}-{data_file_name(data)}-{scenario}.csv"
            replace_file(path, _plan_table(title, stream).to_csv().encode())
            pictures = [write_stream_map(stream, path.with_suffix(s)) for s in (".png", ".svg")]
            written += [*pictures, path]
    return written


def _plan_table(title: str, stream: Stream) -> Table:
    rows = [
        (
            row.window, row.n_known, len(row.novel), _listed(label for label, _ in row.novel),
            _listed(row.vanished), row.n_instances,
        )
        for row in plan_rows(stream)
    ]  # fmt: skip
    columns = ("window", "n_known", "n_novel", "novel", "vanished", "n_instances")
    return Table(title, columns, tuple(rows))


def _listed(labels: Iterable[Label]) -> str:
    return " ".join(str(label) for label in labels)


def write_confusion(making: Making, name: str, title: str) -> list[Path]:
    """Known and novel classes in the embedding of learners that know only the first."""
    rows: dict[str, dict[str, Map]] = {}
    for cell in confused(making.setup):
        drawn = _confusion_map(cell, making)
        if drawn is not None:
            rows.setdefault(cell.name, {})[data_file_name(cell.data)] = drawn
    if not rows:
        return []
    order = sorted({name for maps in rows.values() for m in maps.values() for name in m.classes})
    return write_files(plot_maps(rows, order), _table(title, rows), making.out, name)


def confused(setup: Setup) -> list[Cell]:
    """The models of figure 2."""
    return [
        Cell(learner, data, "single")
        for data in setup.data_for(["mnist", "cifar10"])
        for learner in setup.learners_for(CONFUSED)
    ]


def _confusion_map(cell: Cell, making: Making) -> Map | None:
    """Fitted once: what it gave is kept, by everything it depends on; None if it may not be."""
    config = cell.config(making.setup, making.setup.repetitions[0])
    dataset = config.load()
    about = config.resolved() | {"dataset": dataset.describe()}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()
    path = making.kept / f"confusion-{config.title}-{digest[:10]}.npz"
    if path.exists():
        return _read_map(path)
    if not making.fit:
        return None
    with one_thread():  # as runs are: the same map on every machine
        drawn = _fitted_map(config.make_learner(), dataset, config)
    make_folder(making.kept)
    content = io.BytesIO()
    np.savez_compressed(content, **drawn._asdict())
    replace_file(path, content.getvalue())
    return drawn


def _read_map(path: Path) -> Map:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            return Map(stored["places"], stored["classes"], stored["novel"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise BadInput(f"{path} is damaged: remove it, and it is made again.") from error


def _fitted_map(learner: Learner, dataset: Dataset, config: RunConfig) -> Map:
    """Fit the first classes, and map test instances of these and of the next."""
    classes = np.array(dataset.classes[: N_KNOWN + N_NOVEL])
    sizes = config.stream_arguments()
    size = sizes["initial_size"] or sizes["max_initial_size"] or len(dataset.train.y)
    taught = _some(dataset.train.y, classes[:N_KNOWN], size, config.seed)
    learner.fit(dataset.train.X[taught], dataset.train.y[taught])
    shown = _some(dataset.test.y, classes, MOST_OF_A_CLASS, config.seed)
    places = flat_map(learner.embed(dataset.test.X[shown]), derived_seed(config.seed, "confusion"))
    labels = dataset.test.y[shown]
    return Map(places, labels.astype(str), np.isin(labels, classes[N_KNOWN:]))


def _some(y: Array, classes: Array, most: int, seed: int) -> Ints:
    """Up to so many rows of each of these classes."""
    order = generator(seed, "confusion").permutation(len(y))
    rows = [order[y[order] == label][:most] for label in classes]
    return np.sort(np.concatenate(rows))
