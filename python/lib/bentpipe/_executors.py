"""Spreads the runs of a sweep over an executor, in batches that are worth handing over."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import _native
from ._errors import Error, InputError
from ._report import in_main_thread
from ._store import Store

if TYPE_CHECKING:
    from ._sweep import RunOfCell, Spec

BATCH_S = 0.25
"""Time that a batch should take, in seconds."""
GUARD = "\nhelp: a script that uses processes needs `if __name__ == '__main__':` before what it does"
LOST = {"KilledWorker", "LocalRayletDiedError", "NodeDiedError", "WorkerCrashedError"}
"""Errors of Dask and Ray."""
TRIES = 3
"""How often a batch is given to workers that die."""


@dataclass(frozen=True)
class Task:
    """Makes runs of a sweep. Threads of this process share ``stop``; other workers have none."""

    spec: Spec
    semantics: str
    stop: _native.Stop | None = None

    def __call__(self, runs: list[RunOfCell]) -> tuple[int, float]:
        """Makes the runs; returns their number and the time it took in seconds."""
        if self.semantics != _native.SEMANTICS:
            raise InputError(
                "a worker has another version of bentpipe, whose results cannot be mixed with this one's: "
                f"it has {_native.__version__}. Install the same version on all of them"
            )
        start = time.monotonic()
        native = self.spec.native()
        if self.spec.store is None:
            native.make(self.spec.out, runs, in_main_thread(), self.stop)
        else:
            store = Store(self.spec.store)
            for run in runs:
                # one by one, so that a worker that dies loses no run that was finished
                with tempfile.TemporaryDirectory(prefix="bentpipe-runs-") as folder:
                    native.make(folder, [run], in_main_thread(), self.stop)
                    store.send(Path(folder))
        return len(runs), time.monotonic() - start


def execute(task: Task, runs: list[RunOfCell], executor: Union[Executor, str, None]) -> None:
    """Makes all runs. A worker that dies costs its batch again, and no run that was finished."""
    left = list(runs)
    for _ in range(TRIES):
        with _opened(executor) as opened:
            stop = _native.Stop() if isinstance(opened, ThreadPoolExecutor) else None
            left = _spread(replace(task, stop=stop), left, opened)
        if not left:
            return
        if isinstance(executor, Executor):
            break
    times = "" if isinstance(executor, Executor) else f"{TRIES} times "
    raise InputError(
        f"the workers died {times}before {len(left)} runs "
        "were made; finished runs are kept: call it again with the same `out` and a new executor"
        + GUARD
        * (executor == "processes")
    )


def _spread(task: Task, runs: list[RunOfCell], executor: Executor) -> list[RunOfCell]:
    """Makes runs; returns those that were lost with an executor that broke."""
    workers = _workers(executor)
    waiting = deque(runs)
    pending: dict[Future[tuple[int, float]], list[RunOfCell]] = {}
    made, spent = 0, 0.0
    try:
        while waiting or pending:
            while waiting and len(pending) < 2 * workers:
                size = _batch_size(len(waiting), workers, spent / made if made else None)
                batch = [waiting.popleft() for _ in range(size)]
                try:
                    pending[executor.submit(task, batch)] = batch
                except BrokenExecutor:
                    return [*batch, *_all(pending), *waiting]
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                error = future.exception()
                if error is not None and _is_of_workers(error):
                    return [*_all(pending), *waiting]
                count, seconds = future.result()
                del pending[future]
                made, spent = made + count, spent + seconds
    except BaseException:
        # an error, or Ctrl-C: what runs in threads ends soon, what has not begun does not begin
        if task.stop is not None:
            task.stop.set()
        for future in pending:
            future.cancel()
        raise
    return []


def _is_of_workers(error: BaseException) -> bool:
    """True if it says that workers died, also those that Dask and Ray had started again."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ in LOST


def _all(pending: dict[Any, list[RunOfCell]]) -> Iterator[RunOfCell]:
    for batch in pending.values():
        yield from batch


def _batch_size(left: int, workers: int, each: float | None) -> int:
    """Single runs until it is known how long they take. The last batches are small: all end together."""
    if each is None:
        return 1
    fits = int(BATCH_S / max(each, 1e-6))
    return max(1, min(fits, left // (4 * workers)))


def _workers(executor: Executor) -> int:
    # executors of threads, processes and clusters; those of mpi4py
    for name in ("_max_workers", "num_workers"):
        known = getattr(executor, name, None)
        if isinstance(known, int) and known > 0:
            return known
    return cores()


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _opened(executor: Union[Executor, str, None]) -> Iterator[Executor]:
    if isinstance(executor, Executor):
        yield executor
        return
    if executor is None or executor == "threads":
        own: Executor = ThreadPoolExecutor(cores(), thread_name_prefix="bentpipe")
    elif executor == "processes":
        own = _processes()
    elif executor in ("dask", "ray"):
        from ._clusters import opened

        own = opened(executor)
    else:
        raise InputError(
            f"there is no executor {executor!r}: write 'threads', 'processes', 'dask', 'ray' "
            "or a concurrent.futures.Executor"
        )
    try:
        yield own
    finally:
        own.shutdown(wait=True, cancel_futures=True)


def _processes() -> Executor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # forked copies of a process with threads can hang
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(cores(), mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Ends this process when the one that started it is killed; it would wait for work for ever."""
    import multiprocessing.connection

    parent = multiprocessing.parent_process()
    if parent is not None:
        gone = parent.sentinel

        def watch() -> None:
            multiprocessing.connection.wait([gone])
            os._exit(1)

        threading.Thread(target=watch, daemon=True, name="bentpipe-parent").start()


__all__ = ["Error", "Task", "cores", "execute"]
