from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from cilf.benchmark import Bench, Grid
from cilf.benchmark.engines import RayEngine
from cilf.core.ray_cluster import BEYOND_THIS_MACHINE
from cilf.errors import BadConfig

from ..grids import alive, grid, meanwhile, run, until, untimed, waiting


def test_a_lost_node_costs_nothing_but_time(
    tmp_path: Path, slow: tuple[Grid, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
    from ray.cluster_utils import Cluster

    # Nothing outside this machine can reach the cluster.
    monkeypatch.setenv(BEYOND_THIS_MACHINE, "0")
    monkeypatch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
    made, gate = slow
    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    assert cluster.address.startswith("127.0.0.1:")
    try:
        second = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")

        def lose_a_node() -> None:
            until(lambda: len(waiting(gate)) == 2)  # a cell on each node
            cluster.remove_node(second, allow_graceful=False)
            until(lambda: sum(map(alive, waiting(gate))) == 1)
            gate.touch()

        bench = Bench.open(made, tmp_path / "out")
        with meanwhile(lose_a_node):
            list(bench.run(RayEngine(address=cluster.address)))
    finally:
        cluster.shutdown()
    resumed = [state.folder.read_run().get("resumed", []) for state in bench.with_status("done")]
    assert sorted(map(len, resumed)) == [0, 1]
    assert untimed(bench) == untimed(run(made, tmp_path / "whole")[0])


def test_without_ray_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    bench = Bench.open(grid(), tmp_path / "out")
    with pytest.raises(BadConfig, match=r"needs ray: pip install 'cilf\[cluster\]'"):
        next(bench.run(RayEngine()))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["127.0.0.1", "ray://head:10001", "a b:1"])
def test_an_address_that_no_cluster_has(address: str) -> None:
    with pytest.raises(BadConfig, match=r"give HOST:PORT of a Ray cluster, or 'auto'"):
        RayEngine(address=address).check()


def test_a_silent_address_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        engine = RayEngine(address=f"127.0.0.1:{free.getsockname()[1]}")
        with pytest.raises(BadConfig, match="no Ray cluster answers there"):
            next(Bench.open(grid(), tmp_path / "out").run(engine))
