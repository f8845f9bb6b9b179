"""Congestion control schemes written in Python."""

from __future__ import annotations

import copy
import math
import pickle
import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeGuard, Union, runtime_checkable

from . import _native
from ._errors import InputError
from ._identity import identity
from ._native import Ack, Loss, Start

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")


class Plan(NamedTuple):
    """What a scheme plans: how much may be in flight, and how fast it is sent."""

    window: float
    """Bytes that may be in flight; at least one segment."""
    pace_bps: float | None = None
    """Rate at which segments leave, bit/s; ``None``: as soon as the window allows."""


class Scheme:
    """Base class of a congestion control scheme of one's own: ``scenario.with_(tcp=MyScheme())``.

    Each connection has a copy of the object. Any object with the methods ``on_ack``, ``on_loss`` and ``plan``
    will do; this class has defaults for the others. The objects that the methods are given are filled anew
    for each call: keep their values, not the objects.
    """

    name: str | None = None
    """The name in reports and tables; by default that of the class."""
    recovery: str = "cubic"
    """Name of the built-in scheme whose loss recovery it has: how losses are found, and how much is sent
    while they are repaired."""
    ssthresh: float = math.inf
    """Slow-start threshold in bytes, for the engine, which paces and judges the use of a window by it;
    infinite: unlimited, or there is none."""

    def on_start(self, start: Start) -> None:
        """The connection starts. ``start`` has the segment size and the host's initial window."""

    def on_ack(self, ack: Ack) -> None:
        """Data was delivered."""
        raise NotImplementedError

    def on_loss(self, loss: Loss) -> None:
        """Data was lost, or marked by a queue."""
        raise NotImplementedError

    def on_undo(self) -> None:
        """The last loss was none: its reaction may be undone."""

    def on_restart(self, window: int) -> None:
        """The sender was idle or did not use its window, which should fall to ``window`` bytes."""

    def plan(self) -> Union[float, Plan, tuple[float, "float | None"]]:
        """What may be sent: a window in bytes, or a :class:`Plan`. Asked after each of the other methods."""
        raise NotImplementedError


@runtime_checkable
class SchemeLike(Protocol):
    """A scheme, whether or not its class has :class:`Scheme` as its base."""

    def on_ack(self, ack: Ack, /) -> None: ...
    def on_loss(self, loss: Loss, /) -> None: ...
    def plan(self) -> Union[float, Plan, tuple[float, "float | None"]]: ...


class Carried:
    """A scheme on its way into the engine, or to another process."""

    __slots__ = ("_native", "_pickled", "identity", "name", "object", "recovery")

    def __init__(self, name: str, recovery: str, identity: str, given: object) -> None:
        self.name, self.recovery, self.identity, self.object = name, recovery, identity, given
        self._native = _native.SchemeObject(name, recovery, identity, given)
        self._pickled: bytes | None = None

    @classmethod
    def of(cls, given: SchemeLike) -> Carried:
        """Takes a copy, so that later changes of the object change no scenario."""
        kind = type(given).__name__
        name = getattr(given, "name", None) or kind
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"the name {name!r} of the scheme {kind}: write letters, digits, and . _ + - only"
            )
        recovery = getattr(given, "recovery", Scheme.recovery)
        if not isinstance(recovery, str):
            raise InputError(
                f"recovery={recovery!r} of the scheme {kind}: write the name of a scheme, 'reno'"
            )
        return cls(name, recovery, identity(given), copy.deepcopy(given))

    def __reduce__(self) -> tuple[object, ...]:
        if self._pickled is None:
            self._pickled = _dumps(self.object)
        return (_again, (self.name, self.recovery, self.identity, self._pickled))

    def register(self) -> None:
        """Lets the engine find it by its name."""
        self._native.register()


def _again(name: str, recovery: str, identity: str, pickled: bytes) -> Carried:
    return Carried(name, recovery, identity, pickle.loads(pickled))


def _dumps(given: object) -> bytes:
    try:
        import cloudpickle
    except ImportError as missing:
        if type(given).__module__ == "__main__":
            raise InputError(
                "a scheme that is written in a script or notebook goes to other processes by cloudpickle, "
                "which is not installed: pip install 'bentpipe[schemes]', or use executor='threads'"
            ) from missing
        return pickle.dumps(given)
    pickled: bytes = cloudpickle.dumps(given)
    return pickled


def is_scheme(given: object) -> TypeGuard[SchemeLike]:
    """True for an object of a class with the methods of a scheme."""
    if isinstance(given, type) and all(hasattr(given, name) for name in ("on_ack", "on_loss", "plan")):
        raise InputError(f"{given.__name__} is a class: write an object of it, {given.__name__}()")
    return isinstance(given, SchemeLike)


def register(schemes: Iterable[Carried]) -> None:
    """Lets the engine find the schemes by their names; the last ones of a name are found."""
    for scheme in schemes:
        scheme.register()


__all__ = ["Ack", "Carried", "Loss", "Plan", "Scheme", "SchemeLike", "Start", "is_scheme", "register"]
