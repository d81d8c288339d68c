"""Figures 2, 4, 5 and 7: embeddings as maps in the plane, and the maps of streams."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from cilf.benchmark import RunConfig
from cilf.benchmark.config import data_file_name
from cilf.benchmark.job import one_thread
from cilf.benchmark.paper.item import MULTIPLE, SINGLE, Inputs, Item, cross, describe_scenario
from cilf.benchmark.paper.panels import Map, plot_maps, write_files
from cilf.benchmark.paper.results import Cell, Results, list_data, name_file, select_data
from cilf.benchmark.paper.setup import Setup
from cilf.core import Label
from cilf.core.documents import ArrayForm, Damage, read_arrays
from cilf.core.files import make_folder, replace_file
from cilf.core.random import derive_seed, generator
from cilf.core.types import Array, Ints
from cilf.data import Dataset
from cilf.errors import BadInput
from cilf.evaluate.records import Snapshot
from cilf.evaluate.snapshot import flat_map
from cilf.learners import Learner
from cilf.report.run import Run
from cilf.report.stream_map import list_windows, write_stream_map
from cilf.report.tables import Table
from cilf.stream import Stream

RAW = "raw"
MAPPED = ("cpe", "dtc", "cilf-paper", "cilf")
CONFUSED = ("cpe", "cfo")  # a discriminative and a generative learner
MAX_PER_CLASS = 800  # instances on a map
N_KNOWN, N_NOVEL = 5, 2  # classes of figure 2
FORMS = {
    "places": ArrayForm("f", ndim=2, rows="n"),
    "classes": ArrayForm("U", ndim=1, rows="n"),
    "novel": ArrayForm("b", ndim=1, rows="n"),
}
COLUMNS = ("learner", "column", "x", "y", "class", "novel")


def confusion_maps() -> Item:
    """Map known and novel classes in the embedding of learners that know only the former."""
    return Item(
        "Classes 0 to 4 are known, 5 and 6 novel",
        "The maps show how networks that were trained on five classes embed two others. Novel "
        "instances (rings) fall among known ones, which is why embeddings have to adapt. The "
        "paper's claim holds where rings lie inside the groups of other colours.",
        _write_confusion_maps,
        models=list_confused,
        needs_runs=False,
    )


def stream_maps() -> Item:
    """Map the streams of both scenarios: class by window."""
    return Item(
        "Which class comes when",
        "The maps show the streams: the classes that are labelled at the start, then windows with "
        "novel classes among known ones, of which some vanish.",
        _write_stream_maps,
        needs_runs=False,
    )


def window_maps(scenario: str) -> Item:
    """Map each window as raw data and in the embedding of each learner."""
    return Item(
        f"Embeddings of each window, scenario {scenario}",
        f"{describe_scenario(scenario)} A point is an instance. t-SNE places instances with "
        "similar embeddings near each other; raw are the data themselves. A good embedding shows "
        "each class as an island, novel ones (rings) too. The paper's claim, that CILF separates "
        "known and novel classes best, holds where its rows have the most islands of one colour.",
        _write_window_maps,
        lambda setup: cross(setup.rows_for(MAPPED), setup.data_for(["cifar10"]), scenario),
    )


def _write_window_maps(inputs: Inputs) -> list[Path]:
    written: list[Path] = []
    for data in list_data(inputs.results):
        runs = _select_one_stream(select_data(inputs.results, data))
        rows: dict[str, dict[str, Map]] = {}
        for learner, run in runs.items():
            snapshots = {f"window {r.window}": run.snapshot(r.window) for r in run.records}
            kept = {column: each for column, each in snapshots.items() if each is not None}
            if kept and RAW not in rows:
                rows[RAW] = {column: _map_pixels(each) for column, each in kept.items()}
            if kept:
                rows[learner] = {column: _map_embedding(each) for column, each in kept.items()}
        if rows:
            figure = plot_maps(rows, next(iter(runs.values())).classes)
            name = name_file(inputs.name, data, inputs.results)
            written += write_files(figure, _make_table(inputs.title, rows), inputs.out, name)
    return written


def _select_one_stream(results: Results) -> dict[str, Run]:
    """Select the runs of the first seed that most learners have, by learner."""
    n_runs = Counter(seed for runs in results.values() for seed in sorted(runs))
    seed = max(n_runs, key=lambda one: (n_runs[one], -one), default=0)
    return {cell.name: runs[seed] for cell, runs in results.items() if seed in runs}


def _map_embedding(snapshot: Snapshot) -> Map:
    return _limit_classes(Map(snapshot.map, snapshot.truth.astype(str), snapshot.novel))


def _map_pixels(snapshot: Snapshot) -> Map:
    pixels = snapshot.thumbnails.reshape(len(snapshot.ids), -1).astype(np.float32)
    places = flat_map(pixels, derive_seed(0, RAW))
    return _limit_classes(Map(places, snapshot.truth.astype(str), snapshot.novel))


def _limit_classes(map_: Map) -> Map:
    rows = _choose_rows(map_.classes, np.unique(map_.classes), MAX_PER_CLASS, seed=0)
    return Map(map_.places[rows], map_.classes[rows], map_.novel[rows])


def _make_table(title: str, rows: dict[str, dict[str, Map]]) -> Table:
    lines = [
        (learner, column, float(x), float(y), str(label), bool(new))
        for learner, maps in rows.items()
        for column, map_ in maps.items()
        for (x, y), label, new in zip(map_.places, map_.classes, map_.novel, strict=True)
    ]
    return Table(title, COLUMNS, tuple(lines))


def _write_stream_maps(inputs: Inputs) -> list[Path]:
    """Write the stream map of the first seed for both scenarios."""
    setup, out = inputs.setup, inputs.out
    make_folder(out)
    written: list[Path] = []
    for data in setup.data_for(["cifar10"]):
        for scenario in (SINGLE, MULTIPLE):
            config = Cell("cilf", data, scenario).config(setup, setup.all_seeds[0])
            stream = config.make_stream(config.load())
            path = out / f"{inputs.name}-{data_file_name(data)}-{scenario}.csv"
            replace_file(path, _make_plan_table(inputs.title, stream).to_csv().encode())
            images = [write_stream_map(stream, path.with_suffix(s)) for s in (".png", ".svg")]
            written += [*images, path]
    return written


def _make_plan_table(title: str, stream: Stream) -> Table:
    rows = [
        (
            row.window, row.n_known, len(row.novel), _join(label for label, _ in row.novel),
            _join(row.vanished), row.n_instances,
        )
        for row in list_windows(stream)
    ]  # fmt: skip
    columns = ("window", "n_known", "n_novel", "novel", "vanished", "n_instances")
    return Table(title, columns, tuple(rows))


def _join(labels: Iterable[Label]) -> str:
    return " ".join(str(label) for label in labels)


def _write_confusion_maps(inputs: Inputs) -> list[Path]:
    rows: dict[str, dict[str, Map]] = {}
    for cell in list_confused(inputs.setup):
        map_ = _make_confusion_map(cell, inputs)
        if map_ is not None:
            rows.setdefault(cell.name, {})[data_file_name(cell.data)] = map_
    if not rows:
        return []
    order = sorted({name for maps in rows.values() for m in maps.values() for name in m.classes})
    table = _make_table(inputs.title, rows)
    return write_files(plot_maps(rows, order), table, inputs.out, inputs.name)


def list_confused(setup: Setup) -> list[Cell]:
    """List the models of figure 2."""
    return [
        Cell(learner, data, SINGLE)
        for data in setup.data_for(["mnist", "cifar10"])
        for learner in setup.learners_for(CONFUSED)
    ]


def _make_confusion_map(cell: Cell, inputs: Inputs) -> Map | None:
    """Read the map from the cache, or fit the model; None if it may not be fitted."""
    config = cell.config(inputs.setup, inputs.setup.all_seeds[0])
    dataset = config.load()
    about = config.resolve() | {"dataset": dataset.describe()}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()
    path = inputs.cache / f"confusion-{config.title}-{digest[:10]}.npz"
    if path.exists():
        return _read_map(path)
    if not inputs.fit:
        return None
    with one_thread():  # as for runs: the same map on every machine
        map_ = _fit_map(config.make_learner(), dataset, config)
    make_folder(inputs.cache)
    content = io.BytesIO()
    np.savez_compressed(content, **map_._asdict())
    replace_file(path, content.getvalue())
    return map_


def _read_map(path: Path) -> Map:
    try:
        stored = read_arrays(path, FORMS)
        return Map(stored["places"], stored["classes"], stored["novel"])
    except Damage as error:
        raise BadInput(
            f"{path} is damaged ({error}): remove it, and it is computed again."
        ) from error


def _fit_map(learner: Learner, dataset: Dataset, config: RunConfig) -> Map:
    """Fit the first classes, and map test instances of these and of the next ones."""
    classes = np.array(dataset.classes[: N_KNOWN + N_NOVEL])
    sizes = config.stream_arguments()
    size = sizes["initial_size"] or sizes["max_initial_size"] or len(dataset.train.y)
    rows = _choose_rows(dataset.train.y, classes[:N_KNOWN], size, config.seed)
    learner.fit(dataset.train.X[rows], dataset.train.y[rows])
    shown = _choose_rows(dataset.test.y, classes, MAX_PER_CLASS, config.seed)
    places = flat_map(learner.embed(dataset.test.X[shown]), derive_seed(config.seed, "confusion"))
    labels = dataset.test.y[shown]
    return Map(places, labels.astype(str), np.isin(labels, classes[N_KNOWN:]))


def _choose_rows(y: Array, classes: Array, most: int, seed: int) -> Ints:
    """Choose at most so many rows of each of these classes."""
    order = generator(seed, "confusion").permutation(len(y))
    rows = [order[y[order] == label][:most] for label in classes]
    return np.sort(np.concatenate(rows))
