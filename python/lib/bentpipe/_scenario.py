"""Scenarios: the network, the flows and when to stop."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from . import _native, _text
from ._errors import InputError, ScenarioError
from ._schemes import Carried, SchemeLike, is_scheme, register

ScenarioLike = Union["Scenario", str, "os.PathLike[str]", Mapping[str, Any]]
"""What the functions of this package take as a scenario: one that is loaded, or what
:meth:`Scenario.load` takes."""


class Scenario:
    """A checked scenario. It is immutable: :meth:`with_` returns another one."""

    __slots__ = ("_native", "_schemes")

    def __init__(self, native: _native.Scenario, schemes: tuple[Carried, ...] = ()) -> None:
        self._native = native
        self._schemes = schemes

    @classmethod
    def load(cls, source: ScenarioLike) -> Scenario:
        """Loads a scenario.

        ``source`` is the name of a scenario that comes with bentpipe (``"sharing"``), the path of a file
        (a path object, or a text that ends in ``.toml``), the text of a file, or a dict with its keys.

        Raises :class:`ScenarioError` if it has an error, :class:`OSError` if the file cannot be read.
        """
        if isinstance(source, Scenario):
            return source
        if isinstance(source, Mapping):
            return cls._of("<dict>", _text.toml(source).encode(), "")
        if isinstance(source, str) and "\n" in source:
            return cls._of("<text>", source.encode(), "")
        if isinstance(source, str) and not _is_path(source):
            return cls._shipped(source)
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            return cls._of(str(path), path.read_bytes(), str(path))
        raise InputError(
            f"{source!r} is no scenario: give the name of one, the path or the text of a file, or a dict"
        )

    @classmethod
    def _shipped(cls, name: str) -> Scenario:
        found = _native.shipped(name)
        if found is None:
            near = difflib.get_close_matches(name, _native.SHIPPED, 1)
            hint = f": did you mean `{near[0]}`?" if near else ""
            known = ", ".join(_native.SHIPPED)
            raise InputError(
                f"there is no scenario `{name}`{hint}\n"
                f"help: scenarios: {known}\n"
                "help: the path of a file ends in .toml or is a pathlib.Path"
            )
        return cls._of(found[0], found[1].encode(), "")

    @classmethod
    def _of(cls, name: str, text: bytes, path: str, sets: list[tuple[str, str]] | None = None) -> Scenario:
        return cls(_native.Scenario(name, text, path, sets or []))

    def with_(
        self,
        values: Mapping[str, _text.Value | SchemeLike] | None = None,
        /,
        **more: _text.Value | SchemeLike,
    ) -> Scenario:
        """Returns this scenario with other values of its parameters.

        The values are written as in a file: ``with_(loss=1e-3, tcp="bbr", window="64 segments")``. A dict
        takes names that are no names in Python. A congestion control may be an object with the methods of
        :class:`bentpipe.Scheme`.
        """
        given = {**(values or {}), **more}
        sets = dict(self._native.sets)
        schemes = {scheme.name: scheme for scheme in self._schemes}
        for name, value in given.items():
            if is_scheme(value):
                scheme = Carried.of(value)
                schemes[scheme.name], value = scheme, scheme.name
            sets.pop(name, None)
            sets[name] = _text.value(name, value)
        kept = tuple(scheme for name, scheme in schemes.items() if name in sets.values())
        register(kept)
        return Scenario(self._native.with_sets(list(sets.items())), kept)

    def check(self) -> str:
        """Returns the scenario as a file with all defaults filled in, as ``bentpipe check`` prints it."""
        return self._native.to_toml()

    @property
    def title(self) -> str:
        """The title."""
        return self._native.title

    @property
    def seed(self) -> int:
        """The seed of a run for which no other is given."""
        return self._native.seed

    @property
    def duration_s(self) -> float:
        """The longest time that a run simulates, in seconds."""
        return self._native.duration_s

    @property
    def parameters(self) -> dict[str, _text.Value]:
        """The parameters and their values."""
        return self._native.parameters

    def __repr__(self) -> str:
        sets = ", ".join(f"{name}={value}" for name, value in self._native.sets)
        return f"<bentpipe.Scenario {self.title!r}{' with ' + sets if sets else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._parts() == other._parts()

    def _parts(self) -> tuple[object, ...]:
        return (*self._native.parts(), [scheme.identity for scheme in self._schemes])

    def __hash__(self) -> int:
        name, text, path, sets = self._native.parts()
        return hash((name, text, path, tuple(sets)))

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (*self._native.parts(), self._schemes))


def _again(
    name: str, text: bytes, path: str, sets: list[tuple[str, str]], schemes: tuple[Carried, ...]
) -> Scenario:
    register(schemes)
    return Scenario(_native.Scenario(name, text, path, sets), schemes)


def _is_path(text: str) -> bool:
    return text.endswith(".toml") or "/" in text or os.sep in text


def scenarios() -> list[str]:
    """Returns the names of the scenarios that come with bentpipe."""
    return list(_native.SHIPPED)


__all__ = ["Scenario", "ScenarioError", "ScenarioLike", "scenarios"]
