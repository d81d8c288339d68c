"""The text format of Prometheus."""

from __future__ import annotations

import math

from fastapi.testclient import TestClient

from cilf.console.metrics import GAUGE, HISTOGRAM, Histogram, Metric, Sample, format_metrics

from .prometheus_text import parse


def test_a_parser_reads_what_was_written() -> None:
    names = ['quo"te', "back\\slash", "new\nline", 'brace}, x="1"', "käse"]
    samples = [Sample(i / 3, {"class": name}) for i, name in enumerate(names)]
    odd = [Sample(v, {"n": str(v)}) for v in (math.inf, -math.inf, 1e300, 123456789)]
    found = parse(
        format_metrics([Metric("a", GAUGE, "Names.", samples), Metric("b", GAUGE, "Odd.", odd)])
    )
    assert [labels[0][1] for labels in found["a"]] == names
    assert list(found["b"].values()) == [math.inf, -math.inf, 1e300, 123456789]
    (value,) = parse(format_metrics([Metric("c", GAUGE, "c.", [Sample(math.nan)])]))["c"].values()
    assert math.isnan(value)


def test_a_histogram_counts_what_is_not_above_each_bound() -> None:
    histogram = Histogram(bounds=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.add("/a", value)
    found = parse(format_metrics([Metric("s", HISTOGRAM, "Seconds.", histogram.samples())]))
    buckets = {dict(labels)["le"]: n for labels, n in found["s_bucket"].items()}
    assert buckets == {"0.1": 2, "1": 3, "+Inf": 4}
    assert found["s_count"] == {(("path", "/a"),): 4}
    assert math.isclose(found["s_sum"][(("path", "/a"),)], 7.65)


def test_the_console_has_the_same_numbers(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    client.get("/api/windows/1")
    client.get("/api/windows/1/clusters")
    found = parse(client.get("/metrics").text)
    paths = {dict(labels)["path"] for labels in found["cilf_requests_total"]}
    assert {"/healthz", "/api/windows/{window}"} <= paths  # not a series for each window
    assert found["cilf_windows_total"] == {(): 1}
    assert found["cilf_model_version"] == {(): 1}
    assert found["cilf_queue_length"] == {(): 0}
    assert 0 < found["cilf_novel_share"][()] < 1
