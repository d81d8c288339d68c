"""The claims of the paper's experiments, judged by the finished runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cilf.benchmark.config import data_file_name
from cilf.benchmark.paper.comparison import FORGETTING
from cilf.benchmark.paper.curves import (
    LAMBDA1,
    TIMED,
    query_curves,
    time_bars,
    weight_heatmaps,
)
from cilf.benchmark.paper.item import MULTIPLE, Inputs, Item
from cilf.benchmark.paper.published import COLUMNS
from cilf.benchmark.paper.ranks import DETECTION, Stream, Values, collect_values, list_cells
from cilf.benchmark.paper.results import Cell, Results, average_seeds
from cilf.benchmark.paper.setup import FLOOR, OURS, RIVALS, SYSTEMS, Setup
from cilf.benchmark.paper.tables import Column, write_table
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.metrics import mean
from cilf.query.query_policy import FOUND, GIVEN
from cilf.query.strategies import RANDOM
from cilf.report.run import Run
from cilf.report.tables import Table

TRADITIONAL = ("iforest", "one-svm", "lacu-svm", "senc-mas")
DEEP = ("odin-cnn", "cfo", "cpe", "dtc")
TUNED = "dtc"  # clusters while it tunes its network; the other rivals cluster what they detected
FORGOTTEN = Column(FORGETTING, GIVEN)
YES, PARTLY, NO, OPEN = "reproduces", "in part", "does not reproduce", "no runs"
MOST_NAMED = 4  # columns in which another learner is better


class Verdict(NamedTuple):
    """What the runs say about a claim."""

    holds: str
    numbers: str


class Claim(NamedTuple):
    """A claim, whom it is about, and the function that judges it."""

    text: str
    about: str
    judge: Callable[[Results], Verdict]


def claim_table() -> Item:
    """Judge each claim of the paper's experiments by the finished runs."""
    return Item(
        "The paper's claims",
        "No table of the paper: it goes through the claims of its experiments. A claim reproduces "
        "if it holds in every column that has runs, and in part if it holds in some. A column is a "
        "metric on a data set in a scenario; learners are compared on the seeds that both have. "
        "Rivals are as published.",
        _write_claims,
        _list_cells,
    )


def _list_cells(setup: Setup) -> list[Cell]:
    figures = (query_curves(), weight_heatmaps(), time_bars())
    cells = [*list_cells(setup), *(cell for item in figures for cell in item.cells(setup))]
    return list(dict.fromkeys(cells))


def list_claims() -> list[Claim]:
    """List the claims in the order of the paper."""
    ours = tuple(reversed(OURS))
    return [
        Claim("Deep learners detect better than traditional ones", "rivals", judge_deep),
        *(Claim("CILF is the best in all criteria of detection", o, judge_best(o)) for o in ours),
        Claim("Clustering after detection is not worse than DTC", "rivals", judge_clustering),
        *(Claim("CILF forgets least", o, judge_least_forgetting(o)) for o in ours),
        Claim("More labels are better", "cilf", judge_labels),
        *(Claim("λ1 above 1 is better", o, judge_weights(o)) for o in ours),
        *(Claim("CILF is the fastest", o, judge_seconds(o)) for o in ours),
    ]


# ----------------------------------------------------------------- columns

Group = tuple[str, str]  # data set and scenario


def _plain(results: Results) -> Results:
    """Select the runs with all labels and the default weights: those of the tables."""
    varied = {LAMBDA1}
    return {
        cell: runs
        for cell, runs in results.items()
        if cell.query == 1 and not varied & dict(cell.parameters).keys()
    }


def compute_lead(own: Mapping[Stream, float], other: Mapping[Stream, float]) -> dict[Group, float]:
    """Compute the mean of one learner less that of another, over the seeds that both have.

    >>> one, other = {("mnist", "single", 0): 0.75}, {("mnist", "single", 0): 0.5}
    >>> compute_lead(one, other)
    {('mnist', 'single'): 0.25}
    """
    found: dict[Group, list[float]] = {}
    for stream in own.keys() & other.keys():
        found.setdefault(stream[:2], []).append(own[stream] - other[stream])
    return {group: mean(found[group]) for group in sorted(found)}


