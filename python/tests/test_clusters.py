"""Sweeps on Dask and Ray, where these are installed, with workers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import InputError

from .conftest import Command

AXES: dict[str, list[Any]] = {"tcp": ["newreno", "cubic"], "loss": [1e-4, 1e-3]}
SEEDS = 40
"""So many that a worker can be killed in the middle."""


def tables(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("runs.csv", "cells.csv", "report.html")]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray: Any = pytest.importorskip("ray")
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    yield ray
    ray.shutdown()


def wanted(command: Command, seeds: int, out: Path) -> list[bytes]:
    axes = ["--axis", "tcp=newreno,cubic", "--axis", "loss=0.0001,0.001"]
    command("sweep", "sharing", "--set", "duration=20 s", *axes, "--seeds", str(seeds), "--out", str(out))
    return tables(out)[:2]


def check(executor: Any, seeds: int, tmp_path: Path, command: Command) -> None:
    scenario = bentpipe.Scenario.load("sharing").with_(duration="20 s")
    table = bentpipe.sweep(scenario, AXES, seeds, executor=executor, out=tmp_path / "own")
    assert tables(tmp_path / "own")[:2] == wanted(command, seeds, tmp_path / "wanted")
    assert list(zip(table["tcp"], table["loss"])) == [(t, p) for t in AXES["tcp"] for p in AXES["loss"]]
    assert table["goodput_bps_n"] == [seeds] * 4


@pytest.mark.slow
def test_ray_gives_the_tables_of_the_command(ray: Any, tmp_path: Path, command: Command) -> None:
    check("ray", 3, tmp_path, command)


@pytest.mark.slow
def test_dask_gives_the_tables_of_the_command(tmp_path: Path, command: Command) -> None:
    pytest.importorskip("distributed")
    check("dask", 3, tmp_path, command)


def killing(pids: Callable[[], list[int]], out: Path, killed: list[int]) -> threading.Thread:
    """Kills a worker once some runs are made, and notes how many were."""

    def kill() -> None:
        while not killed:
            made = len(list(out.glob("runs/*.json")))
            if made > SEEDS:
                for pid in pids()[:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(made)
            time.sleep(0.005)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def below(pid: int) -> Iterator[tuple[int, str]]:
    """The processes below `pid`, each with its command line."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            yield int(child), Path(f"/proc/{child}/cmdline").read_text()
            yield from below(int(child))
        except OSError:
            pass  # it has ended


@pytest.mark.slow
def test_a_worker_of_ray_that_is_killed_costs_its_batch_again(
    ray: Any, tmp_path: Path, command: Command
) -> None:
    def workers() -> list[int]:
        return [pid for pid, line in below(os.getpid()) if line.startswith("ray::_call")]

    killed: list[int] = []
    thread = killing(workers, tmp_path / "own", killed)
    check("ray", SEEDS, tmp_path, command)
    thread.join(timeout=5)
    assert SEEDS < killed[0] < 4 * SEEDS, "no worker was killed in the middle"


@pytest.mark.slow
def test_a_worker_of_dask_that_is_killed_costs_its_batch_again(tmp_path: Path, command: Command) -> None:
    distributed: Any = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        killed: list[int] = []
        thread = killing(lambda: pids, tmp_path / "own", killed)
        check(client.get_executor(pure=False), SEEDS, tmp_path, command)
        thread.join(timeout=5)
    assert SEEDS < killed[0] < 4 * SEEDS, "no worker was killed in the middle"


def test_a_cluster_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'bentpipe\[ray\]'"):
        bentpipe.sweep("sharing", {"loss": [1e-3]}, seeds=1, executor="ray")


# services of Ray, which make no runs: they outlive a killed driver
AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")

DRIVER = """
import sys, bentpipe
if __name__ == "__main__":
    scenario = bentpipe.Scenario.load("sharing").with_(duration="20 s")
    axes = {"tcp": ["newreno", "cubic"], "loss": [1e-4, 1e-3]}
    bentpipe.sweep(scenario, axes, int(sys.argv[3]), executor=sys.argv[1], out=sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["threads", "processes", "dask", "ray"])
def test_a_driver_that_is_killed_loses_nothing_that_was_finished(
    executor: str, tmp_path: Path, command: Command
) -> None:
    if executor in ("dask", "ray"):
        pytest.importorskip("distributed" if executor == "dask" else "ray")
    script, own = tmp_path / "driver.py", tmp_path / "own"
    script.write_text(DRIVER)
    child = subprocess.Popen(
        [sys.executable, script, executor, own, str(SEEDS)], env={**os.environ, "RAY_ADDRESS": "local"}
    )
    until = time.monotonic() + 60
    while len(list(own.glob("runs/*.json"))) <= SEEDS:
        assert child.poll() is None and time.monotonic() < until, "it ended too early, or makes no runs"
        time.sleep(0.005)
    below_it = dict(below(child.pid))
    child.kill()
    child.wait()
    for pid, line in list(below_it.items()):
        if line.startswith(AGENTS):
            os.kill(pid, signal.SIGTERM)
            del below_it[pid]
    # its workers end by themselves, after what they are at
    until = time.monotonic() + 60
    while any(is_running(pid) for pid in below_it):
        assert time.monotonic() < until, "its workers go on without it"
        time.sleep(0.1)
    made = {path: path.stat().st_mtime_ns for path in own.glob("runs/*.json")}
    assert SEEDS < len(made) < 4 * SEEDS
    check("threads", SEEDS, tmp_path, command)
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in made.items()), "none was made again"


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
