"""The simulation of a stream: instances of a data set, dealt out by a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from cilf.core import Label, Labelled, Window, validation
from cilf.core.random import generator
from cilf.core.types import Array, Ints
from cilf.data import Dataset
from cilf.data.dataset import Split
from cilf.errors import BadConfig, BadInput
from cilf.stream.plan import MIN_KNOWN, Plan, PlannedWindow, make_plan, paper_protocol

ONE_AT_A_TIME = "; with 3, let one come at a time (single_novel, --scenario single)"
INITIAL_SHARE = 0.4  # of a class's training instances; the windows share the rest evenly


@dataclass(frozen=True)
class Stream:
    """Initial training data, then windows, and a hold-out set the learner never sees.

    >>> from cilf.data import load_dataset
    >>> stream = multiple_novel(load_dataset("digits"), seed=0)
    >>> [len(window.novel) for window in stream]
    [2, 2, 3]
    """

    name: str
    seed: int
    plan: Plan
    initial: Labelled
    holdout: Labelled
    _dataset: Dataset
    _rows: tuple[Ints, ...]  # of each window, into the training split

    def __len__(self) -> int:
        return len(self.plan.windows)

    @property
    def indices(self) -> range:
        """The indices of the windows: 1, 2, ..."""
        return range(1, len(self) + 1)

    def __iter__(self) -> Iterator[Window]:
        return map(self.window, self.indices)

    def window(self, index: int) -> Window:
        """The window with this index, counted from 1."""
        self._check(index, first=1)
        planned, rows = self.plan.windows[index - 1], self._rows[index - 1]
        train = self._dataset.train
        return Window(
            index, train.X[rows], train.y[rows], planned.novel, planned.known, train.ids[rows]
        )

    def counts(self, index: int) -> dict[Label, int]:
        """The number of instances of each class in a window; 0 is the initial training data."""
        self._check(index, first=0)
        if index == 0:
            classes, y = self.plan.initial, self.initial.y
        else:
            classes = self.plan.windows[index - 1].classes
            y = self._dataset.train.y[self._rows[index - 1]]
        found = Counter(y.tolist())
        return {label: found[label] for label in classes}

    def describe(self) -> dict[str, Any]:
        """The plan and the counts, as JSON holds them."""
        windows = [
            {
                "novel": list(window.novel),
                "known": list(window.known),
                "counts": [[label, n] for label, n in self.counts(index).items()],
            }
            for index, window in enumerate(self.plan.windows, start=1)
        ]
        return {"initial": list(self.plan.initial), "windows": windows}

    def with_text_labels(self) -> Stream:
        """The same stream with all labels as text."""
        if self.initial.y.dtype.kind == "U":
            return self
        data, holdout = self._dataset, self.holdout
        return replace(
            self,
            plan=self.plan.with_text_labels(),
            initial=self.initial._replace(y=self.initial.y.astype(str)),
            holdout=holdout._replace(y=holdout.y.astype(str)),
            _dataset=replace(
                data, train=_use_text_labels(data.train), test=_use_text_labels(data.test)
            ),
        )

    def _check(self, index: int, first: int) -> None:
        if not first <= index <= len(self):
            raise BadConfig(
                f"index is {index}: the windows of this stream are {first} to {len(self)}."
            )


def _use_text_labels(split: Split) -> Split:
    return replace(split, y=split.y.astype(str))


def single_novel(
    dataset: Dataset,
    seed: int = 0,
    *,
    n_initial: int | None = None,
    initial_size: int | None = None,
    novel_size: float | None = None,
    window_size: int | None = None,
    holdout_size: int | None = None,
    n_windows: int | None = None,
    n_quiet: int = 0,
    vanishing: float = 0.1,
    imbalance: float = 1.0,
    max_initial_size: int | None = None,
    min_window_size: int | None = None,
    max_window_size: int | None = None,
) -> Stream:
    """Make a stream in which one novel class starts in every window.

    No instance is used twice. A known class vanishes at random, and at the latest when it has
    fewer instances left than a window takes of it. A class that has vanished does not return.

    Parameters
    ----------
    dataset : Dataset
        Data set. Its training split makes the stream, its test split the hold-out set.
    seed : int, default=0
        Seed of the order of classes, the plan and the choice of instances.
    n_initial : int or None, default=None
        Number of initial classes. None takes the paper's number.
    initial_size : int or None, default=None
        Labelled instances of each initial class. None takes 40 % of the class.
    novel_size : int, float or None, default=None
        Instances of each novel class in the window in which it starts. A number below 1 is a share
        of the class. None takes as many as in every other window.
    window_size : int or None, default=None
        Instances of each class in a window. None takes an even share: 60 % of the class, divided
        by the number of windows.
    holdout_size : int or None, default=None
        Hold-out instances of each class. None takes the whole test split.
    n_windows : int or None, default=None
        Number of windows. None goes on until every class has come.
    n_quiet : int, default=0
        Number of additional windows without a novel class.
    vanishing : float, default=0.1
        Probability that a known class leaves for good at the end of a window. A class that starts
        in a window does not leave at its end, and two known classes always stay.
    imbalance : float, default=1.0
        Size of the largest class of a window divided by that of the smallest, where the other
        arguments make them equal.
    max_initial_size : int or None, default=None
        Upper bound of the initial share of a class where ``initial_size`` is None.
    min_window_size : int or None, default=None
        Lower bound of the share of a class in a window where ``window_size`` is None.
    max_window_size : int or None, default=None
        Upper bound of the share of a class in a window where ``window_size`` is None.
    """
    classes = _classes(dataset, seed, fewest=3)
    default = paper_protocol(len(classes)).single_initial
    plan = make_plan(
        classes, n_initial=default if n_initial is None else n_initial,
        novel_range=(1, 1), n_quiet=n_quiet, vanishing=vanishing, n_windows=n_windows, seed=seed,
    )  # fmt: skip
    sizes = _Sizes(
        initial_size, novel_size, window_size, holdout_size, max_initial_size, min_window_size,
        max_window_size, imbalance,
    )  # fmt: skip
    return _deal_out(dataset, classes, "single", plan, sizes, seed)


def multiple_novel(
    dataset: Dataset,
    seed: int = 0,
    *,
    n_initial: int | None = None,
    max_novel: int | None = None,
    initial_size: int | None = None,
    novel_size: float | None = None,
    window_size: int | None = None,
    holdout_size: int | None = None,
    n_windows: int | None = None,
    n_quiet: int = 0,
    vanishing: float = 0.1,
    imbalance: float = 1.0,
    max_initial_size: int | None = None,
    min_window_size: int | None = None,
    max_window_size: int | None = None,
) -> Stream:
    """Make a stream in which several novel classes start in every window but the quiet ones.

    Parameters
    ----------
    max_novel : int or None, default=None
        Largest number of novel classes in a window; the smallest is two. None takes the paper's
        number.

    All other parameters are those of :func:`single_novel`.
    """
    classes = _classes(dataset, seed, fewest=4)
    protocol = paper_protocol(len(classes))
    most = protocol.max_novel if max_novel is None else max_novel
    plan = make_plan(
        classes, n_initial=protocol.multiple_initial if n_initial is None else n_initial,
        novel_range=(2, validation.whole_number("max_novel", most, least=2)), n_quiet=n_quiet,
        vanishing=vanishing, n_windows=n_windows, seed=seed,
    )  # fmt: skip
    sizes = _Sizes(
        initial_size, novel_size, window_size, holdout_size, max_initial_size, min_window_size,
        max_window_size, imbalance,
    )  # fmt: skip
    return _deal_out(dataset, classes, "multiple", plan, sizes, seed)


def _classes(dataset: Dataset, seed: int, fewest: int) -> list[Label]:
    """The classes of a stream: all of the data set, or a random choice by the seed."""
    if not isinstance(dataset, Dataset):
        raise BadInput(f"dataset is {dataset!r}: give a Dataset, such as load_dataset(name).")
    if len(dataset.classes) < fewest:
        raise BadInput(
            f"{dataset.name} has {len(dataset.classes)} classes: this stream needs {fewest}, 2 to "
            f"start with and {fewest - 2} to come{ONE_AT_A_TIME if fewest > 3 else ''}."
        )
    classes, n_drawn = dataset.classes, dataset.n_drawn
    if n_drawn is None:
        return classes
    validation.whole_number("seed", seed, least=0)
    if validation.whole_number("n_drawn", n_drawn, least=2) > len(classes):
        raise BadConfig(
            f"n_drawn is {n_drawn}: data set {dataset.name!r} has {len(classes)} classes to draw "
            "from, draw at most these."
        )
    chosen = generator(seed, "classes").choice(len(classes), n_drawn, replace=False)
    return [classes[position] for position in np.sort(chosen)]


@dataclass(frozen=True)
class _Sizes:
    """Instances of each class, or None for the default share of the class."""

    initial: int | None
    novel: float | None  # below 1, a share of the class
    window: int | None
    holdout: int | None
    max_initial: int | None
    min_window: int | None
    max_window: int | None
    imbalance: float

    def __post_init__(self) -> None:
        for name in ("initial", "window", "holdout", "max_initial", "min_window", "max_window"):
            if getattr(self, name) is not None:
                validation.whole_number(f"{name}_size", getattr(self, name), least=1)
        if self.novel is not None:
            _check_novel_size(self.novel)
        if self.min_window and self.max_window and self.min_window > self.max_window:
            raise BadConfig(
                f"min_window_size is {self.min_window}: give at most the max_window_size, "
                f"{self.max_window}."
            )
        validation.number("imbalance", self.imbalance, least=1.0)


def _check_novel_size(size: float) -> None:
    share = isinstance(size, float) and 0 < size < 1
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1
    if not (share or whole):
        raise BadConfig(
            f"novel_size is {size!r}: give a whole number of instances, or a share of the class "
            "between 0 and 1."
        )


def _deal_out(
    dataset: Dataset, classes: Sequence[Label], scenario: str, plan: Plan, sizes: _Sizes, seed: int
) -> Stream:
    rng = generator(seed, "deal")
    deal = _Deal(_rows_by_class(dataset.train.y, classes, rng), sizes, len(plan.windows), rng)
    initial = deal.initial(plan.initial)
    windows, rows = zip(*map(deal.window, count(1), plan.windows), strict=True)
    return Stream(
        name=f"{dataset.name}-{scenario}",
        seed=seed,
        plan=replace(plan, windows=windows),
        initial=Labelled(dataset.train.X[initial], dataset.train.y[initial]),
        holdout=_holdout(dataset, classes, sizes.holdout, seed),
        _dataset=dataset,
        _rows=rows,
    )


class _Deal:
    """Deals out the rows of each class, each row at most once."""

    def __init__(
        self, rows: dict[Label, Ints], sizes: _Sizes, n_windows: int, rng: np.random.Generator
    ) -> None:
        self._rows = rows
        self._sizes = sizes
        self._n_of = {label: len(of_class) for label, of_class in rows.items()}
        self._even = (1 - INITIAL_SHARE) / max(1, n_windows)
        self._rng = rng

    def initial(self, classes: tuple[Label, ...]) -> Ints:
        size, most = self._sizes.initial, self._sizes.max_initial
        counts = {c: size or self._share(c, INITIAL_SHARE, 2, most) for c in classes}
        return self._take(counts, "initial_size")

    def window(self, index: int, planned: PlannedWindow) -> tuple[PlannedWindow, Ints]:
        """The classes of a window that have enough rows left, and their rows."""
        left = tuple(c for c in planned.known if len(self._rows[c]) >= self._known_size(c))
        if len(left) < MIN_KNOWN:
            raise BadConfig(
                f"window {index} has too few known classes with training instances left, "
                f"{len(left)} instead of {MIN_KNOWN}: lower initial_size, window_size, vanishing "
                "or n_windows."
            )
        window = planned._replace(known=left)
        return window, self._take(self._window_counts(window), "novel_size or window_size")

    def _window_counts(self, window: PlannedWindow) -> dict[Label, int]:
        full = [self._known_size(c) for c in window.known]
        full += [self._novel_size(c) for c in window.novel]
        ranks = self._rng.permutation(len(full)) / max(1, len(full) - 1)
        counts = [round(n * self._sizes.imbalance**-r) for n, r in zip(full, ranks, strict=True)]
        return {label: max(1, n) for label, n in zip(window.classes, counts, strict=True)}

    def _known_size(self, label: Label) -> int:
        sizes = self._sizes
        least = sizes.min_window or 1
        return sizes.window or self._share(label, self._even, least, sizes.max_window)

    def _novel_size(self, label: Label) -> int:
        size = self._sizes.novel
        if size is None:
            return self._known_size(label)
        return int(size) if size >= 1 else self._share(label, size, 1, None)

    def _share(self, label: Label, share: float, least: int, most: int | None) -> int:
        size = max(least, int(share * self._n_of[label]))
        return size if most is None else min(size, most)

    def _take(self, counts: dict[Label, int], lower: str) -> Ints:
        taken = []
        for label, size in counts.items():
            rows = self._rows[label]
            if size > len(rows):
                raise BadConfig(
                    f"class {label!r} has {self._n_of[label]} training instances, fewer than "
                    f"the {size} that this stream wants: lower {lower}."
                )
            taken.append(rows[:size])
            self._rows[label] = rows[size:]
        return self._rng.permutation(np.concatenate(taken))


def _rows_by_class(
    y: Array, classes: Sequence[Label], rng: np.random.Generator
) -> dict[Label, Ints]:
    return {label: rng.permutation(np.flatnonzero(y == label)) for label in classes}


def _holdout(dataset: Dataset, classes: Sequence[Label], size: int | None, seed: int) -> Labelled:
    rows = _rows_by_class(dataset.test.y, classes, generator(seed, "holdout"))
    kept = np.sort(np.concatenate([of_class[:size] for of_class in rows.values()]))
    return Labelled(dataset.test.X[kept], dataset.test.y[kept])
