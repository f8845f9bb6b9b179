"""TCP over satellite links: scenarios, runs, sweeps.

>>> import bentpipe
>>> report = bentpipe.run("sharing", seed=1)
>>> report.total.goodput_bps  # doctest: +SKIP
3486480.0
"""

from ._emulate import LinkError, LiveLink, Program, UnavailableError, emulate
from ._errors import BugError, Error, InputError, Place, ScenarioError
from ._find import Crossing, find
from ._lists import links, schemes
from ._native import __version__
from ._report import Flow, Items, Link, Report, Total, Values
from ._run import run
from ._scenario import Scenario, ScenarioLike, scenarios
from ._schemes import Ack, Loss, Plan, Scheme, SchemeLike, Start
from ._sweep import sweep
from ._table import Table
from ._text import Value

__all__ = [
    "Ack",
    "BugError",
    "Crossing",
    "Error",
    "Flow",
    "InputError",
    "Items",
    "Link",
    "LinkError",
    "LiveLink",
    "Loss",
    "Place",
    "Plan",
    "Program",
    "Report",
    "Scenario",
    "ScenarioError",
    "ScenarioLike",
    "Scheme",
    "SchemeLike",
    "Start",
    "Table",
    "Total",
    "UnavailableError",
    "Value",
    "Values",
    "__version__",
    "emulate",
    "find",
    "links",
    "run",
    "scenarios",
    "schemes",
    "sweep",
]
