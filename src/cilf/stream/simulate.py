"""From a data set and a plan to the windows themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cilf.core import Label, Labelled, Window, validation
from cilf.core.random import generator
from cilf.core.types import Ints
from cilf.data import Dataset
from cilf.errors import BadConfig, BadInput
from cilf.stream.plan import Plan, make_plan, paper_protocol

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

    def __iter__(self) -> Iterator[Window]:
        for index in range(1, len(self) + 1):
            yield self.window(index)

    def window(self, index: int) -> Window:
        """The window with this index; the first is 1."""
        if not 1 <= index <= len(self):
            raise BadConfig(f"index is {index}: the windows of this stream are 1 to {len(self)}.")
        planned, rows = self.plan.windows[index - 1], self._rows[index - 1]
        train = self._dataset.train
        return Window(
            index, train.X[rows], train.y[rows], planned.novel, planned.known, train.ids[rows]
        )


def single_novel(
    dataset: Dataset,
    seed: int = 0,
    *,
    n_initial: int | None = None,
    initial_size: int | None = None,
    window_size: int | None = None,
    holdout_size: int | None = None,
    n_windows: int | None = None,
    n_quiet: int = 0,
    n_vanishing: int = 1,
    imbalance: float = 1.0,
) -> Stream:
    """One novel class starts in every window.

    Args:
        dataset: where the instances come from: training split for the stream, test split for
            the hold-out.
        seed: decides class order, schedule and instances.
        n_initial: classes to start with; the paper's number if None.
        initial_size: labelled instances per initial class; 40 % of the class if None.
        window_size: instances per class and window; an even share of the rest if None.
        holdout_size: hold-out instances per class; the whole test split if None.
        n_windows: stop after this many windows; go on until every class has come if None.
        n_quiet: how many windows without a novel class to put in.
        n_vanishing: how many known classes leave for good, each at the end of a random window.
        imbalance: size of the largest over the smallest class in a window.
    """
    default = paper_protocol(_n_classes(dataset)).single_initial
    plan = make_plan(
        dataset.classes, n_initial=default if n_initial is None else n_initial,
        novel_range=(1, 1), n_quiet=n_quiet, n_vanishing=n_vanishing, n_windows=n_windows,
        seed=seed,
    )  # fmt: skip
    sizes = _Sizes(initial_size, window_size, holdout_size, imbalance)
    return _deal_out(dataset, "single", plan, sizes, seed)


def multiple_novel(
    dataset: Dataset,
    seed: int = 0,
    *,
    n_initial: int | None = None,
    max_novel: int | None = None,
    initial_size: int | None = None,
    window_size: int | None = None,
    holdout_size: int | None = None,
    n_windows: int | None = None,
    n_quiet: int = 0,
    n_vanishing: int = 1,
    imbalance: float = 1.0,
) -> Stream:
    """Two to ``max_novel`` novel classes start in every window (but the quiet ones).

    The other arguments are those of :func:`single_novel`; ``max_novel`` is the paper's if None.
    """
    protocol = paper_protocol(_n_classes(dataset))
    most = protocol.max_novel if max_novel is None else max_novel
    plan = make_plan(
        dataset.classes, n_initial=protocol.multiple_initial if n_initial is None else n_initial,
        novel_range=(2, validation.whole_number("max_novel", most, least=2)), n_quiet=n_quiet,
        n_vanishing=n_vanishing, n_windows=n_windows, seed=seed,
    )  # fmt: skip
    sizes = _Sizes(initial_size, window_size, holdout_size, imbalance)
    return _deal_out(dataset, "multiple", plan, sizes, seed)


def _n_classes(dataset: Dataset) -> int:
    if not isinstance(dataset, Dataset):
        raise BadInput(f"dataset is {dataset!r}: give a Dataset, as load_dataset(name) does.")
    return len(dataset.classes)


@dataclass(frozen=True)
class _Sizes:
    """Instances per class, or None for the default share of what the class has."""

    initial: int | None
    window: int | None
    holdout: int | None
    imbalance: float

    def __post_init__(self) -> None:
        for name in ("initial", "window", "holdout"):
            if getattr(self, name) is not None:
                validation.whole_number(f"{name}_size", getattr(self, name), least=1)
        validation.number("imbalance", self.imbalance, least=1.0)


def _deal_out(dataset: Dataset, scenario: str, plan: Plan, sizes: _Sizes, seed: int) -> Stream:
    deal = _Deal(dataset, seed, len(plan.windows))
    initial = deal.initial(plan.initial, sizes.initial)
    return Stream(
        name=f"{dataset.name}-{scenario}",
        seed=seed,
        plan=plan,
        initial=Labelled(dataset.train.X[initial], dataset.train.y[initial]),
        holdout=_holdout(dataset, sizes.holdout, seed),
        _dataset=dataset,
        _rows=tuple(deal.window(window.classes, sizes) for window in plan.windows),
    )


class _Deal:
    """Deals the rows of the training split out, each at most once."""

    def __init__(self, dataset: Dataset, seed: int, n_windows: int) -> None:
        self._rng = generator(seed, "deal")
        self._rows = _rows_by_class(dataset.train.y, self._rng)
        self._sizes = {label: len(rows) for label, rows in self._rows.items()}
        self._n_windows = max(1, n_windows)

    def initial(self, classes: tuple[Label, ...], size: int | None) -> Ints:
        counts = {c: size or max(2, int(INITIAL_SHARE * self._sizes[c])) for c in classes}
        return self._take(counts)

    def window(self, classes: tuple[Label, ...], sizes: _Sizes) -> Ints:
        ranks = self._rng.permutation(len(classes)) / max(1, len(classes) - 1)
        even = (1 - INITIAL_SHARE) / self._n_windows
        counts = {}
        for label, rank in zip(classes, ranks, strict=True):
            full = sizes.window or max(1, int(even * self._sizes[label]))
            counts[label] = max(1, round(full * sizes.imbalance**-rank))
        return self._take(counts)

    def _take(self, counts: dict[Label, int]) -> Ints:
        taken = []
        for label, count in counts.items():
            rows = self._rows[label]
            if count > len(rows):
                raise BadConfig(
                    f"class {label!r} has {self._sizes[label]} training instances, fewer than "
                    "this stream wants: lower initial_size, window_size or n_windows."
                )
            taken.append(rows[:count])
            self._rows[label] = rows[count:]
        return self._rng.permutation(np.concatenate(taken))


def _rows_by_class(y: np.ndarray, rng: np.random.Generator) -> dict[Label, Ints]:
    return {label: rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y).tolist()}


def _holdout(dataset: Dataset, size: int | None, seed: int) -> Labelled:
    rows = _rows_by_class(dataset.test.y, generator(seed, "holdout"))
    kept = np.sort(np.concatenate([of_class[:size] for of_class in rows.values()]))
    return Labelled(dataset.test.X[kept], dataset.test.y[kept])
