"""What bentpipe raises. Every error says what is wrong, where, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass


class Error(Exception):
    """Base class of all errors of bentpipe."""


@dataclass(frozen=True)
class Place:
    """A place in a text."""

    name: str
    """Name of the file, or of the argument in which the text was given."""
    line: int
    """Line, from 1."""
    column: int
    """Column in characters, from 1."""
    text: str
    """The line, or a part of it."""


class ScenarioError(Error, ValueError):
    """An error in a scenario, or in a value given for one of its parameters.

    ``str()`` shows the place with the wrong characters underlined, and what to write instead.
    """

    message: str
    """What is wrong, in one line."""
    place: Place
    """Where it is wrong."""
    label: str
    """What the underlined characters should be; may be empty."""
    help: list[str]
    """Lines of help: what may be written, similar names."""

    def __init__(
        self, rendered: str, message: str, place: tuple[str, int, int, str], label: str, help: list[str]
    ) -> None:
        super().__init__(rendered, message, place, label, help)
        self.message = message
        self.place = Place(*place)
        self.label = label
        self.help = help

    def __str__(self) -> str:
        return str(self.args[0])


class InputError(Error, ValueError):
    """An argument that is refused; the text says what to write instead."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


class BugError(Error, RuntimeError):
    """A bug of bentpipe: a run ended in a way that no input should cause. Please report it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
