from __future__ import annotations

import pytest

from cilf.benchmark.paper.items import ITEMS, select_items
from cilf.benchmark.paper.setup import RIVALS, SYSTEMS, UPDATERS, Setup
from cilf.errors import BadConfig

TABLES, FIGURES = range(2, 6), (2, *range(4, 12))
OWN = ("ranks", "encoder", "claims")  # not in the paper
NAMES = [*(f"table{n}" for n in TABLES), *OWN, *(f"figure{n}" for n in FIGURES)]


def test_every_item_of_the_paper_is_there() -> None:
    assert list(ITEMS) == NAMES
    assert select_items(["figure4", "all"]) == ITEMS
    with pytest.raises(BadConfig, match="did you mean 'table2'"):
        select_items(["tabel2"])


def test_rivals_and_update_methods_have_two_rows_and_every_table_its_floor() -> None:
    detection = [cell.name for cell in ITEMS["table2"].cells(Setup("smoke"))]
    for name in RIVALS:
        assert {name, f"{name}, shared space"} <= set(detection)
    for protocol in ("given", "found"):
        cells = ITEMS["table3"].cells(Setup("smoke"))
        names = [cell.name for cell in cells if cell.protocol == protocol]
        for name in UPDATERS:
            assert {name, f"{name}, replay"} <= set(names)
        assert {"never", "cilf", "cilf-paper"} <= set(names)
    assert {"never", "cilf", "cilf-paper"} <= set(detection)


def test_every_cell_can_be_run_and_the_paper_clusters_all_instances() -> None:
    setup = Setup("smoke")
    for item in ITEMS.values():
        for cell in item.cells(setup):
            assert cell.config(setup, 0).make_learner().seed == 0
    forest = next(c for c in ITEMS["table2"].cells(setup) if c.name == "iforest")
    assert forest.config(setup, 0).make_learner().get_params()["clustering__cluster_all"] is True


def test_items_share_cells() -> None:
    setup = Setup("smoke")
    detection = ITEMS["table2"].cells(setup)
    assert set(ITEMS["figure6"].cells(setup)) < set(detection)
    assert {cell.learner for cell in ITEMS["table3"].cells(setup)} == {*SYSTEMS, "joint", "never"}
    found = [cell for cell in ITEMS["table3"].cells(setup) if cell.protocol == "found"]
    as_published = [cell for cell in detection if not cell.variant]
    assert set(as_published) < set(found)
    assert len(ITEMS["figure10"].cells(setup)) == 2 * 2 * 3 * 3
    assert len(ITEMS["figure10"].cells(Setup("cpu"))) == 2 * 2 * 5 * 5


def test_the_encoder_stands_in_a_table_of_its_own_and_takes_no_digits() -> None:
    cells = ITEMS["encoder"].cells(Setup("cpu"))
    assert {cell.data for cell in cells} == {"cifar10", "cifar50", "cifar100"}
    assert {cell.learner for cell in cells} == {"cilf", "never", "joint"}
    assert {dict(cell.parameters)["backbone"] for cell in cells} == {"efficientnet-lite2"}
    assert ITEMS["encoder"].cells(Setup("smoke")) == []
    own = ITEMS["encoder"].cells(Setup("cpu", data=("rows.csv", "cifar50")))
    assert {cell.data for cell in own} == {"cifar50"}
