"""Runs."""

from __future__ import annotations

from . import _native
from ._errors import InputError
from ._report import Report, in_main_thread
from ._scenario import Scenario, ScenarioLike


def run(scenario: ScenarioLike, seed: int | None = None, *, record: bool = False) -> Report:
    """Runs a scenario in simulated time.

    The same scenario and ``seed`` (default: the scenario's) give the same report. With ``record`` the
    course of the run is kept for :attr:`Report.series`, which costs a part of the run's time.

    An exception in a scheme that is written in Python ends the run and is passed on.

    Other Python threads go on meanwhile. Ctrl-C ends the run with :class:`KeyboardInterrupt`.
    """
    loaded = Scenario.load(scenario)
    native = _native.run(loaded._native, checked_seed(seed), record, in_main_thread())
    return Report(native, loaded._schemes)


def checked_seed(seed: int | None) -> int | None:
    """The seed, if it is one."""
    if seed is None or (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**64):
        return seed
    raise InputError(f"the seed {seed!r} is not a whole number from 0 to 2^64 - 1")