def _name(group: Group) -> str:
    data, scenario = group
    return f"{COLUMNS.get(data, data_file_name(data))} {scenario}"


def _count(held: int, n: int, numbers: str) -> Verdict:
    if not n:
        return Verdict(OPEN, "")
    return Verdict(YES if held == n else PARTLY if held else NO, numbers)


# ----------------------------------------------------------------- claims


def _average_group(values: Values, names: Sequence[str]) -> dict[Stream, float]:
    """Average the values of several learners on each stream that all of them have."""
    present = [values[name] for name in names if values.get(name)]
    shared = set.intersection(*(set(own) for own in present)) if present else set()
    return {stream: mean(own[stream] for own in present) for stream in shared}


def judge_deep(results: Results) -> Verdict:
    """Compare the mean H of deep and of traditional rivals."""
    values = collect_values(_plain(results), DETECTION[0])
    deep, old = _average_group(values, DEEP), _average_group(values, TRADITIONAL)
    leads = compute_lead(deep, old)
    held = sum(lead > 0 for lead in leads.values())
    each = "; ".join(f"{_name(group)} {lead:+.3f}" for group, lead in leads.items())
    return _count(held, len(leads), f"mean H of those with runs, deep less traditional: {each}")


def judge_clustering(results: Results) -> Verdict:
    """Compare H of the rivals that cluster what they detected with that of DTC."""
    values = collect_values(_plain(results), DETECTION[0])
    best: dict[Group, tuple[float, str]] = {}
    for name in RIVALS:
        for group, lead in compute_lead(values.get(name, {}), values.get(TUNED, {})).items():
            if name != TUNED:
                best[group] = max(best.get(group, (-1.0, "")), (lead, name))
    held = sum(lead >= 0 for lead, _ in best.values())
    each = "; ".join(f"{_name(g)} {lead:+.3f} ({name})" for g, (lead, name) in sorted(best.items()))
    return _count(held, len(best), f"H of the best of them less that of DTC: {each}")


def judge_best(name: str) -> Callable[[Results], Verdict]:
    """Count the columns of detection in which a learner is ahead of all rivals and the floor."""
    return lambda results: _judge_lead(_plain(results), name, DETECTION, (*RIVALS, FLOOR))


def judge_least_forgetting(name: str) -> Callable[[Results], Verdict]:
    """Count the columns of forgetting, labels given, in which a learner is ahead of all rivals."""
    others = [other for other in SYSTEMS if other not in OURS]
    return lambda results: _judge_lead(_plain(results), name, (FORGOTTEN,), (*others, FLOOR))


def _judge_lead(
    results: Results, name: str, columns: Sequence[Column], others: Sequence[str]
) -> Verdict:
    n_columns, behind = 0, list[tuple[float, str]]()
    for column in columns:
        values = collect_values(results, column)
        sign = 1 if METRICS[column.metric].higher_is_better else -1
        worst: dict[Group, tuple[float, str]] = {}
        for other in others:
            leads = compute_lead(values.get(name, {}), values.get(other, {}))
            for group, lead in leads.items():
                worst[group] = min(worst.get(group, (float("inf"), "")), (sign * lead, other))
        n_columns += len(worst)
        title = METRICS[column.metric].title
        behind += [
            (lead, f"{title} {_name(group)}, {other} by {-lead:.3f}")
            for group, (lead, other) in worst.items()
            if lead < 0
        ]
    first = n_columns - len(behind)
    named = "; ".join(text for _, text in sorted(behind)[:MOST_NAMED])
    numbers = f"first in {first} of {n_columns} columns"
    numbers += f"; farthest behind: {named}" if named else ""
    return _count(first, n_columns, numbers)


