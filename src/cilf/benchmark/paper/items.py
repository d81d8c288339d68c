"""The paper's tables and figures by name: the cells each is made of, and what makes it of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cilf.benchmark.paper import curves, maps, tables
from cilf.benchmark.paper.results import Cell, Making
from cilf.benchmark.paper.setup import DATA, DETECTORS, JOINT, SYSTEMS, Setup

SINGLE, MULTIPLE = SCENARIOS = ("single", "multiple")
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the instances believed novel whose labels are asked for
LAMBDAS = (0.01, 0.1, 1.0, 10.0, 100.0)
FEW_LAMBDAS = (0.01, 1.0, 100.0)  # at the smallest scale
CIFAR10 = ("cifar10",)
MAPPED = ("cpe", "dtc", "cilf")
TIMED = ("odin-cnn", "cfo", "cpe", "dtc", "cilf")

Draw = Callable[[Making, str, str], list[Path]]
"""(what it is made of, name of the item, title) -> the files that were written."""


def _none(setup: Setup) -> list[Cell]:
    return []


@dataclass(frozen=True)
class Item:
    """A table or a figure, and the runs it is made of."""

    name: str
    title: str
    about: str  # what to see in it, for those who have not read the paper
    cells: Callable[[Setup], list[Cell]]
    draw: Draw
    models: Callable[[Setup], list[Cell]] = _none  # to be fitted when it is drawn
    of_runs: bool = True  # whether there is nothing to draw without any


def _windows_with(scenario: str) -> str:
    brings = "one new class" if scenario == SINGLE else "several new classes"
    return f"Each window of the stream brings {brings}."


def _compared(learners: Sequence[str], data: Sequence[str], scenario: str) -> list[Cell]:
    return [Cell(learner, name, scenario) for name in data for learner in learners]


def _detection(name: str, scenario: str) -> Item:
    return Item(
        name,
        f"Novel class detection, scenario {scenario}",
        f"{_windows_with(scenario)} How well learners tell known from new, and new classes from "
        "each other. NA: share put where it belongs, known and new counting half each. Macro-F and "
        "Micro-F: F-measure, each class or each instance counting the same. AUROC: how well the "
        "novelty score ranks new above known; 0.5 is chance. More is better.",
        lambda setup: _compared(setup.learners_for(DETECTORS), setup.data_for(DATA), scenario),
        tables.write_detection,
    )


def _forgetting(name: str, scenario: str) -> Item:
    def cells(setup: Setup) -> list[Cell]:
        learners = (*setup.learners_for(SYSTEMS), JOINT)
        return _compared(learners, setup.data_for(DATA), scenario)

    title = f"Forgetting (less is better), scenario {scenario}"
    about = (
        f"{_windows_with(scenario)} How much less of the classes it has learned a learner "
        "recognises after later windows than joint does, which trains on everything again: the "
        "mean over windows, on instances that were never shown. Below 0 it recognises more."
    )
    return Item(name, title, about, cells, tables.write_forgetting)


def _windows(name: str, scenario: str) -> Item:
    return Item(
        name,
        f"Metrics on known classes in each window, scenario {scenario}",
        f"{_windows_with(scenario)} The same metrics for instances of known classes alone: lines "
        "that fall show that classes are forgotten, or taken for new ones, as more are learned.",
        lambda setup: _compared(setup.learners_for(DETECTORS), setup.data_for(CIFAR10), scenario),
        curves.write_windows,
    )


def _maps(name: str, scenario: str) -> Item:
    return Item(
        name,
        f"What learners see of each window, scenario {scenario}",
        f"{_windows_with(scenario)} A point is an instance, placed by t-SNE so that those that "
        "look alike to the learner are near each other; raw is the data as they are. Good "
        "embeddings show each class as an island, new ones (rings) too.",
        lambda setup: _compared(setup.learners_for(MAPPED), setup.data_for(CIFAR10), scenario),
        maps.write_windows,
    )


def _asked(setup: Setup) -> list[Cell]:
    return [
        Cell(learner, data, scenario, query=share)
        for data in setup.data_for(CIFAR10)
        for learner in setup.learners_for(["cilf"])
        for scenario in SCENARIOS
        for share in SHARES
    ]


def _weighted(setup: Setup) -> list[Cell]:
    weights = FEW_LAMBDAS if setup.scale == "smoke" else LAMBDAS
    return [
        Cell(learner, data, scenario, parameters=(("lambda1", one), ("lambda2", two)))
        for learner in setup.papers_for(["cilf"])  # no other has these weights
        for data in setup.data_for(CIFAR10)
        for scenario in SCENARIOS
        for one in weights
        for two in weights
    ]


def _timed(setup: Setup) -> list[Cell]:
    data = setup.data_for(["cifar10", "cifar50"])
    return _compared(setup.learners_for(TIMED), data, MULTIPLE)


ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        Item(
            "figure2",
            "Classes 0 to 4 are known, 5 and 6 new",
            "What networks that were trained on five classes see of two others: new ones (rings) "
            "fall among known ones, which is why embeddings have to adapt.",
            _none,
            maps.write_confusion,
            models=maps.confused,
            of_runs=False,
        ),
        _detection("table2", SINGLE),
        _forgetting("table3", SINGLE),
        _detection("table4", MULTIPLE),
        _forgetting("table5", MULTIPLE),
        Item(
            "figure4",
            "Which class comes when",
            "The streams: classes that are labelled at the start, then windows with new classes "
            "among known ones, of which some vanish.",
            _none,
            maps.write_streams,
            of_runs=False,
        ),
        _maps("figure5", SINGLE),
        _windows("figure6", SINGLE),
        _maps("figure7", MULTIPLE),
        _windows("figure8", MULTIPLE),
        Item(
            "figure9",
            "Labels asked for, and performance",
            "A person names only a part of what is believed new: how performance depends on it.",
            _asked,
            curves.write_queries,
        ),
        Item(
            "figure10",
            "AUROC by the weights λ1 and λ2",
            "λ1 weighs the loss that drives classes apart, λ2 the one that holds the prototypes of "
            "known classes in place. Where neighbours have one colour, the choice matters little.",
            _weighted,
            curves.write_weights,
        ),
        Item(
            "figure11",
            "Execution time, scenario multiple",
            "Seconds of a whole run, of detection and of updates, on a scale of powers.",
            _timed,
            curves.write_times,
        ),
    )
}
