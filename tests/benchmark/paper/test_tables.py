from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from cilf.benchmark.paper.comparison import Score
from cilf.benchmark.paper.item import Inputs
from cilf.benchmark.paper.setup import Row, Setup, with_replay
from cilf.benchmark.paper.tables import (
    ALL,
    DETECTION,
    DIFFERS,
    FORGETTING,
    IS_BEST,
    NO_CEILING,
    NO_RUN,
    NOT_RUN,
    Column,
    H,
    Place,
    compare,
    describe_above_ceiling,
    format_difference,
    make_csv_table,
    make_table,
    write_table,
)
from cilf.query.query_policy import GIVEN
from cilf.report import Table
from cilf.report.tables import MISSING

RANKING = Column(H)
COLUMNS = [Column(metric) for metric in DETECTION]


def score_of(*seeds: list[float]) -> Score:
    by_seed = {seed: float(np.nanmean(values)) for seed, values in enumerate(seeds)}
    windows = {(s, w): value for s, values in enumerate(seeds) for w, value in enumerate(values)}
    return Score(by_seed, windows)


def place(learner: str, data: str = "mnist") -> Place:
    return data, Row(learner)


def table_of(scores: dict[str, Score]) -> Table:
    compared = compare({place(n): dict.fromkeys(COLUMNS, s) for n, s in scores.items()}, RANKING)
    return make_table(compared, COLUMNS, "single", "title", "note")


def test_rows_are_in_the_order_of_h_within_a_data_set() -> None:
    scores = {
        place("cpe"): {RANKING: score_of([0.3], [0.4])},
        place("dtc"): {RANKING: Score({})},
        place("cilf"): {RANKING: score_of([0.6], [0.7])},
        place("cpe", "cifar10"): {RANKING: score_of([0.5])},
    }
    order = [(one.data, one.row.learner) for one in compare(scores, RANKING)]
    assert order == [("mnist", "cilf"), ("mnist", "cpe"), ("mnist", "dtc"), ("cifar10", "cpe")]


def test_the_best_by_h_is_bold_if_it_has_several_seeds() -> None:
    one_seed = table_of({"cilf": score_of([0.5, 0.7]), "cpe": score_of([0.2, 0.3])})
    assert one_seed.bold == frozenset()
    several = table_of({"cilf": score_of([0.5], [0.7]), "cpe": score_of([0.2], [0.3])})
    assert several.bold == {(0, 2)}
    assert r"\textbf{0.600 $\pm$ 0.141}" in several.to_latex()
    shared = table_of({"cilf": score_of([0.5], [0.7]), "cpe": score_of([0.7], [0.5])})
    assert shared.bold == {(0, 2), (1, 2)}


def test_the_papers_numbers_stand_beside_the_metrics_that_it_prints() -> None:
    table = table_of({"cilf": score_of([0.5], [0.7])})
    assert table.columns == (
        "data", "learner", "H", "difference", "AKS", "AUS", "NA", "paper", "Macro-F", "paper",
        "Micro-F", "paper", "AUROC", "paper",
    )  # fmt: skip
    assert table.rows[0][:3] == ("MNIST", "cilf", "0.600 ± 0.141")
    assert table.rows[0][7] == "0.371 ± 0.022"


def test_differences_are_paired_carry_their_deviation_and_are_marked() -> None:
    high = [0.9 + i / 1000 for i in range(10)]
    low = [value - 0.3 - i / 500 for i, value in enumerate(high)]
    near = [value - 0.001 - 0.01 * (-1) ** i for i, value in enumerate(high)]
    scores = {
        place("cilf"): {RANKING: score_of(high, high)},
        place("cpe"): {RANKING: score_of(low, [0.5] * 10)},
        place("dtc"): {RANKING: score_of(near)},
    }
    best, dtc, cpe = compare(scores, RANKING)
    assert (best.is_best, format_difference(best, RANKING)) == (True, MISSING)
    assert format_difference(dtc, RANKING) == "-0.001"
    assert format_difference(cpe, RANKING) == "-0.357 ± 0.068†"
    assert math.isclose(cpe.differences[RANKING].by_seed[1], 0.5 - np.mean(high))


def test_who_finds_no_more_than_the_floor_is_marked() -> None:
    scores = {
        "cilf": score_of([0.5], [0.6]),
        "cpe": score_of([0.0], [0.1]),  # above the floor by less than its deviation
        "dtc": score_of([0.0], [0.0]),
        "never": score_of([0.0], [0.0]),
    }
    names = [row[1] for row in table_of(scores).rows]
    assert names == ["cilf", "cpe‡", "dtc‡", "never"]


def test_nobody_is_marked_where_nothing_is_compared_with_the_floor() -> None:
    unfinished = {"cilf": score_of([0.5], [0.6]), "cpe": Score({}), "never": score_of([0.0], [0.0])}
    assert [row[1] for row in table_of(unfinished).rows] == ["cilf", "never", "cpe"]
    without_floor = {"cilf": score_of([0.5], [0.6]), "never": Score({})}
    assert [row[1] for row in table_of(without_floor).rows] == ["cilf", "never"]


