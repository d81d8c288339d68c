"""Numbers about a server, in the text format of Prometheus."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
OTHER = "other"  # the path of requests that no route answers

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """A value with its labels; ``suffix`` is that of a part of a histogram."""

    value: float
    labels: Labels = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True)
class Metric:
    """A name with its values.

    >>> print(format_metrics([Metric("up", GAUGE, "1 if it runs.", [Sample(1, {"at": 'a"b'})])]))
    # HELP up 1 if it runs.
    # TYPE up gauge
    up{at="a\\"b"} 1
    <BLANKLINE>
    """

    name: str
    kind: str
    meaning: str
    samples: Sequence[Sample]


def format_metrics(metrics: Iterable[Metric]) -> str:
    """The metrics in the text format of Prometheus."""
    lines = []
    for metric in metrics:
        lines += [
            f"# HELP {metric.name} {metric.meaning}",
            f"# TYPE {metric.name} {metric.kind}",
        ]
        for sample in metric.samples:
            labels = ",".join(f'{key}="{_escape(text)}"' for key, text in sample.labels.items())
            where = f"{{{labels}}}" if labels else ""
            lines.append(f"{metric.name}{sample.suffix}{where} {_format(sample.value)}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _format(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    return f"{value:.10g}"


class Histogram:
    """How many values lie below each bound, for each path."""

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self.bounds = (*bounds, math.inf)
        self._counts: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def add(self, path: str, value: float) -> None:
        counts = self._counts.setdefault(path, [0] * len(self.bounds))
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[path] += value  # type: ignore[assignment]

    def samples(self) -> list[Sample]:
        found = []
        for path, counts in self._counts.items():
            n = 0
            for bound, count in zip(self.bounds, counts, strict=True):
                n += count
                found.append(Sample(n, {"path": path, "le": _format(bound)}, "_bucket"))
            found.append(Sample(self._sums[path], {"path": path}, "_sum"))
            found.append(Sample(n, {"path": path}, "_count"))
        return found


class RequestMetrics:
    """The requests that a server has answered, by path and status, and how long that took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._seconds = Histogram()

    def add(self, path: str, method: str, status: int, seconds: float) -> None:
        with self._lock:
            self._counts[path, method, str(status)] += 1
            self._seconds.add(path, seconds)

    def collect(self) -> list[Metric]:
        with self._lock:
            counts = [
                Sample(n, {"path": path, "method": method, "status": status})
                for (path, method, status), n in sorted(self._counts.items())
            ]
            seconds = self._seconds.samples()
        return [
            Metric("cilf_requests_total", COUNTER, "Requests that were answered.", counts),
            Metric("cilf_request_seconds", HISTOGRAM, "Time to the end of an answer.", seconds),
        ]


class MeasuredRequests:
    """The layer that measures requests. Routes are named by their pattern, not by their URL."""

    def __init__(self, app: ASGIApp, requests: RequestMetrics) -> None:
        self.app, self.requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def remember(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, remember)
        finally:
            path = getattr(scope.get("route"), "path", OTHER)
            self.requests.add(path, scope["method"], status, time.perf_counter() - started)


def add_metrics(app: FastAPI, collect: Callable[[], Iterable[Metric]]) -> None:
    """Add ``/healthz`` and ``/metrics`` to an application, and measure its requests."""
    requests = RequestMetrics()
    app.add_middleware(MeasuredRequests, requests=requests)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        """The server answers."""
        return {"status": "ok"}

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> PlainTextResponse:
        """Numbers about the server."""
        text = format_metrics([*requests.collect(), *collect()])
        return PlainTextResponse(text, media_type=CONTENT_TYPE)


# ----------------------------------------------------------------- of a model in use


def describe_windows(
    *,
    n_windows: int,
    n_instances: int,
    novel_share: float,
    n_novel: int | None,
    drift: Mapping[str, float],
    version: int | None,
    queue: int,
) -> list[Metric]:
    """The metrics of detections, which every server of ours has under the same names."""
    found = math.nan if n_novel is None else n_novel
    return [
        Metric("cilf_windows_total", COUNTER, "Windows that were detected.", [Sample(n_windows)]),
        Metric("cilf_instances_total", COUNTER, "Instances of windows.", [Sample(n_instances)]),
        Metric("cilf_novel_share", GAUGE, "Novel share of the last window.", [Sample(novel_share)]),
        Metric("cilf_novel_classes", GAUGE, "Novel classes of the last window.", [Sample(found)]),
        Metric(
            "cilf_class_drift",
            GAUGE,
            "Distance that a known class has moved, in units of its spread.",
            [Sample(value, {"class": name}) for name, value in sorted(drift.items())],
        ),
        Metric(
            "cilf_model_version",
            GAUGE,
            "Version of the model.",
            [Sample(math.nan if version is None else version)],
        ),
        Metric("cilf_queue_length", GAUGE, "Tasks that wait for the model.", [Sample(queue)]),
    ]
