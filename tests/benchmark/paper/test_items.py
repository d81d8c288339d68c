from __future__ import annotations

import pytest

from cilf.benchmark.paper.items import ITEMS, select_items
from cilf.benchmark.paper.setup import SYSTEMS, Setup
from cilf.errors import BadConfig

NAMES = [*(f"table{n}" for n in range(2, 6)), "figure2", *(f"figure{n}" for n in range(4, 12))]


def test_every_item_of_the_paper_is_there() -> None:
    assert list(ITEMS) == NAMES
    assert select_items(["figure4", "all"]) == ITEMS
    with pytest.raises(BadConfig, match="did you mean 'table2'"):
        select_items(["tabel2"])


def test_items_share_cells() -> None:
    setup = Setup("smoke")
    assert set(ITEMS["table2"].cells(setup)) == set(ITEMS["figure6"].cells(setup))
    assert {cell.learner for cell in ITEMS["table3"].cells(setup)} == {*SYSTEMS, "joint"}
    assert len(ITEMS["figure10"].cells(setup)) == 2 * 3 * 3
    assert len(ITEMS["figure10"].cells(Setup("cpu"))) == 2 * 5 * 5