def test_who_ends_no_higher_than_the_floor_is_marked_in_tables_of_updates() -> None:
    ranking, ending = Column(FORGETTING, GIVEN), Column(ALL, GIVEN)
    scores = {
        place("never"): {ranking: score_of([0.7], [0.7]), ending: score_of([0.3], [0.3])},
        place("dnn-base"): {ranking: score_of([0.6], [0.6]), ending: score_of([0.2], [0.35])},
        place("cilf"): {ranking: score_of([0.1], [0.1]), ending: score_of([0.9], [0.9])},
    }
    marked = {one.row.learner: one.is_below_floor for one in compare(scores, ranking, ending)}
    assert marked == {"cilf": False, "dnn-base": True, "never": False}


def test_joint_is_no_rival_and_who_ends_above_it_is_named() -> None:
    ranking, ending = Column(FORGETTING, GIVEN), Column(ALL, GIVEN)
    scores = {
        place("joint"): {ranking: score_of([0.0], [0.0]), ending: score_of([0.8], [0.8])},
        place("cilf"): {
            ranking: score_of([0.1], [0.2]), ending: score_of([0.7], [0.7]),
            Column(ALL): score_of([0.7], [0.7]),  # joint has no run under "found"
        },
        ("mnist", with_replay("dnn-base")): {
            ranking: score_of([0.2], [0.3]), ending: score_of([0.83], [0.85])
        },
    }  # fmt: skip
    compared = compare(scores, ranking)
    assert [(one.row.learner, one.is_best) for one in compared] == [
        ("joint", False), ("cilf", True), ("dnn-base", False)
    ]  # fmt: skip
    said = describe_above_ceiling(scores)
    assert said.endswith("dnn-base, replay, given, on mnist by 0.040 ± 0.014.")
    assert "cilf" not in said
    below = {place(name): scores[place(name)] for name in ("joint", "cilf")}
    assert describe_above_ceiling(below).endswith(": none.")
    unfinished = below | {place("joint"): {ranking: Score({}), ending: Score({})}}
    for without in (unfinished, {place("cilf"): scores[place("cilf")]}):
        assert describe_above_ceiling(without).startswith("No run of joint is finished")


def test_numbers_for_programs_are_numbers() -> None:
    scores = {("digits", with_replay("dnn-base")): {RANKING: score_of([0.5])}}
    lines = make_csv_table(compare(scores, RANKING), "single").to_csv().splitlines()
    assert lines[1] == "plan_h,found,dnn-base,replay,digits,single,0.5,,1,,,,,,"


def test_the_files_hold_the_same_table(tmp_path: Path) -> None:
    inputs = Inputs("table2", "title", Setup("smoke"), {}, tmp_path, tmp_path)
    compared = compare({place("cilf"): dict.fromkeys(COLUMNS, score_of([0.5]))}, RANKING)
    table = make_table(compared, COLUMNS, "single", "title", "†: p < 0.05")
    files = write_table(table, make_csv_table(compared, "single"), inputs)
    assert [file.name for file in files] == [f"table2.{s}" for s in ("md", "csv", "tex", "json")]
    assert r"$^\dagger$: p $<$ 0.05" in (tmp_path / "table2.tex").read_text(encoding="utf-8")
    assert Table.from_json((tmp_path / "table2.json").read_text(encoding="utf-8")) == table
    assert (tmp_path / "table2.md").read_text(encoding="utf-8") == table.to_markdown()


def test_a_difference_is_marked_only_if_it_survives_the_number_of_rows() -> None:
    """Eight pairs of one sign have p = 0.0078: enough among six rivals, not among seven."""
    high = score_of([0.9 + i / 1000 for i in range(8)])
    low = score_of([0.5 - i / 500 for i in range(8)])
    for n_rivals, marked in ((1, True), (6, True), (7, False)):
        rivals = {("mnist", Row("cpe", str(i))): {RANKING: low} for i in range(n_rivals)}
        _, *others = compare({place("cilf"): {RANKING: high}} | rivals, RANKING)
        assert all(one.p_values[RANKING] < 0.01 for one in others)
        ends = {format_difference(one, RANKING).endswith(DIFFERS) for one in others}
        assert ends == {marked}


def test_every_empty_cell_has_a_sign_that_the_note_explains() -> None:
    given, found = Column(FORGETTING, GIVEN), Column(FORGETTING)
    ending, end_found = Column(ALL, GIVEN), Column(ALL)
    columns = [given, ending, found, end_found]
    some, none = score_of([0.2], [0.3]), Score({})
    scores = {
        place("joint"): {given: score_of([0.0], [0.0]), ending: some},
        place("cilf"): dict.fromkeys(columns, some),
        place("cpe"): {given: none, ending: some, found: none, end_found: some},
        place("dtc"): dict.fromkeys(columns, none),
        place("never", "digits"): dict.fromkeys(columns, score_of([0.7], [0.7])),
    }
    table = make_table(compare(scores, given), columns, "single", "title", "note.")
    empty = [cell for row in table.rows for cell in row if str(cell).startswith(MISSING)]
    assert empty
    assert all(cell != MISSING for cell in empty)
    assert all(f"{cell}: " in table.note for cell in empty)
    by_learner = {row[1]: row for row in table.rows if row[0] == "MNIST"}
    assert by_learner["cilf"][3] == f"{MISSING}{IS_BEST}"
    assert by_learner["cpe"][2] == f"{MISSING}{NO_CEILING}"
    assert set(by_learner["dtc"][2:4]) == {f"{MISSING}{NO_RUN}"}
    assert by_learner["joint"][-1] == f"{MISSING}{NOT_RUN}"
    assert r"--$^a$" in table.to_latex()
