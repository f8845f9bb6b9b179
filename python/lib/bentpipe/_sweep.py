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
from ._schemes import Carried, SchemeLike, is_scheme, register
from ._store import Store, is_url
from ._table import Table

Axes = Mapping[str, Sequence[Union[_text.Value, SchemeLike]]]
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
    schemes: tuple[Carried, ...] = ()
    store: str | None = None
    """The address to which workers send what they make, if ``out`` is no place that they can reach."""

    def native(self) -> _native.Sweep:
        """The sweep in the engine."""
        register(self.schemes)
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

    ``executor`` makes the runs: by default threads, one for each core, or processes if a scheme is written in
    Python, since its methods need Python's lock; ``"processes"``; any
    :class:`concurrent.futures.Executor`, such as those of mpi4py or of Dask's ``client.get_executor()``; or
    ``"dask"`` or ``"ray"`` with these installed. Workers need the folder ``out`` under the same path. The
    tables are the same whatever makes the runs.

    ``out`` is the folder for the runs, tables and pictures of ``bentpipe sweep``. What is in it already is
    not made again, so the same call continues a sweep that was interrupted. It may also be the address of a
    store that fsspec knows (``"s3://bucket/sweep"``), which workers then need in place of the folder. Without
    it a temporary folder is used.

    Returns the table of combinations: a column for each axis, and for each metric ``X`` its mean, ``X_low``
    and ``X_high``, the bounds of the 95 % interval, and ``X_n``, the number of runs that have a value.
    """
    loaded = Scenario.load(scenario)
    carried = {scheme.name: scheme for scheme in loaded._schemes}
    given = {name: _values(name, values, carried) for name, values in (axes or {}).items()}
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
            tuple(carried.values()),
            str(out) if is_url(out) else None,
        )
        store = None if spec.store is None else Store(spec.store)
        if store is not None:
            store.fetch(Path(folder))
        if carried and executor is None:
            executor = "processes"
        native = spec.native()
        while missing := native.missing(folder):
            execute(Task(spec, _native.SEMANTICS), missing, executor)
            if store is not None:
                store.fetch(Path(folder))
        table = Table(native.finish(folder, numeric))
        if store is not None:
            store.send(Path(folder))
        return table


def _values(name: str, values: Sequence[_text.Value | SchemeLike], carried: dict[str, Carried]) -> list[str]:
    if isinstance(values, (str, bytes)):
        raise InputError(f"the axis `{name}` is one text: write a list, {name!r}: [{values!r}]")
    texts = [_axis_value(name, value, carried) for value in values]
    if not texts:
        raise InputError(f"the axis `{name}` has no values")
    twice = [text for n, text in enumerate(texts) if text in texts[:n]]
    if twice:
        raise InputError(f"the axis `{name}` has `{twice[0]}` twice: leave it out")
    return texts


def _axis_value(name: str, value: _text.Value | SchemeLike, carried: dict[str, Carried]) -> str:
    if not is_scheme(value):
        return _text.value(name, value)
    scheme = Carried.of(value)
    known = carried.setdefault(scheme.name, scheme)
    if known.identity != scheme.identity:
        raise InputError(f"two schemes are called `{scheme.name}`: give each object a `name` of its own")
    return scheme.name


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
        if self._out is None or is_url(self._out):
            self._own = tempfile.TemporaryDirectory(prefix="bentpipe-sweep-")
            return self._own.name
        folder = Path(self._out).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.cleanup()
