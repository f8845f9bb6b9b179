"""What the package costs beside the engine; prints one figure as JSON: python measure.py WHAT.

run      time of a run beside the engine's, median, microseconds
threads  share of the cores that a sweep of 10 000 runs by threads uses
single   the same with each run, 2.5 times as long, handed over by itself
frame    rows of a frame, and the share of its numbers that pyarrow and polars copy
calls    calls of a scheme in Python per second, and the time of each, microseconds
steps    steps of an environment per second
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import bentpipe
from bentpipe import Ack, Loss, Scenario, Scheme, Start
from bentpipe._executors import cores

SMALL = Scenario.load("sharing").with_(flows=2, duration="4 s")


def run() -> dict[str, Any]:
    beside: list[float] = []
    for seed in range(2000):
        begin = time.perf_counter()
        report = bentpipe.run(SMALL, seed)
        beside.append(time.perf_counter() - begin - report.engine_s)
    return {"beside_us": 1e6 * statistics.median(beside)}


def threads() -> dict[str, Any]:
    wanted, workers = 10_000, cores()
    with ThreadPoolExecutor(workers) as pool, TemporaryDirectory() as folder:
        wall, busy = time.perf_counter(), time.process_time()
        cells = bentpipe.sweep(SMALL, axes={"loss": [1e-4]}, seeds=wanted, executor=pool, out=folder)
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
    done = cells["goodput_bps_n"][0]
    return {"runs": done, "seconds": wall, "cores": workers, "used": busy / wall / workers}


def single() -> dict[str, Any]:
    """Runs that are handed to the threads one by one. Handing over one takes some 30 us of Python, in which
    no other thread can take the next: with runs of 0.13 ms the cores are used by three quarters only."""
    wanted, workers, small = 10_000, cores(), SMALL.with_(duration="10 s")
    with ThreadPoolExecutor(workers) as pool:
        wall, busy = time.perf_counter(), time.process_time()
        done = sum(
            report.seed < wanted for report in pool.map(lambda seed: bentpipe.run(small, seed), range(wanted))
        )
        wall, busy = time.perf_counter() - wall, time.process_time() - busy
    return {"runs": done, "seconds": wall, "cores": workers, "used": busy / wall / workers}


def frame() -> dict[str, Any]:
    # without types, or with types that do not know columns of any kind
    pyarrow: Any = import_module("pyarrow")
    polars: Any = import_module("polars")
    many = Scenario.load("sharing").with_(flows=250, duration="20 s")
    table = bentpipe.run(many, record=True).series
    first, second, polar = pyarrow.table(table), pyarrow.table(table), polars.DataFrame(table)
    numbers = [n for n in first.column_names if first.schema.field(n).type == pyarrow.float64()]
    copied = 0
    for name in numbers:
        address = first[name].chunk(0).buffers()[1].address
        same = second[name].chunk(0).buffers()[1].address == address
        if not (same and polar[name].to_arrow().buffers()[1].address == address):
            copied += 1
    return {"rows": len(table), "columns": len(numbers), "copied": copied}


class Counted(Scheme):
    """A window of 60 segments, and the number of calls."""

    calls = 0

    def on_start(self, start: Start) -> None:
        self.window = 60 * start.mss

    def on_ack(self, ack: Ack) -> None:
        Counted.calls += 1

    def on_loss(self, loss: Loss) -> None:
        Counted.calls += 1

    def plan(self) -> float:
        Counted.calls += 1
        return self.window


def calls() -> dict[str, Any]:
    busy = Scenario.load("sharing").with_(flows=8, loss=0, duration="400 s", window="60 segments")
    times = []
    for tcp in ("newreno", Counted()):
        begin = time.perf_counter()
        bentpipe.run(busy.with_(tcp=tcp))
        times.append(time.perf_counter() - begin)
    own, with_calls = times
    return {
        "calls": Counted.calls,
        "per_second": Counted.calls / with_calls,
        "each_us": 1e6 * (with_calls - own) / Counted.calls,
    }


def steps() -> dict[str, Any]:
    import numpy as np

    import bentpipe.gym

    env = bentpipe.gym.Connection("window", step_s=0.1)
    action, wanted = np.zeros(1, np.float32), 4000
    env.reset(seed=1)
    begin = time.perf_counter()
    for _ in range(wanted):
        env.step(action)
    return {"per_second": wanted / (time.perf_counter() - begin)}


if __name__ == "__main__":
    measures = {measure.__name__: measure for measure in (run, threads, single, frame, calls, steps)}
    print(json.dumps(measures[sys.argv[1]]()))
