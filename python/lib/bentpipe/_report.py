"""The results of a run."""

from __future__ import annotations

import html
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

from . import _native
from ._schemes import Carried
from ._table import Table


class Values(Mapping[str, Any]):
    """A part of a report: its values are keys and attributes. Names end with units: ``goodput_bps``."""

    __slots__ = ("_values",)
    _values: dict[str, Any]

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"no value `{name}`: there are {', '.join(self._values)}")
        return _wrap(self._values[name])

    def __getitem__(self, name: str) -> Any:
        return _wrap(self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"

    def to_dict(self) -> dict[str, Any]:
        """Returns the values as dicts and lists."""
        return self._values

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._values,))


class Total(Values):
    """Sums over all flows."""

    __slots__ = ()
    goodput_bps: float
    """Data delivered in order to applications, bit/s."""
    jain: float | None
    """Jain's fairness index of the goodputs; ``None`` if nothing was delivered."""


class Flow(Values):
    """A flow. The manual, "Report", says what each value is."""

    __slots__ = ()
    name: str
    """Name."""
    tcp: str | None
    """The congestion control scheme; ``None`` for UDP."""
    start_s: float
    """Start, in seconds."""
    established_s: float | None
    """End of the handshake, in seconds."""
    finished_s: float | None
    """Time at which the transfer was complete, in seconds; ``None`` if it was not."""
    goodput_bps: float
    """Data delivered in order to the application, bit/s."""
    bytes_acked: int
    """Bytes acknowledged."""
    segments_sent: int
    """Data segments sent, with retransmissions."""
    retransmits: int
    """Retransmissions among them."""
    timeouts: int
    """Retransmission timeouts."""
    rtt_ms: Values
    """Round-trip times in milliseconds: ``min``, ``p50``, ``p99`` and others."""
    limited_by: Values
    """Shares of its time in which each cause limited it."""


class Link(Values):
    """A direction of a link."""

    __slots__ = ()
    name: str
    """Name."""
    utilisation: float
    """Share of the run in which it was sending."""
    packets: int
    """Packets sent."""
    drops: Values
    """Packets dropped, by cause."""
    queue_packets: Values
    """Length of the queue in packets: ``mean`` and ``peak``."""


Item = TypeVar("Item", bound=Values)


class Items(Sequence[Item], Generic[Item]):
    """Parts of a report, by number or by name: ``report.flows[0]``, ``report.flows["web"]``."""

    __slots__ = ("_items",)
    _items: list[Item]

    def __init__(self, items: list[Item]) -> None:
        self._items = items

    @overload
    def __getitem__(self, which: int | str) -> Item: ...
    @overload
    def __getitem__(self, which: slice) -> list[Item]: ...
    def __getitem__(self, which: int | str | slice) -> Item | list[Item]:
        if not isinstance(which, str):
            return self._items[which]
        for item in self._items:
            if item.get("name") == which:
                return item
        raise KeyError(f"no `{which}`: there are {', '.join(str(i.get('name')) for i in self._items)}")

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class Report:
    """The results of a run.

    The keys of its JSON are attributes (``report.total.goodput_bps``, ``report.flows["web"].rtt_ms.p50``),
    and :meth:`to_dict` returns what ``bentpipe sim --json`` prints.
    """

    __slots__ = ("_native", "_parts", "_schemes")
    _parts: dict[str, Any] | None

    scenario: str
    """Title of the scenario."""
    version: str
    """Version of bentpipe."""
    seed: int
    """Seed of all random streams."""
    simulated_s: float
    """Simulated time in seconds."""
    parameters: Values
    """The parameters and their values."""
    total: Total
    """Sums over all flows."""
    flows: Items[Flow]
    """The flows."""
    links: Items[Link]
    """The directions of the links."""

    def __init__(self, native: _native.Report, schemes: tuple[Carried, ...] = ()) -> None:
        self._native = native
        self._parts = None
        # a run that is made again needs them
        self._schemes = schemes

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as dicts and lists, which are the caller's own."""
        return self._native.to_dict()

    def to_json(self) -> str:
        """Returns the report as ``bentpipe sim --json`` prints it."""
        return self._native.to_json()

    @property
    def engine_s(self) -> float:
        """Time that the engine took for the run on this machine, in seconds. It is no part of the report."""
        return self._native.engine_s

    def metric(self, name: str) -> float | None:
        """Returns the value of a metric as in ``--expect``: ``goodput``, ``rtt_p50[web]``.

        It is in the metric's unit (bit/s, s, ms, bytes, or none); ``None`` if the run has no value.
        """
        return self._native.metric(name)

    @property
    def series(self) -> Table:
        """The course of the run: a row for each interval and flow or link direction, as in ``series.csv``.

        A run that was not made with ``record=True`` is made again for this; it is the same run.
        """
        return Table(self._native.series(in_main_thread()))

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes page, tables and captures into a folder, as ``bentpipe sim --out``; returns the paths.

        The run is made again for this; it is the same run.
        """
        return [Path(path) for path in self._native.save(os.fspath(folder))]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._parts is None:
            self._parts = _parts(self._native.to_dict())
        if name not in self._parts:
            raise AttributeError(f"the report has no `{name}`: it has {', '.join(self._parts)}")
        return self._parts[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._native.to_dict()]

    def __str__(self) -> str:
        """The report as ``bentpipe sim`` prints it.

        A run that was not made with ``record=True`` is made again for the lines of what limited the flows.
        """
        return self._native.to_text(in_main_thread())

    def __repr__(self) -> str:
        rate = self.total.goodput_bps / 1e6
        return f"<bentpipe.Report {self.scenario!r}, seed {self.seed}: {rate:.6g} Mbit/s>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self.to_json() == other.to_json()

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        """The page of the run, for notebooks.

        Its scripts run, and reach neither the notebook nor a network: the frame has an origin of its own, and
        the page's policy lets it fetch nothing.
        """
        page = html.escape(self._native.page(in_main_thread()), quote=True)
        style = "width:100%;height:42rem;border:0"
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="{style}" title="bentpipe report"></iframe>'


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Values(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return Items([Values(each) for each in value])
    return value


def _parts(values: dict[str, Any]) -> dict[str, Any]:
    parts = {name: _wrap(value) for name, value in values.items()}
    parts["total"] = Total(values["total"])
    parts["flows"] = Items([Flow(flow) for flow in values["flows"]])
    parts["links"] = Items([Link(link) for link in values["links"]])
    return parts


def in_main_thread() -> bool:
    """True in the thread that handles signals, as that of Ctrl-C."""
    return threading.current_thread() is threading.main_thread()
