"""A watched stream: windows, kills, full queues, and what is broken on the way."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cilf import workflow
from cilf.console.app import make_app
from cilf.console.guard import Access
from cilf.console.jobs import Worker
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.errors import BadConfig, BadInput
from cilf.serving import watch_state
from cilf.serving.destinations import ConsoleWindows, Destination, FindingsFolders, make_transport
from cilf.serving.watch import Pace, parse_duration, watch

from ..points import write_points
from .conftest import URL

KILLED = 9


class Watching:
    """A stream in a folder, and what its watcher said."""

    def __init__(self, model: Path) -> None:
        self.model, self.folder = model, model.parent
        self.stream = self.folder / "stream"
        self.stream.mkdir()
        self.destination: Destination = FindingsFolders(self.folder / "out", "stream")
        self.said: list[str] = []
        self.told: list[Mapping[str, Any]] = []

    def write(self, name: str, sizes: dict[str, int], seed: int) -> None:
        write_points(self.stream / name, sizes, seed)

    def run(self, source: str | None = None, **options: Any) -> None:
        pace = Pace(**({"every": 60.0, "once": True, "at_least": 10} | options.pop("pace", {})))

        def tell(body: Mapping[str, Any]) -> str:
            self.told.append(body)
            return ""

        watch(
            self.model, source or str(self.stream), self.destination, self.folder / "state",
            pace=pace, channels={"test": tell}, say=self.said.append, **options,
        )  # fmt: skip

    def windows(self) -> list[list[str]]:
        """The identities in each window."""
        found = [path for path in self.folder.glob("out/window-*") if path.is_dir()]
        return [workflow.Findings.open(path).assignments.ids.tolist() for path in sorted(found)]


@pytest.fixture
def watching(model: Path) -> Watching:
    return Watching(model)


def test_what_is_new_is_told_and_nothing_is_detected_twice(watching: Watching) -> None:
    watching.write("a.csv", {"left": 20, "right": 20, "up": 30}, 1)
    watching.run()
    (told,) = watching.told
    findings = workflow.Findings.open(told["findings"])
    assert (told["window"], told["n_instances"], told["model_version"]) == (1, 70, 1)
    assert told["n_novel"] == len(findings.assignments.cluster_sizes)
    assert told["n_novel"] >= 1
    watching.run()
    assert len(watching.windows()) == 1
    watching.write("b.csv", {"left": 6, "right": 6}, 2)
    watching.write("same as a.csv", {"left": 20, "right": 20, "up": 30}, 1)
    watching.run()
    assert [len(ids) for ids in watching.windows()] == [70, 12]


def test_few_instances_wait_for_more(watching: Watching) -> None:
    watching.write("a.csv", {"left": 4}, 1)
    watching.run()
    assert watching.windows() == []
    assert watching.said == ["4 instances wait for a window of at least 10."]
    watching.write("b.csv", {"left": 6}, 2)
    watching.run()
    assert [len(ids) for ids in watching.windows()] == [10]


def test_a_file_that_grows_brings_its_new_rows(watching: Watching) -> None:
    watching.write("a.csv", {"left": 10}, 1)
    watching.run()
    with (watching.stream / "a.csv").open("a") as file:
        file.writelines(f"more-{i},{i / 7:.3f},0.25\n" for i in range(10))
    watching.run()
    assert [len(ids) for ids in watching.windows()] == [10, 10]
    assert all("more-" in identity for identity in watching.windows()[1])


def run_and_die(run: Callable[[], None], statement: str, n: int) -> bool:
    """Run in a process that dies before the ``n``-th statement of its database that starts so.

    Returns whether it died.
    """
    child = os.fork()
    if child == 0:
        connect, left = sqlite3.connect, [n]

        def count(sql: str) -> None:
            left[0] -= sql.startswith(statement)
            if left[0] == 0:
                os._exit(KILLED)

        def connect_and_count(*arguments: Any, **named: Any) -> sqlite3.Connection:
            opened = connect(*arguments, **named)
            opened.set_trace_callback(count)
            return opened

        watch_state.sqlite3.connect = connect_and_count
        try:
            run()
        except BaseException:  # noqa: BLE001 - a child of a test must not go on as the test
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


STATEMENTS = {
    "INSERT INTO seen": 3,
    "INSERT INTO queue": 3,
    "INSERT OR REPLACE INTO shards": 1,
    "INSERT INTO windows": 1,
    "UPDATE queue": 1,
    "SELECT identity": 1,
    "UPDATE windows": 1,
    "DELETE FROM queue": 1,
    "INSERT INTO outbox": 1,
    "COMMIT": 1,
    "": 40,
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_kills_neither_skip_nor_repeat_an_instance(watching: Watching, statement: str) -> None:
    for shard in range(3):
        watching.write(f"{shard}.csv", {"left": 2, "up": 6}, shard)
    pace = {"at_least": 5, "queue": 10}
    n_kills = sum(
        run_and_die(lambda: watching.run(pace=pace), statement, n * STATEMENTS[statement])
        for n in (1, 2)
    )
    assert n_kills > 0
    watching.run(pace={"at_least": 1})
    counts = Counter(identity for ids in watching.windows() for identity in ids)
    assert len(counts) == 24
    assert set(counts.values()) == {1}


def test_reading_waits_when_the_queue_is_full_and_says_so(watching: Watching) -> None:
    watching.write("a.csv", {"left": 35}, 1)
    watching.run(pace={"queue": 15})
    assert [len(ids) for ids in watching.windows()] == [15, 15]
    assert sum("the queue holds 15 instances: reading waits at" in s for s in watching.said) == 2
    assert watching.said[-1].startswith("5 instances wait")


def test_a_bad_shard_is_one_line_and_the_rest_goes_on(watching: Watching) -> None:
    (watching.stream / "a.csv").write_text("p,q\n1,2\n")
    (watching.stream / "b.png").write_bytes(b"no image")
    (watching.stream / "notes.md").write_text("no shard")
    watching.write("c.csv", {"left": 10}, 1)
    watching.run()
    assert [len(ids) for ids in watching.windows()] == [10]
    bad = [line for line in watching.said if "is left out" in line]
    assert [Path(line.split(" is left out")[0]).name for line in bad] == ["a.csv", "b.png"]
    assert not any("\n" in line for line in bad)
    watching.run()
    assert len([line for line in watching.said if "is left out" in line]) == 2  # said once


def test_a_source_that_cannot_be_reached_is_tried_again(watching: Watching) -> None:
    watching.run(str(watching.folder / "later"))
    assert "later cannot be reached (there is no such folder or file)" in watching.said[0]
    write_points(watching.folder / "later.csv", {"left": 10}, 1)
    watching.run(str(watching.folder / "lat*.csv"))
    assert [len(ids) for ids in watching.windows()] == [10]


def test_a_url_of_fsspec(watching: Watching) -> None:
    fsspec = pytest.importorskip("fsspec")
    watching.write("a.csv", {"left": 10}, 1)
    watching.write("b.csv", {"left": 10}, 2)
    memory = fsspec.filesystem("memory")
    memory.pipe("/watched/a.csv", (watching.stream / "a.csv").read_bytes())
    try:
        watching.run("memory://watched")
        watching.run("memory://watched")
        memory.pipe("/watched/b.csv", (watching.stream / "b.csv").read_bytes())
        watching.run("memory://watched/*.csv")
    finally:
        memory.rm("/watched", recursive=True)
    watching.run("memory://watched")
    assert [len(ids) for ids in watching.windows()] == [10, 10]
    assert "memory://watched cannot be reached" in watching.said[-1]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system of a local S3 server, with an empty bucket."""
    moto_server = pytest.importorskip("moto.server", reason="needs moto and flask")
    s3fs = pytest.importorskip("s3fs")
    server = moto_server.ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    try:
        address, port = server.get_host_and_port()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "a-key-of-the-test")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}:{port}")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        system = s3fs.S3FileSystem(skip_instance_cache=True)
        system.mkdir("watched")
        yield system
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


