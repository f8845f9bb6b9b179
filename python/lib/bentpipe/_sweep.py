"""Sweeps: many runs of a scenario, on threads, processes or a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from . import _native, _text
from ._errors import InputError
from ._executors import Task, execute
from ._run import checked_seed
from ._scenario import Scenario, ScenarioLike
from ._table import Table

Axes = Mapping[str, Sequence[_text.Value]]
"""Names of parameters, and the values that each takes."""

RunOfCell = tuple[int, int]
"""Number of a cell, and a seed."""


@dataclass(frozen=True)
class Spec:
    """What is swept. It can be pickled, and makes its runs wherever it gets to."""

    scenario: Scenario
    axes: list[tuple[str, list[str]]]
    seeds: int | None
    measure: list[str]
    precision: tuple[str, float, int] | None
    seed: int | None
    out: str

    def native(self) -> _native.Sweep:
        """The sweep in the engine."""
        return _native.Sweep(self.scenario._native, self)


def sweep(
    scenario: ScenarioLike,
    axes: Axes | None = None,
    seeds: int | None = None,
    *,
    measure: str | Sequence[str] = (),
    precision: tuple[str, float] | None = None,
    max_seeds: int = 50,
    seed: int | None = None,
    executor: Union[Executor, str, None] = None,
    out: str | os.PathLike[str] | None = None,
) -> Table:
    """Runs a scenario for every combination of its axes, with several seeds each.

    ``axes`` gives the values of parameters, ``{"tcp": ["cubic", "bbr"], "loss": [1e-4, 1e-3]}``, beside or
    in place of those of the scenario's ``[sweep]``; ``seeds`` is the number of runs of each combination,
    the first of which has the seed ``seed``. ``measure`` names the metrics. With ``precision=("goodput",
    0.05)`` seeds are added until the half-width of the 95 % interval is 5 % of the mean, to ``max_seeds``
    at most.

    ``executor`` makes the runs: by default threads, one for each core; ``"processes"``; any
    :class:`concurrent.futures.Executor`, such as those of mpi4py or of Dask's ``client.get_executor()``; or
    ``"dask"`` or ``"ray"`` with these installed. Workers need the folder ``out`` under the same path. The
    tables are the same whatever makes the runs.

    ``out`` is the folder for the runs, tables and pictures of ``bentpipe sweep``. What is in it already is
    not made again, so the same call continues a sweep that was interrupted. Without it a temporary folder
    is used.

    Returns the table of combinations: a column for each axis, and for each metric ``X`` its mean, ``X_low``
    and ``X_high``, the bounds of the 95 % interval, and ``X_n``, the number of runs that have a value.
    """
    loaded = Scenario.load(scenario)
    given = {name: _values(name, values) for name, values in (axes or {}).items()}
    numeric = [name for name, values in (axes or {}).items() if all(map(_text.is_number, values))]
    wanted = [measure] if isinstance(measure, str) else list(measure)
    if seeds is not None and (
        isinstance(seeds, bool) or not isinstance(seeds, int) or not 0 < seeds <= 10_000
    ):
        raise InputError(f"seeds={seeds!r}: the number of runs of each combination is from 1 to 10000")
    with _folder(out) as folder:
        spec = Spec(
            loaded,
            list(given.items()),
            seeds,
            wanted,
            _precision(precision, max_seeds),
            checked_seed(seed),
            folder,
        )
        native = spec.native()
        while missing := native.missing(folder):
            execute(Task(spec, _native.SEMANTICS), missing, executor)
        return Table(native.finish(folder, numeric))


def _values(name: str, values: Sequence[_text.Value]) -> list[str]:
    if isinstance(values, (str, bytes)):
        raise InputError(f"the axis `{name}` is one text: write a list, {name!r}: [{values!r}]")
    texts = [_text.value(name, value) for value in values]
    if not texts:
        raise InputError(f"the axis `{name}` has no values")
    twice = [text for n, text in enumerate(texts) if text in texts[:n]]
    if twice:
        raise InputError(f"the axis `{name}` has `{twice[0]}` twice: leave it out")
    return texts


def _precision(precision: tuple[str, float] | None, max_seeds: int) -> tuple[str, float, int] | None:
    if precision is None:
        return None
    metric, share = precision
    if not 0 < share < 1:
        raise InputError(f"precision={precision!r}: write a share from 0 to 1, as in ('goodput', 0.05)")
    return metric, float(share), max_seeds


class _folder:
    """The folder of a sweep: the given one, or a temporary one that is removed."""

    def __init__(self, out: str | os.PathLike[str] | None) -> None:
        self._out = out
        self._own: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> str:
        if self._out is None:
            self._own = tempfile.TemporaryDirectory(prefix="bentpipe-sweep-")
            return self._own.name
        folder = Path(self._out).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.cleanup()
