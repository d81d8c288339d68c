"""The tables and figures of the paper by name."""

from __future__ import annotations

from collections.abc import Sequence

from cilf.benchmark.paper.claims import claim_table
from cilf.benchmark.paper.curves import metric_curves, query_curves, time_bars, weight_heatmaps
from cilf.benchmark.paper.encoder import encoder_table
from cilf.benchmark.paper.item import MULTIPLE, SINGLE, Item
from cilf.benchmark.paper.maps import confusion_maps, stream_maps, window_maps
from cilf.benchmark.paper.ranks import rank_table
from cilf.benchmark.paper.tables import detection_table, forgetting_table
from cilf.core import validation

ALL = "all"
ITEMS: dict[str, Item] = {
    "table2": detection_table(SINGLE),
    "table3": forgetting_table(SINGLE),
    "table4": detection_table(MULTIPLE),
    "table5": forgetting_table(MULTIPLE),
    "ranks": rank_table(),
    "encoder": encoder_table(),
    "claims": claim_table(),
    "figure2": confusion_maps(),
    "figure4": stream_maps(),
    "figure5": window_maps(SINGLE),
    "figure6": metric_curves(SINGLE),
    "figure7": window_maps(MULTIPLE),
    "figure8": metric_curves(MULTIPLE),
    "figure9": query_curves(),
    "figure10": weight_heatmaps(),
    "figure11": time_bars(),
}


def select_items(names: Sequence[str]) -> dict[str, Item]:
    """Select items by name; "all" selects every item.

    >>> list(select_items(["figure4", "table2"]))
    ['figure4', 'table2']
    """
    if ALL in names:
        return ITEMS
    return {name: ITEMS[validation.one_of("item", name, [*ITEMS, ALL])] for name in names}
