"""Figures 2, 4, 5 and 7: embeddings as maps of the plane, and the maps of streams."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from cilf.benchmark import RunConfig
from cilf.benchmark.config import data_file_name
from cilf.core import Label
from cilf.core.files import make_folder, replace_file
from cilf.core.random import derived_seed, generator
from cilf.core.types import Array, Ints
from cilf.data import Dataset
from cilf.evaluate.drawing import flat_map
from cilf.evaluate.records import Drawing
from cilf.learners import Learner
from cilf.paper import figures
from cilf.paper.figures import Map
from cilf.paper.results import Cell, Making, datas, of_data, stem
from cilf.paper.setup import Setup
from cilf.report.stream_map import draw_stream_map, plan_rows
from cilf.report.tables import Table
from cilf.stream import Stream

RAW = "raw"
CONFUSED = ("cpe", "cfo")  # a discriminative and a generative one
MOST_OF_A_CLASS = 800  # instances on a map
N_KNOWN, N_NOVEL = 5, 2  # classes of figure 2
COLUMNS = ("learner", "column", "x", "y", "class", "novel")


def write_windows(making: Making, name: str, title: str) -> list[Path]:
    """A map of each window as raw data and as each learner sees it; the first seed's."""
    results, out = making.results, making.out
    written: list[Path] = []
    for data in datas(results):
        rows: dict[str, dict[str, Map]] = {}
        order: list[str] = []
        for cell, runs in of_data(results, data).items():
            if not runs:
                continue
            run = runs[min(runs)]
            order = list(run.classes)
            drawings = {f"window {r.window}": run.drawing(r.window) for r in run.records}
            there = {column: drawn for column, drawn in drawings.items() if drawn is not None}
            if RAW not in rows:
                rows[RAW] = {column: _raw_map(drawn) for column, drawn in there.items()}
            rows[cell.name] = {column: _seen_map(drawn) for column, drawn in there.items()}
        if rows:
            figure = figures.map_panels(rows, order)
            written += figures.write(figure, _table(title, rows), out, stem(name, data, results))
    return written


def _seen_map(drawing: Drawing) -> Map:
    return Map(drawing.map, drawing.truth.astype(str), drawing.novel)


def _raw_map(drawing: Drawing) -> Map:
    """Of pixels, as the drawing keeps them."""
    pixels = drawing.thumbnails.reshape(len(drawing.ids), -1).astype(np.float32)
    return Map(flat_map(pixels, derived_seed(0, RAW)), drawing.truth.astype(str), drawing.novel)


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
            pictures = [draw_stream_map(stream, path.with_suffix(s)) for s in (".png", ".svg")]
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
    setup = making.setup
    rows: dict[str, dict[str, Map]] = {}
    for data in setup.data_for(["mnist", "cifar10"]):
        for learner in setup.learners_for(CONFUSED):
            cell = Cell(learner, data, "single")
            drawn = _confusion_map(cell, setup, making.kept)
            rows.setdefault(cell.name, {})[data_file_name(data)] = drawn
    order = sorted({name for maps in rows.values() for m in maps.values() for name in m.classes})
    return figures.write(figures.map_panels(rows, order), _table(title, rows), making.out, name)


def _confusion_map(cell: Cell, setup: Setup, kept: Path) -> Map:
    """Fitted once: what it gave is kept under ``kept``, by everything it depends on."""
    config = cell.config(setup, setup.repetitions[0])
    learner = config.make_learner()
    dataset = config.load()
    about = {"parameters": learner.get_params(), "dataset": dataset.describe()}
    path = kept / f"confusion-{cell.name}-{data_file_name(cell.data)}.npz"
    said = json.dumps(about, sort_keys=True, default=str)
    if path.exists():
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["about"]) == said:
                return Map(stored["places"], stored["classes"], stored["novel"])
    drawn = _fitted_map(learner, dataset, config)
    make_folder(kept)
    content = io.BytesIO()
    np.savez_compressed(content, about=np.array(said), **drawn._asdict())
    replace_file(path, content.getvalue())
    return drawn


def _fitted_map(learner: Learner, dataset: Dataset, config: RunConfig) -> Map:
    """Fit the first classes, and map test instances of these and of the next."""
    classes = np.array(dataset.classes[: N_KNOWN + N_NOVEL])
    size = config.stream_arguments()["initial_size"] or MOST_OF_A_CLASS
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
