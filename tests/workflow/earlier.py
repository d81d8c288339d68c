"""Model folders as an earlier cilf wrote them: format 2, without digests."""

from __future__ import annotations

import json
from pathlib import Path


def remove_digests(model: Path) -> None:
    """Make a model folder of format 2 from one of format 3."""
    log = model / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        del line["files"], line["previous"]
        line.update({"format": 2} if "format" in line else {})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    current = model / "current"
    current.write_text(current.read_text()[:4] + "\n")
