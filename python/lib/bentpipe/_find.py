"""Searches for the value of a parameter at which a metric crosses a threshold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Union

from . import _native, _text
from ._errors import InputError
from ._report import in_main_thread
from ._run import checked_seed
from ._scenario import Scenario, ScenarioLike
from ._schemes import register

Range = Union[str, Mapping[str, tuple[_text.Value, _text.Value]]]
"""A parameter and its range: ``"ber=1e-9..1e-4"``, ``"rate=1..20 Mbit/s"`` or ``{"ber": (1e-9, 1e-4)}``."""


@dataclass(frozen=True)
class Crossing:
    """The answer of a search. ``str()`` says it in a sentence."""

    value: float | None
    """The value at which the condition begins to be met, in ``unit``; ``None`` if there is none."""
    low: float | None
    """Lower bound of the interval in which it lies, in ``unit``."""
    high: float | None
    """Upper bound, in ``unit``."""
    unit: str
    """Unit of these three; empty for bare numbers."""
    metric: str
    """The metric."""
    runs: int
    """Number of runs that the answer is based on."""
    text: str
    """The answer in words, with notes."""

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def to_dict(self) -> dict[str, Any]:
        """Returns the values as a dict."""
        return asdict(self)


@dataclass(frozen=True)
class _Asked:
    vary: str
    until: str
    seeds: int | None
    seed: int | None
    out: str | None


def find(
    scenario: ScenarioLike,
    vary: Range,
    until: str,
    *,
    seeds: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Crossing:
    """Finds the value of a parameter at which a metric begins to meet a condition.

    ``vary`` is the parameter and its range, ``"rate=1..20 Mbit/s"``; ``until`` the condition on the mean
    over the seeds, ``"goodput < 1 Mbit/s"``. ``seeds`` is the number of runs of each value, the first of
    which has the seed ``seed``. ``out`` is a folder for the runs and a page; a search that is repeated uses
    them again.

    It is the search of ``bentpipe find``, on all cores of this machine. Ctrl-C ends it.
    """
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or not 0 < seeds <= 1000):
        raise InputError(f"seeds={seeds!r}: the number of runs of each value is from 1 to 1000")
    folder = None if out is None else os.path.abspath(out)
    asked = _Asked(_range(vary), until, seeds, checked_seed(seed), folder)
    loaded = Scenario.load(scenario)
    register(loaded._schemes)
    answer, text = _native.find(loaded._native, asked, in_main_thread())
    fields = ("value", "low", "high", "unit", "metric", "runs")
    return Crossing(**{name: answer[name] for name in fields}, text=text)


def _range(vary: Range) -> str:
    if isinstance(vary, str):
        return vary
    if not isinstance(vary, Mapping) or len(vary) != 1:
        raise InputError(f"vary={vary!r}: give one parameter and its range, {{'ber': (1e-9, 1e-4)}}")
    ((name, bounds),) = vary.items()
    if isinstance(bounds, str) or len(bounds) != 2:
        raise InputError(f"vary={vary!r}: the range has two bounds, {{{name!r}: (low, high)}}")
    return f"{name}=" + "..".join(_text.value(name, bound) for bound in bounds)
