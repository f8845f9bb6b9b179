"""How sweeps scale: measured to the cores of this machine, and beyond by a model of the scheduler.

    python bench/scaling.py

The model takes what is measured here, the time of a run and of handing over a batch, and gives the runs out as
`bentpipe.sweep` does, to 1 to 1000 workers. One driver hands over batches one after the other, so with many
workers and short runs it is the limit; the last line of each table says where.
"""

from __future__ import annotations

import heapq
import random
import tempfile
import time
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from importlib.util import find_spec

import bentpipe
from bentpipe._executors import _batch_size, _opened, cores

WORKERS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
GOOD = 0.9
"""Share of the workers' time spent in runs from which on they count as used."""
LENGTHS = {"2 s": 5000, "60 s": 200}
"""Simulated times of the runs that are measured, with the number of runs."""


def sweep(length: str, runs: int, executor: Executor) -> float:
    """Makes runs that nothing has stored yet; returns the time it took in seconds."""
    scenario = bentpipe.Scenario.load("sharing").with_(duration=length)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        bentpipe.sweep(scenario, axes={"loss": [1e-3]}, seeds=runs, executor=executor, out=folder)
        return time.perf_counter() - start


def run_times(length: str, runs: int) -> list[float]:
    """Times of single runs in seconds, one after the other."""
    times = []
    scenario = bentpipe.Scenario.load("sharing").with_(duration=length, loss=1e-3)
    for seed in range(1, runs + 1):
        start = time.perf_counter()
        bentpipe.run(scenario, seed=seed)
        times.append(time.perf_counter() - start)
    return times


def nothing(_: int) -> None:
    """A task that takes no time: what is left is handing it over."""


def dispatch(executor: Executor, tasks: int = 500) -> float:
    """Time of the driver for a batch, in seconds."""
    wait([executor.submit(nothing, 0) for _ in range(20)])
    start = time.perf_counter()
    wait([executor.submit(nothing, n) for n in range(tasks)])
    return (time.perf_counter() - start) / tasks


def model(runs: int, times: list[float], each_batch: float, workers: int, draw: random.Random) -> float:
    """Share of the workers' time spent in runs, with one driver that hands over batches."""
    left, spent, made = runs, 0.0, 0
    free = [0.0] * workers
    driver = end = 0.0
    pending: list[tuple[float, int, float]] = []
    while left or pending:
        while left and len(pending) < 2 * workers:
            size = _batch_size(left, workers, spent / made if made else None)
            left -= size
            driver += each_batch
            length = sum(draw.choice(times) for _ in range(size))
            done = max(heapq.heappop(free), driver) + length
            heapq.heappush(free, done)
            heapq.heappush(pending, (done, size, length))
            end = max(end, done)
        done, size, length = heapq.heappop(pending)
        driver = max(driver, done)
        made, spent = made + size, spent + length
    return spent / (end * workers)


def executors() -> list[str]:
    """Those that are installed."""
    clusters = [name for name, module in (("dask", "distributed"), ("ray", "ray")) if find_spec(module)]
    return ["threads", "processes", *clusters]


def main() -> None:
    """Measures and prints tables."""
    print(f"## Measured with {cores()} cores\n")
    print("| simulated time of a run | a run takes | runs | 1 thread | all cores | speed-up |")
    print("|---|---|---|---|---|---|")
    times = {}
    for length, runs in LENGTHS.items():
        times[length] = run_times(length, 20)
        rates = []
        for threads in (1, cores()):
            with ThreadPoolExecutor(threads) as pool:
                rates.append(runs / sweep(length, runs, pool))
        mean = sum(times[length]) / len(times[length])
        print(
            f"| {length} | {mean * 1e3:.1f} ms | {runs} | {rates[0]:.0f} runs/s | {rates[1]:.0f} runs/s "
            f"| {rates[1] / rates[0]:.2f} |"
        )
    costs = {}
    for name in executors():
        with _opened(name) as executor:
            costs[name] = dispatch(executor)
    for length in LENGTHS:
        print(f"\n## Model: 100 000 runs of {length} simulated time, share of the workers' time in runs\n")
        print("| workers | " + " | ".join(f"{name}, {cost * 1e6:.0f} us a batch" for name, cost in costs.items()))
        print("|---" * (1 + len(costs)) + "|")
        most = dict.fromkeys(costs, 0)
        for workers in WORKERS:
            shares = {}
            for name, cost in costs.items():
                shares[name] = model(100_000, times[length], cost, workers, random.Random(1))
                if shares[name] >= GOOD:
                    most[name] = workers
            print(f"| {workers} | " + " | ".join(f"{100 * share:.1f} %" for share in shares.values()) + " |")
        print(f"| at {100 * GOOD:.0f} % to | " + " | ".join(str(most[name]) for name in costs) + " |")


if __name__ == "__main__":
    main()
