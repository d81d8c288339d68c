"""A parser of the text format of Prometheus, as strict as its specification."""

from __future__ import annotations

import re

NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
LINE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
SUFFIXES = ("_bucket", "_sum", "_count")
ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Labels = tuple[tuple[str, str], ...]


def parse(text: str) -> dict[str, dict[Labels, float]]:
    """Name -> labels -> value. Every sample belongs to the metric that was announced last."""
    assert text.endswith("\n")
    found: dict[str, dict[Labels, float]] = {}
    metric, kind = "", ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            metric = line.split(" ")[2]
            assert len(line.split(" ", 3)[3]) > 0
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == metric
            assert kind in ("counter", "gauge", "histogram")
        else:
            read = LINE.fullmatch(line)
            assert read, line
            name = read[1]
            own = [metric + suffix for suffix in SUFFIXES] if kind == "histogram" else [metric]
            assert name in own, line
            labels = [(key, _unescape(value)) for key, value in re.findall(LABEL, read[2] or "")]
            samples = found.setdefault(name, {})
            assert tuple(sorted(labels)) not in samples, line
            samples[tuple(sorted(labels))] = float(read[read.re.groups])
    return found


def _unescape(value: str) -> str:
    return re.sub(r'\\["\\n]', lambda found: ESCAPED[found[0]], value)