@pytest.mark.filterwarnings("ignore")  # of boto3 and flask
def test_a_bucket_of_s3(watching: Watching, bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    watching.write("a.csv", {"left": 10}, 1)
    watching.write("b.csv", {"left": 10}, 2)
    bucket.pipe("watched/in/a.csv", (watching.stream / "a.csv").read_bytes())
    watching.run("s3://watched/in")
    watching.run("s3://watched/in")
    bucket.pipe("watched/in/b.csv", (watching.stream / "b.csv").read_bytes())
    watching.run("s3://watched/in/*.csv")
    assert [len(ids) for ids in watching.windows()] == [10, 10]
    watching.run("s3://no-such-bucket/in")
    assert "s3://no-such-bucket/in cannot be reached" in watching.said[-1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody listens
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    type(bucket).clear_instance_cache()
    watching.run("s3://watched/in")
    assert "s3://watched/in cannot be reached" in watching.said[-1]


def test_lines_of_a_pipe(watching: Watching) -> None:
    lines = [json.dumps({"id": f"n{i}", "instance": [-6 + i / 50, 0.1]}) for i in range(10)]
    lines += [json.dumps({"x": 6 + i / 50, "y": 0.2, "other": 1}) for i in range(8)]
    lines += ["", "{", "[1]", json.dumps([6.5, 0.3]), lines[0], json.dumps([6.6, 0.4])]
    reading, writing = os.pipe()
    os.write(writing, "\n".join(lines).encode())
    os.close(writing)
    watching.run("-", descriptor=reading)
    os.close(reading)
    (ids,) = watching.windows()
    assert len(ids) == 20
    assert ids[:2] == ["n0", "n1"]
    left_out = [line for line in watching.said if "is left out" in line]
    assert [line.split(" is left out")[0] for line in left_out] == ["line 20", "line 21"]


def test_a_pipe_is_read_as_far_as_there_is_room(watching: Watching) -> None:
    lines = [json.dumps([-6 + i / 50, 0.1]) + "\n" for i in range(30)]
    reading, writing = os.pipe()
    os.write(writing, "".join(lines).encode())
    os.close(writing)
    watching.run("-", descriptor=reading, pace={"queue": 12})
    os.close(reading)
    assert [len(ids) for ids in watching.windows()] == [12, 12]
    assert watching.said[-1].startswith("6 instances wait")


def test_a_stream_is_watched_until_somebody_interrupts(watching: Watching) -> None:
    watching.write("0.csv", {"left": 10}, 0)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        watching.write(f"{len(waits)}.csv", {"left": 10}, len(waits))

    with pytest.raises(KeyboardInterrupt):
        watching.run(pace={"once": False}, sleep=sleep)
    assert [len(ids) for ids in watching.windows()] == [10, 10, 10]
    assert all(0 <= wait <= 60 for wait in waits)


def test_each_window_is_detected_by_the_current_version(watching: Watching) -> None:
    watching.write("a.csv", {"left": 10}, 1)
    watching.run()
    workflow.rename(watching.model, "left", "west")
    watching.write("b.csv", {"left": 10}, 2)
    watching.run()
    found = workflow.Findings.open(watching.folder / "out" / "window-0002")
    assert found.about["version"] == 2
    assert set(found.assignments.label.tolist()) <= {"west", "right"}


def test_one_watcher_at_a_time(watching: Watching) -> None:
    with (
        watch_state.open_state(watching.folder / "state", 10),
        pytest.raises(BadInput, match="another command is changing"),
    ):
        watching.run()


def test_a_damaged_state_is_one_line(watching: Watching) -> None:
    (watching.folder / "state").mkdir()
    (watching.folder / "state" / "watch.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(BadInput, match="cannot be opened"):
        watching.run()


@pytest.mark.parametrize("text", ["", "0", "soon", "10 weeks", "-5m"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadConfig, match="--every is"):
        parse_duration(text)


def test_a_queue_smaller_than_a_window_is_refused(watching: Watching) -> None:
    with pytest.raises(BadConfig, match="--queue is 5, less than --at-least"):
        watching.run(pace={"queue": 5})


class OwnConsole:
    """A console without a network between, whose worker works whenever it is asked."""

    def __init__(self, model: Path, folder: Path) -> None:
        folder.mkdir()
        self.store = Store(folder)
        self.worker = Worker(self.store, model)
        self.worker.publish_model()
        self.client = TestClient(make_app(Console(self.store, model), Access()), base_url=URL)
        self.n_uploads = 0

    def send(self, path: str, body: bytes | None, content_type: str) -> Any:
        while (job := self.store.claim_job()) is not None:
            self.worker.do(job)
        if body is None:
            return self.client.get(path).json()
        self.n_uploads += 1
        answer = self.client.post(path, content=body, headers={"content-type": content_type})
        assert answer.status_code == 201, answer.text
        return answer.json()


def test_windows_go_to_a_console(watching: Watching) -> None:
    console = OwnConsole(watching.model, watching.folder / "store")
    watching.destination = ConsoleWindows(URL, console.send, sleep=lambda seconds: None)
    watching.write("a.csv", {"left": 20, "right": 20, "up": 30}, 1)
    watching.run()
    (told,) = watching.told
    assert (told["findings"], told["n_instances"]) == (f"{URL}/windows/1", 70)
    assert told["n_novel"] >= 1
    (window,) = console.store.windows()
    assert window.facts["n_clusters"] == told["n_novel"]
    assert window.name == f"watch {told['id'].replace('-', ' ')}"
    console.store.close()


def test_a_window_that_a_console_has_is_not_sent_again(watching: Watching) -> None:
    console = OwnConsole(watching.model, watching.folder / "store")
    watching.write("a.csv", {"left": 20, "right": 20}, 1)

    def die(seconds: float) -> None:
        raise KeyboardInterrupt

    watching.destination = ConsoleWindows(URL, lambda *a: refresh_late(console, *a), sleep=die)
    with pytest.raises(KeyboardInterrupt):
        watching.run()
    watching.destination = ConsoleWindows(URL, console.send, sleep=lambda seconds: None)
    watching.run()
    assert console.n_uploads == 1
    assert "window" not in "".join(watching.said[:-1])
    console.store.close()


def refresh_late(console: OwnConsole, path: str, body: bytes | None, content_type: str) -> Any:
    """Send without letting the worker work."""
    if body is None:
        return console.client.get(path).json()
    return console.send(path, body, content_type)


def test_a_console_that_is_away_lets_windows_wait(watching: Watching) -> None:
    watching.write("a.csv", {"left": 20}, 1)
    watching.destination = ConsoleWindows(URL, make_transport("http://127.0.0.1:9", None))
    watching.run()
    assert "window 1 waits: http://127.0.0.1:9 cannot be reached" in watching.said[0]
    watching.destination = FindingsFolders(watching.folder / "out", "stream")
    watching.run()
    assert [len(ids) for ids in watching.windows()] == [20]
    with pytest.raises(BadConfig, match="give the address"):
        make_transport("localhost:1", None)
