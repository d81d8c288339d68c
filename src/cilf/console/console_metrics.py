"""The numbers of a console, from what its store holds."""

from __future__ import annotations

import math

from cilf.console.metrics import Metric, describe_windows
from cilf.console.service import Console
from cilf.console.store import DONE, QUEUED


def collect_metrics(console: Console) -> list[Metric]:
    """The detections of a console, its model and its queue."""
    facts = [row.facts for row in console.store.windows() if row.status == DONE]
    last = facts[-1] if facts else {}
    n_last = last.get("n", 0)
    n_known = sum(last.get("known", {}).values())
    return describe_windows(
        n_windows=len(facts),
        n_instances=sum(each["n"] for each in facts),
        novel_share=(n_last - n_known) / n_last if n_last else math.nan,
        n_novel=last.get("n_novel"),
        drift=last.get("drift", {}),
        version=console.model()["version"],
        queue=len(console.store.jobs(statuses=[QUEUED])),
    )