def judge_labels(results: Results) -> Verdict:
    """Compare H with all labels and with the smallest share of them, drawn at random."""
    queried = {cell.data for cell in results if cell.query != 1}
    by_group: dict[Group, dict[float, float]] = {}
    for cell, runs in results.items():
        plain = cell.learner == "cilf" and not cell.parameters and cell.protocol == FOUND
        if runs and plain and cell.strategy == RANDOM and cell.data in queried:
            own = by_group.setdefault((cell.data, cell.scenario), {})
            own[cell.query] = average_seeds(runs, DETECTION[0].metric)
    gains = {
        group: own[max(own)] - own[min(own)] for group, own in by_group.items() if len(own) > 1
    }
    each = "; ".join(f"{_name(group)} {gain:+.3f}" for group, gain in gains.items())
    held = sum(gain > 0 for gain in gains.values())
    return _count(held, len(gains), f"H with all labels less that with the smallest share: {each}")


def judge_weights(name: str) -> Callable[[Results], Verdict]:
    """Compare the mean AUROC with λ1 above 1 and below."""

    def judge(results: Results) -> Verdict:
        gains = {}
        for scenario, (above, below) in _split_weights(results, name).items():
            if above and below:
                gains[scenario] = mean(above) - mean(below)
        each = "; ".join(f"{scenario} {gain:+.3f}" for scenario, gain in gains.items())
        held = sum(gain > 0 for gain in gains.values())
        return _count(held, len(gains), f"mean AUROC with λ1 > 1 less that with λ1 < 1: {each}")

    return judge


def _split_weights(results: Results, name: str) -> dict[str, tuple[list[float], list[float]]]:
    """List the AUROC of each run with λ1 above 1 and below, by scenario."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for cell, runs in results.items():
        weight = dict(cell.parameters).get(LAMBDA1)
        if cell.learner == name and weight not in (None, 1.0) and runs:
            side = found.setdefault(cell.scenario, ([], []))[weight < 1.0]
            side.append(average_seeds(runs, "plan_auroc"))
    return found


def judge_seconds(name: str) -> Callable[[Results], Verdict]:
    """Compare the seconds of detection and updates with those of the timed rivals.

    Only runs of one commit and machine compare, since the seconds of others differ by more than
    the learner.
    """

    def judge(results: Results) -> Verdict:
        seconds: dict[Group, dict[str, float]] = {}
        timed = {cell: runs for cell, runs in _plain(results).items() if runs and _is_timed(cell)}
        own = {cell.data: _find_origins(runs) for cell, runs in timed.items() if cell.name == name}
        for cell, runs in timed.items():
            if _find_origins(runs) == own.get(cell.data):
                steps = [average_seeds(runs, f"seconds_{step}") for step in ("detect", "update")]
                seconds.setdefault((cell.data, cell.scenario), {})[cell.name] = sum(steps)
        several = {group: each for group, each in seconds.items() if len(each) > 1}
        fastest = {group: min(each, key=each.__getitem__) for group, each in several.items()}
        numbers = "; ".join(
            f"{_name(group)} {seconds[group][name]:.0f} s, fastest {best} with "
            f"{seconds[group][best]:.0f} s"
            for group, best in fastest.items()
        )
        held = sum(best == name for best in fastest.values())
        return _count(held, len(fastest), numbers)

    return judge


def _is_timed(cell: Cell) -> bool:
    return cell.name in TIMED and cell.scenario == MULTIPLE and cell.protocol == FOUND


def _find_origins(runs: Mapping[int, Run]) -> set[str]:
    """Find the commits and machines that runs come from."""
    return {f"{run.about.get('commit')} {run.about.get('machine')}" for run in runs.values()}


# ----------------------------------------------------------------- files


def _write_claims(inputs: Inputs) -> list[Path]:
    rows = [(claim.text, claim.about, *claim.judge(inputs.results)) for claim in list_claims()]
    table = Table(inputs.title, ("claim", "about", "here", "numbers"), tuple(rows))
    return write_table(table, table, inputs)
