"""Sweeps: the same bytes as those of the command, whatever makes the runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Callable

import pytest

import bentpipe
from bentpipe import InputError, Scenario, ScenarioError, _executors, _native

from .conftest import SMALL, Command

AXES: dict[str, list[Any]] = {"loss": [1e-3, 0.01], "tcp": ["newreno", "cubic"]}
MEASURE = ["goodput", "drops[bottleneck].packet_loss", "finished"]
TABLES = ["runs.csv", "cells.csv", "report.html", "sweep.json"]


@pytest.fixture
def wanted(tmp_path: Path, command: Command) -> dict[str, bytes]:
    """The tables of the command."""
    sets = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    measures = [f"--measure={m}" for m in MEASURE]
    axes = ["--axis", "loss=0.001,0.01", "--axis", "tcp=newreno,cubic"]
    command("sweep", "sharing", *sets, *axes, *measures, "--seeds", "3", "--out", "wanted")
    return tables(tmp_path / "wanted")


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


def swept(small: Scenario, out: Path | str, executor: Any = None) -> bentpipe.Table:
    return bentpipe.sweep(small, AXES, seeds=3, measure=MEASURE, executor=executor, out=out)


class Backwards(Executor):
    """Makes what was submitted last first, in this thread, once its results are waited for."""

    def __init__(self) -> None:
        self.submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("executor", [None, "threads", "processes"])
def test_the_tables_are_those_of_the_command(
    small: Scenario, tmp_path: Path, wanted: dict[str, bytes], executor: str | None
) -> None:
    swept(small, tmp_path / "own", executor)
    assert tables(tmp_path / "own") == wanted


@pytest.mark.parametrize(
    "make",
    [
        lambda: ThreadPoolExecutor(1),
        lambda: ThreadPoolExecutor(8),
        lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
        Backwards,
    ],
    ids=["one thread", "eight threads", "two processes", "own executor"],
)
def test_any_executor_gives_the_same_tables(
    small: Scenario, tmp_path: Path, wanted: dict[str, bytes], make: Callable[[], Executor]
) -> None:
    with make() as executor:
        swept(small, tmp_path / "own", executor)
    assert tables(tmp_path / "own") == wanted


def test_the_table_has_the_cells_in_their_order(
    small: Scenario, tmp_path: Path, wanted: dict[str, bytes]
) -> None:
    table = swept(small, tmp_path / "own")
    metrics = ["goodput_bps", "drops[bottleneck].packet_loss", "finished_s"]
    names = [name + end for name in metrics for end in ("", "_low", "_high", "_n")]
    assert table.column_names == ["loss", "tcp", *names]
    lines = wanted["cells.csv"].decode().splitlines()[1:]
    assert len(table) == len(lines) == 4
    for row, line in zip(table.rows(), lines):
        loss, tcp, mean, half, n = line.split(",")[:5]
        assert (row["loss"], row["tcp"], row["goodput_bps"]) == (float(loss), tcp, float(mean))
        assert row["goodput_bps_low"] == float(mean) - float(half)
        assert row["goodput_bps_high"] == float(mean) + float(half)
        assert row["goodput_bps_n"] == int(n) == 3
        assert row["finished_s"] is None and row["finished_s_n"] == 0


def test_axes_given_as_texts_are_texts(small: Scenario) -> None:
    table = bentpipe.sweep(small, {"loss": ["1e-3", 0.01]}, seeds=1)
    assert table["loss"] == ["1e-3", "1e-2"]
    assert table["goodput_bps_low"] == [None, None], "one run has no interval"


def test_what_was_made_is_not_made_again(small: Scenario, tmp_path: Path) -> None:
    swept(small, tmp_path)
    runs = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert len(runs) == 12
    executor = Backwards()
    swept(small, tmp_path, executor)
    assert executor.submitted == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == runs
    next(iter(runs)).unlink()
    swept(small, tmp_path, executor)
    assert executor.submitted == 1


def test_an_axis_of_the_file_is_replaced_and_others_stay(tmp_path: Path, command: Command) -> None:
    words = ["--set", "ber=1e-6", "--axis", "tcp=sack,cubic", "--seeds", "1"]
    command("sweep", "faded", *words, "--out", "wanted")
    faded = Scenario.load("faded").with_(ber="1e-6")
    cells = bentpipe.sweep(faded, {"tcp": ["sack", "cubic"]}, seeds=1, out=tmp_path / "own")
    assert cells.column_names[:3] == ["ber", "window", "tcp"] and len(cells) == 6
    assert tables(tmp_path / "own") == tables(tmp_path / "wanted")


def test_seeds_are_added_until_the_mean_is_precise(small: Scenario, tmp_path: Path, command: Command) -> None:
    sets = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    words = ["--axis", "loss=0.001,0.01", "--seeds", "3", "--precision", "goodput 10 %", "--max-seeds", "12"]
    command("sweep", "sharing", *sets, *words, "--out", "wanted")
    table = bentpipe.sweep(
        small, {"loss": [1e-3, 0.01]}, 3, precision=("goodput", 0.1), max_seeds=12, out=tmp_path / "own"
    )
    assert tables(tmp_path / "own") == tables(tmp_path / "wanted")
    assert max(table["goodput_bps_n"]) > 3


def test_the_first_seed_is_given(small: Scenario, tmp_path: Path) -> None:
    bentpipe.sweep(small, seeds=2, seed=100, out=tmp_path)
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["seed", "100", "101"]
    assert lines[1].split(",")[1] == str(bentpipe.run(small, seed=100).total.goodput_bps).removesuffix(".0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"axes": {"loss": []}}, "no values"),
        ({"axes": {"loss": "1e-3"}}, "write a list"),
        ({"axes": {"loss": [1e-3, 0.001]}}, "twice"),
        ({"axes": {"duration": ["1 s"]}}, "by with_"),
        ({"seeds": 0}, "from 1 to 10000"),
        ({"seeds": 2.5}, "from 1 to 10000"),
        ({"measure": "godput"}, "did you mean `goodput`"),
        ({"measure": "goodput[x]"}, "no flow `x`"),
        ({"precision": ("goodput", 5)}, "a share from 0 to 1"),
        ({"executor": "cluster"}, "no executor"),
        ({"seed": -1}, "the seed"),
    ],
)
def test_a_wrong_argument_is_refused(small: Scenario, arguments: dict[str, Any], said: str) -> None:
    wrong: dict[str, Any] = {"seeds": 1, **arguments}
    with pytest.raises(InputError, match=said):
        bentpipe.sweep(small, **wrong)


def test_a_wrong_value_of_an_axis_is_shown(small: Scenario) -> None:
    with pytest.raises(ScenarioError) as caught:
        bentpipe.sweep(small, {"tcp": ["cubic", "cubik"]}, seeds=1)
    assert caught.value.place.name == "axes" and caught.value.place.text == "tcp=cubik"
    assert "did you mean `cubic`" in str(caught.value)


def test_runs_of_another_version_are_refused(small: Scenario, tmp_path: Path) -> None:
    class Old(Backwards):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            from dataclasses import replace

            assert isinstance(fn, _executors.Task)
            return super().submit(replace(fn, semantics="1-0"), *args, **kwargs)

    with pytest.raises(InputError, match="another version"):
        swept(small, tmp_path, Old())


def die_once(task: Any, runs: Any, mark: str) -> Any:
    """Makes the first run of its batch, then dies, once."""
    if not os.path.exists(mark):
        Path(mark).touch()
        task(runs[:1])
        os._exit(9)
    return task(runs)


class Dying(ProcessPoolExecutor):
    """Processes of which one dies."""

    mark = ""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(die_once, fn, args[0], self.mark)


def test_a_worker_that_dies_costs_its_batch_again_and_nothing_else(
    small: Scenario, tmp_path: Path, wanted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def processes() -> Executor:
        executor = Dying(2, mp_context=get_context("spawn"))
        executor.mark = str(tmp_path / "mark")
        return executor

    monkeypatch.setattr(_executors, "_processes", processes)
    swept(small, tmp_path / "own", "processes")
    assert (tmp_path / "mark").exists() and tables(tmp_path / "own") == wanted


def test_with_a_callers_executor_that_broke_finished_runs_are_kept(
    small: Scenario, tmp_path: Path, wanted: dict[str, bytes]
) -> None:
    with Dying(2, mp_context=get_context("spawn")) as executor:
        executor.mark = str(tmp_path / "mark")
        with pytest.raises(InputError, match="finished runs are kept"):
            swept(small, tmp_path / "own", executor)
    assert list((tmp_path / "own" / "runs").iterdir())
    swept(small, tmp_path / "own")
    assert tables(tmp_path / "own") == wanted


LONG = """
import bentpipe, sys
scenario = bentpipe.Scenario.load("sharing").with_(duration="20000 s")
print("begun", flush=True)
try:
    bentpipe.sweep(scenario, {"tcp": ["newreno", "cubic"]}, seeds=4, out=sys.argv[1])
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_ctrl_c_ends_a_sweep_soon(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", LONG, tmp_path], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert child.wait(timeout=30) == 7 and time.monotonic() - start < 3


def test_a_sweep_that_is_killed_goes_on_from_there(small: Scenario, tmp_path: Path) -> None:
    script = (
        "import bentpipe, sys\n"
        f"small = bentpipe.Scenario.load('sharing').with_({SMALL!r})\n"
        f"bentpipe.sweep(small, {{'loss': [1e-3, 0.01]}}, seeds=200, out=sys.argv[1])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, tmp_path / "own"])
    runs = tmp_path / "own" / "runs"
    while not (runs.exists() and len(list(runs.glob("*.json"))) > 20):
        assert child.poll() is None, "it ended too early"
        time.sleep(0.01)
    child.kill()
    child.wait()
    kept = len(list(runs.glob("*.json")))
    assert kept < 400
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    bentpipe.sweep(small, {"loss": [1e-3, 0.01]}, seeds=200, out=tmp_path / "own")
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())
    assert len(list(runs.glob("*.json"))) == 400 and not list(runs.glob("*.unfinished"))


def test_a_folder_of_another_version_is_refused(small: Scenario, tmp_path: Path) -> None:
    swept(small, tmp_path)
    manifest = tmp_path / "sweep.json"
    manifest.write_text(manifest.read_text().replace(_native.SEMANTICS, "1-0"))
    with pytest.raises(InputError, match="made by another version of bentpipe"):
        swept(small, tmp_path)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_store_has_the_files_of_a_folder(
    small: Scenario, tmp_path: Path, wanted: dict[str, bytes], executor: str
) -> None:
    pytest.importorskip("fsspec")
    url = f"file://{tmp_path}/store"
    swept(small, url, executor)
    own = tmp_path / "store"
    assert tables(own) == wanted
    made = {path: path.stat().st_mtime_ns for path in (own / "runs").iterdir()}
    assert len(made) == 12
    # what is there is not made again, and what was torn is
    torn = next(iter(made))
    torn.write_bytes(torn.read_bytes()[:-10])
    counted = Backwards()
    swept(small, url, counted)
    assert counted.submitted == 1 and tables(own) == wanted
    (own / "sweep.json").write_text((own / "sweep.json").read_text().replace(_native.SEMANTICS, "1-0"))
    with pytest.raises(InputError, match="made by another version of bentpipe"):
        swept(small, url)


def test_a_store_of_objects_works_too(small: Scenario, wanted: dict[str, bytes]) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    swept(small, "memory://bucket/sweep")
    files = fsspec.filesystem("memory")
    assert {name: files.cat_file(f"/bucket/sweep/{name}") for name in wanted} == wanted


def test_a_store_that_is_not_known_is_refused(small: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match="nonesuch"):
        swept(small, "nonesuch://bucket")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match=r"pip install 'bentpipe\[fsspec\]'"):
        swept(small, "s3://bucket")
