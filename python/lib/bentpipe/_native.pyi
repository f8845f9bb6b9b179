"""What `python/src` defines. Users take the classes of the package, which are written in Python."""

from typing import Any, Protocol, final

__version__: str
SEMANTICS: str
SHIPPED: list[str]

@final
class Scenario:
    def __new__(cls, name: str, text: bytes, path: str, sets: list[tuple[str, str]]) -> Scenario: ...
    def with_sets(self, sets: list[tuple[str, str]]) -> Scenario: ...
    def to_toml(self) -> str: ...
    def parts(self) -> tuple[str, bytes, str, list[tuple[str, str]]]: ...
    @property
    def sets(self) -> list[tuple[str, str]]: ...
    @property
    def title(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def parameters(self) -> dict[str, str | int | float | bool]: ...

@final
class SchemeObject:
    def __new__(cls, name: str, recovery: str, identity: str, object: object) -> SchemeObject: ...
    def register(self) -> None: ...

@final
class Start:
    """What a connection has when it starts."""

    @property
    def mss(self) -> int:
        """Payload of a full segment, bytes."""
    @property
    def window(self) -> int:
        """The host's initial window, bytes."""
    @property
    def ssthresh(self) -> float:
        """The host's initial slow-start threshold, bytes; infinite: unlimited."""

class Path:
    """What a connection knows about its path."""

    @property
    def now_s(self) -> float:
        """Time since the start of the run, s."""
    @property
    def mss(self) -> int:
        """Payload of a full segment, bytes."""
    @property
    def in_flight(self) -> int:
        """Bytes estimated to be in the network."""
    @property
    def flight(self) -> int:
        """RFC 5681's FlightSize, bytes: sent and not acknowledged."""
    @property
    def peer_window(self) -> int:
        """The receiver's window, bytes."""
    @property
    def srtt_s(self) -> float | None:
        """Smoothed round-trip time, s; ``None`` before the first sample."""
    @property
    def rttvar_s(self) -> float | None:
        """Variation of the round-trip time, s."""
    @property
    def rtt_min_s(self) -> float | None:
        """Smallest round-trip time so far, s."""
    @property
    def round(self) -> int:
        """Number of round trips since the connection began."""
    @property
    def una(self) -> int:
        """Position in the stream up to which data is acknowledged."""
    @property
    def next(self) -> int:
        """Position in the stream up to which data was sent."""
    @property
    def delivered_total(self) -> int:
        """Bytes delivered since the connection began, SACKed ones included."""
    @property
    def lost_total(self) -> int:
        """Bytes ever considered lost."""
    @property
    def unsent(self) -> int | None:
        """Bytes not yet sent, if the end of the stream is known."""

@final
class Ack(Path):
    """An acknowledgment that delivered data."""

    @property
    def acked(self) -> int:
        """Bytes newly acknowledged, without gaps."""
    @property
    def delivered(self) -> int:
        """Bytes newly acknowledged or SACKed."""
    @property
    def rtt_s(self) -> float | None:
        """Round-trip time measured by it, s."""
    @property
    def rate_bps(self) -> int | None:
        """Delivery rate measured by it, bit/s."""
    @property
    def app_limited(self) -> bool:
        """True if the application, not the path, limited this rate."""
    @property
    def round_ended(self) -> bool:
        """True if a round trip ended."""
    @property
    def may_grow(self) -> bool:
        """True if the window of a loss-based scheme may grow: new data is acknowledged, the window was what
        limited the sender, and no loss is being repaired."""
    @property
    def limited_by(self) -> str:
        """What limited the sender: ``congestion_window``, ``receiver_window``, ``application``, ``pacing``,
        ``send_buffer`` or ``recovery``."""
    @property
    def episode(self) -> str:
        """State of loss recovery: ``open``, ``fast``, ``timeout`` or ``ended``, by this acknowledgment."""

@final
class Loss(Path):
    """A loss or mark; at most one for a window, except timeouts."""

    @property
    def cause(self) -> str:
        """``fast``, ``timeout``, ``repeated-timeout`` (of the same segment), or ``mark`` (ECN)."""
    @property
    def last_sent_s(self) -> float:
        """When the oldest lost segment was last sent, s since the start of the run."""
    @property
    def resends(self) -> int:
        """How often it had been sent again before."""

@final
class Step:
    @property
    def now_s(self) -> float: ...
    @property
    def length_s(self) -> float: ...
    @property
    def mss(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def losses(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def rtt_s(self) -> float | None: ...
    @property
    def rtt_min_s(self) -> float: ...
    @property
    def srtt_s(self) -> float: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def received(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    @property
    def over(self) -> bool: ...

@final
class Episode:
    def __new__(cls, scenario: Scenario, seed: int, flow: str | None) -> Episode: ...
    def begin(self) -> Step: ...
    def step(self, window: float, pace_bps: float | None, length_s: float) -> Step: ...

@final
class Report:
    @property
    def engine_s(self) -> float: ...
    def to_json(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_text(self, signals: bool) -> str: ...
    def metric(self, name: str) -> float | None: ...
    def series(self, signals: bool) -> Table: ...
    def page(self, signals: bool) -> str: ...
    def save(self, folder: str) -> list[str]: ...

@final
class Table:
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def column(self, name: str) -> list[Any] | None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Stop:
    def __new__(cls) -> Stop: ...
    def set(self) -> None: ...

class Wanted(Protocol):
    @property
    def axes(self) -> list[tuple[str, list[str]]]: ...
    @property
    def seeds(self) -> int | None: ...
    @property
    def measure(self) -> list[str]: ...
    @property
    def precision(self) -> tuple[str, float, int] | None: ...
    @property
    def seed(self) -> int | None: ...

class Asked(Protocol):
    @property
    def vary(self) -> str: ...
    @property
    def until(self) -> str: ...
    @property
    def seeds(self) -> int | None: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def out(self) -> str | None: ...

@final
class Sweep:
    def __new__(cls, scenario: Scenario, wanted: Wanted) -> Sweep: ...
    def missing(self, out: str) -> list[tuple[int, int]]: ...
    def make(self, out: str, runs: list[tuple[int, int]], signals: bool, stop: Stop | None) -> int: ...
    def finish(self, out: str, numeric: list[str]) -> Table: ...

def run(scenario: Scenario, seed: int | None, record: bool, signals: bool) -> Report: ...
def find(scenario: Scenario, asked: Asked, signals: bool) -> tuple[dict[str, Any], str]: ...
def shipped(name: str) -> tuple[str, str] | None: ...
def schemes() -> dict[str, dict[str, Any]]: ...
def links_json() -> str: ...
def command(words: list[str], again: list[str]) -> int: ...
def fail(why: str) -> None: ...
