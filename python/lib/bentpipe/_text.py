"""Values of Python in the notation of scenario files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Union

from ._errors import InputError

Value = Union[str, int, float, bool]
"""The value of a parameter: ``"64 segments"``, ``1e-3``, ``True``."""


def number(value: float) -> str:
    """A number as Python prints it, with the fewest digits that give the same: ``0.001``, ``1e-05``."""
    if not math.isfinite(value):
        raise InputError(f"{value!r} is not a finite number: a parameter needs one")
    return repr(float(value))


def value(name: str, given: object) -> str:
    """The value of a parameter as ``--set`` takes it."""
    if isinstance(given, str):
        return given
    given = _plain(given)
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, Integral):
        return str(int(given))
    if isinstance(given, Real):
        return number(float(given))
    raise InputError(
        f"`{name}` is {given!r}, which is no value of a parameter: "
        'write a text such as "64 segments", a number, True or False'
    )


def toml(table: Mapping[str, Any]) -> str:
    """A scenario given as a dict, as TOML."""
    lines: list[str] = []
    sections: list[str] = []
    for key, item in table.items():
        if isinstance(item, Mapping):
            sections += ["", f"[{_key(key)}]", *_entries(item)]
        elif _is_list(item) and item and all(isinstance(each, Mapping) for each in item):
            for each in item:
                sections += ["", f"[[{_key(key)}]]", *_entries(each)]
        else:
            lines.append(f"{_key(key)} = {_inline(key, item)}")
    return "\n".join(lines + sections) + "\n"


def _entries(table: Mapping[str, Any]) -> Iterable[str]:
    return [f"{_key(key)} = {_inline(key, item)}" for key, item in table.items()]


def _inline(key: str, item: Any) -> str:
    item = _plain(item)
    if isinstance(item, str):
        return _quoted(item)
    if isinstance(item, Mapping):
        return "{ " + ", ".join(_entries(item)) + " }"
    if _is_list(item):
        return "[" + ", ".join(_inline(key, each) for each in item) + "]"
    return value(key, item)


def _is_list(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, (str, bytes))


def _plain(item: Any) -> Any:
    """A number of NumPy as one of Python."""
    return item.item() if hasattr(item, "item") and getattr(item, "ndim", None) == 0 else item


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"{key!r} is no key of a scenario: keys are texts")
    bare = key != "" and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if bare else _quoted(key)


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    control = {c: f"\\u{c:04x}" for c in (*range(0x20), 0x7F)}
    return '"' + text.translate({**control, **{ord(c): e for c, e in escapes.items()}}) + '"'


def is_number(given: object) -> bool:
    """True if a value was given as a number."""
    given = _plain(given)
    return isinstance(given, Real) and not isinstance(given, bool)
