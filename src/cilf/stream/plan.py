"""The plan of a stream: which class comes when. It is pure, seeded and knows no instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cilf.core import Label, validation
from cilf.core.random import generator
from cilf.errors import BadConfig

MIN_KNOWN = 2  # known classes of a window


class Protocol(NamedTuple):
    """The numbers of the paper's protocol for a data set."""

    single_initial: int
    multiple_initial: int
    max_novel: int


def paper_protocol(n_classes: int) -> Protocol:
    """The paper's protocol for a data set with ``n_classes`` classes.

    >>> paper_protocol(10), paper_protocol(50).multiple_initial, paper_protocol(100).max_novel
    (Protocol(single_initial=5, multiple_initial=3, max_novel=3), 30, 10)
    """
    if n_classes <= 20:
        return Protocol(max(2, n_classes // 2), max(2, round(0.3 * n_classes)), 3)
    initial = round(0.6 * n_classes) if n_classes <= 50 else n_classes // 2
    return Protocol(initial, initial, max(2, n_classes // 10))


class PlannedWindow(NamedTuple):
    """The classes of one window."""

    novel: tuple[Label, ...]
    known: tuple[Label, ...]

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.known + self.novel


@dataclass(frozen=True)
class Plan:
    """The initial classes of a stream, and the classes of each window."""

    initial: tuple[Label, ...]
    windows: tuple[PlannedWindow, ...]

    @property
    def arrivals(self) -> dict[Label, int]:
        """Window of arrival of each class; 0 is the initial training data."""
        arrivals = dict.fromkeys(self.initial, 0)
        for index, window in enumerate(self.windows, start=1):
            arrivals |= dict.fromkeys(window.novel, index)
        return arrivals

    def with_text_labels(self) -> Plan:
        """The same plan with every label as text."""
        windows = (PlannedWindow(_texts(w.novel), _texts(w.known)) for w in self.windows)
        return Plan(_texts(self.initial), tuple(windows))


def _texts(labels: Sequence[Label]) -> tuple[str, ...]:
    return tuple(str(label) for label in labels)


def make_plan(
    classes: Sequence[Label],
    *,
    n_initial: int,
    novel_range: tuple[int, int],
    n_quiet: int,
    vanishing: float,
    n_windows: int | None,
    seed: int,
) -> Plan:
    """Make a random plan.

    Parameters
    ----------
    classes : sequence of labels
        All classes of the stream.
    n_initial : int
        Number of classes of the initial training data.
    novel_range : (int, int)
        Smallest and largest number of novel classes in a window.
    n_quiet : int
        Number of windows without a novel class, at random places.
    vanishing : float
        Probability that a known class leaves for good at the end of a window. A class that starts
        in a window does not leave at its end, and two known classes always stay.
    n_windows : int or None
        Number of windows after which the plan ends. None uses all classes.
    seed : int
        Seed of the plan.
    """
    validation.whole_number("seed", seed, least=0)
    validation.whole_number("n_quiet", n_quiet, least=0)
    validation.number("vanishing", vanishing, least=0, most=1)
    if n_windows is not None:
        validation.whole_number("n_windows", n_windows, least=1)
    fewest, _ = novel_range
    if validation.whole_number("n_initial", n_initial, least=MIN_KNOWN) > len(classes) - fewest:
        raise BadConfig(
            f"n_initial is {n_initial}: the stream starts with at least {MIN_KNOWN} of the "
            f"{len(classes)} classes and leaves at least {fewest} to come."
        )
    rng = generator(seed, "plan")
    order = [classes[i] for i in rng.permutation(len(classes))]
    counts = _novel_counts(len(classes) - n_initial, novel_range, rng)
    for _ in range(n_quiet):
        counts.insert(int(rng.integers(len(counts) + 1)), 0)
    counts = counts[:n_windows]
    return Plan(tuple(order[:n_initial]), _schedule(order, n_initial, counts, vanishing, rng))


def _novel_counts(
    remaining: int, novel_range: tuple[int, int], rng: np.random.Generator
) -> list[int]:
    """Random numbers in the range that use as many of the remaining classes as possible."""
    fewest, most = novel_range
    counts: list[int] = []
    while choices := _choices(remaining, fewest, most):
        counts.append(int(rng.choice(choices)))
        remaining -= counts[-1]
    return counts


def _choices(remaining: int, fewest: int, most: int) -> list[int]:
    possible = range(fewest, min(most, remaining) + 1)
    exact = [k for k in possible if remaining == k or remaining - k >= fewest]
    return exact or list(possible)


def _schedule(
    order: list[Label],
    n_initial: int,
    counts: list[int],
    vanishing: float,
    rng: np.random.Generator,
) -> tuple[PlannedWindow, ...]:
    known, to_come = order[:n_initial], order[n_initial:]
    windows = []
    for count in counts:
        novel, to_come = to_come[:count], to_come[count:]
        windows.append(PlannedWindow(tuple(novel), tuple(known)))
        known = _choose_staying(known, MIN_KNOWN - count, vanishing, rng) + novel
    return tuple(windows)


def _choose_staying(
    known: list[Label], fewest: int, vanishing: float, rng: np.random.Generator
) -> list[Label]:
    """Choose the known classes that stay: each at random, but at least ``fewest`` of them."""
    draws = rng.random(len(known))
    n_leaving = min(int((draws < vanishing).sum()), len(known) - max(0, fewest))
    leaving = set(draws.argsort()[:n_leaving].tolist())
    return [label for place, label in enumerate(known) if place not in leaving]
