"""A hash of what an object of Python does: its class's code, what this code refers to, and its state."""

from __future__ import annotations

import hashlib
import pickle
import types
from typing import Any
from uuid import uuid4

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_NO_CODE = {
    "__module__",
    "__qualname__",
    "__doc__",
    "__dict__",
    "__weakref__",
    "__annotations__",
    "__annotate_func__",
    "__annotations_cache__",
    "__firstlineno__",
    "__static_attributes__",
    "__slotnames__",
    "__orig_bases__",
    "__parameters__",
    "__abstractmethods__",
    "_abc_impl",
}
"""What a class has that does not act, or that depends on where it is written."""


def identity(given: object) -> str:
    """The hash as 32 digits. It covers the methods of the class and of its bases, functions, classes and
    plain values of the same module that these refer to, and the object's attributes; of other modules only
    the names. A comment does not change it. An object that cannot be pickled has a hash of its own each time.
    """
    walk = _Walk(type(given).__module__)
    walk.cls(type(given))
    try:
        walk.feed("state", pickle.dumps(_state(given), protocol=4))
    except Exception:  # whatever pickling an object of somebody else raises
        return uuid4().hex
    return walk.hash.hexdigest()


def _state(given: object) -> Any:
    reduced = given.__reduce_ex__(4)
    return reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None


class _Walk:
    def __init__(self, module: str) -> None:
        self.module = module
        self.hash = hashlib.blake2b(digest_size=16)
        self._seen: set[int] = set()

    def feed(self, name: str, value: bytes | str) -> None:
        data = value.encode() if isinstance(value, str) else value
        self.hash.update(f"{name} {len(data)} ".encode() + data)

    def cls(self, cls: type) -> None:
        for base in reversed(cls.__mro__):
            if base is object or base.__module__.split(".")[0] == "bentpipe":
                continue
            self.feed("class", base.__qualname__)
            if id(base) in self._seen:
                continue
            self._seen.add(id(base))
            for name, member in sorted(vars(base).items()):
                if name not in _NO_CODE:
                    self.member(name, member)

    def member(self, name: str, member: object) -> None:
        if isinstance(member, (classmethod, staticmethod)):
            self.member(name, member.__func__)
        elif isinstance(member, property):
            for part in (member.fget, member.fset, member.fdel):
                self.member(name, part)
        elif isinstance(member, types.FunctionType):
            self.function(name, member)
        elif isinstance(member, type) and member.__module__ == self.module:
            self.cls(member)
        elif isinstance(member, types.ModuleType):
            self.feed(name, member.__name__)
        elif isinstance(member, _PLAIN):
            self.feed(name, repr(member))
        elif isinstance(member, (tuple, list)):
            self.feed(name, type(member).__name__)
            for item in member:
                self.member(name, item)
        else:
            self.feed(
                name, f"{type(member).__module__}.{getattr(member, '__qualname__', type(member).__name__)}"
            )

    def function(self, name: str, function: types.FunctionType) -> None:
        self.feed("def", name)
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        self.member("defaults", function.__defaults__)
        for key, value in sorted((function.__kwdefaults__ or {}).items()):
            self.member(key, value)
        for cell in function.__closure__ or ():
            try:
                self.member("closure", cell.cell_contents)
            except ValueError:
                pass  # a variable without a value yet
        self.code(function.__code__, function.__globals__)

    def code(self, code: types.CodeType, names: dict[str, Any]) -> None:
        self.feed("code", code.co_code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant, names)
            elif isinstance(constant, frozenset):
                self.feed("set", repr(sorted(map(repr, constant))))
            else:
                self.feed("constant", repr(constant))
        for name in code.co_names:
            self.feed("name", name)
            value = names.get(name)
            if getattr(value, "__module__", self.module) == self.module:
                self.member(name, value)
