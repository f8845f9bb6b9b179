"""Programs behind a satellite link, in real time."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Optional, Union

from . import _inside, _text
from ._errors import Error, InputError
from ._scenario import Scenario

Words = Sequence[Union[str, "os.PathLike[str]"]]
File = Union[int, IO[Any], None]

START_S = 30.0
"""Longest time in which a link starts, s."""
END_S = 15.0
"""Longest time in which it ends, s."""


_NUMBERS = itertools.count(1)


class UnavailableError(Error, OSError):
    """This machine or this user cannot emulate links; the text says what is missing and what provides it."""


class LinkError(Error, RuntimeError):
    """A link ended by itself, or does not answer."""


class Program:
    """A program at an end of a link."""

    def __init__(self, args: list[str], connection: socket.socket, pid: int) -> None:
        self.args, self.pid = args, pid
        self.returncode: int | None = None
        """Its exit status, negative for a signal; ``None`` while it runs."""
        self._connection = connection

    def poll(self) -> int | None:
        """Returns the exit status if the program has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end, for at most ``timeout`` seconds; returns the exit status."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(_read(self._connection)["status"])
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal."""
        if self.returncode is None:
            self._connection.sendall(bytes([number]))

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it."""
        self.send_signal(signal.SIGKILL)


class LiveLink:
    """A running link; see :func:`emulate`."""

    def __init__(self, words: list[str], far: str | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bentpipe-link-")
        self.session = f"python-{os.getpid()}-{next(_NUMBERS)}"
        """Name of the session, for ``bentpipe link --session`` and ``bentpipe top``."""
        self.messages: list[str] = []
        """What the session has printed: changes with their times, notes, warnings."""
        self._life: list[socket.socket] = []
        self._programs: list[Program] = []
        self._process: subprocess.Popen[str] | None = None
        try:
            self._start(words)
            if far is not None:
                self.start(["sh", "-c", far], at="far")
        except BaseException:
            self.close()
            raise

    def _start(self, words: list[str]) -> None:
        agent = {end: [sys.executable, "-I", _inside.__file__, self._socket(end)] for end in ("near", "far")}
        own = ["--name", self.session, "--far", shlex.join(agent["far"]), "--", *agent["near"]]
        # in a session of its own, so that Ctrl-C comes to the caller alone, who then ends it
        self._process = subprocess.Popen(
            [*_COMMAND, "emulate", *words, *own],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        for end in ("near", "far"):
            self._life.append(self._connect(end, time.monotonic() + START_S))

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self.messages.append(line.rstrip("\n"))

    def _socket(self, end: str) -> str:
        if end not in ("near", "far"):
            raise InputError(f"at={end!r}: write 'near' or 'far'")
        return os.path.join(self._folder.name, end)

    def _connect(self, end: str, until: float = 0.0) -> socket.socket:
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self._socket(end))
                return connection
            except OSError:
                connection.close()
            if self._process is None or self._process.poll() is not None:
                self._ended()
            if time.monotonic() >= until:
                raise LinkError(f"the {end} end of the link does not answer\n{self._said()}")
            time.sleep(0.01)

    def _said(self) -> str:
        return "\n".join(self.messages)

    def _ended(self) -> None:
        """Says why the session has ended."""
        if not self._life:
            self._reader.join(timeout=END_S)
            doctor = subprocess.run([*_COMMAND, "doctor"], capture_output=True, text=True)
            text = self._said().removeprefix("error: ")
            raise UnavailableError(text) if doctor.returncode == 3 else InputError(text)
        raise LinkError(f"the link has ended\n{self._said()}")

    def __enter__(self) -> LiveLink:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the link and the programs at its ends."""
        process, self._process = self._process, None
        for connection in self._life:
            connection.close()
        if process is not None:
            try:
                # without results there is little to do, with them a page to write
                process.wait(END_S if self._life else 0)
            except subprocess.TimeoutExpired:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(END_S)
                process.kill()
            process.wait()
            self._reader.join(timeout=END_S)
        self._folder.cleanup()

    def start(
        self,
        args: Words,
        *,
        at: str = "near",
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: File = None,
        stdout: File = None,
        stderr: File = None,
    ) -> Program:
        """Starts a program ``at`` the ``near`` or the ``far`` end, and returns while it runs.

        ``env`` is added to the environment. Standard files are this process's unless others are given.
        """
        words = [os.fspath(word) for word in args]
        if isinstance(args, (str, bytes)) or not words:
            raise InputError(f"{args!r} is no list of words: write ['ping', '-c', '3', 'far']")
        asked = {"args": words, "cwd": os.fspath(cwd or os.getcwd()), "env": dict(env or {})}
        with contextlib.ExitStack() as opened:
            files = [_file(file, n, opened) for n, file in enumerate((stdin, stdout, stderr))]
            connection = self._connect(at)
            data = json.dumps(asked).encode() + b"\n"
            sent = socket.send_fds(connection, [data], files)
            connection.sendall(data[sent:])
        answer = _read(connection)
        if "pid" not in answer:
            connection.close()
            raise OSError(answer["errno"], answer["why"], answer["file"])
        program = Program(words, connection, answer["pid"])
        # a program goes on when the caller forgets it
        self._programs.append(program)
        return program

    def run(
        self,
        args: Words,
        *,
        at: str = "near",
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        input: str | bytes | None = None,
        capture_output: bool = False,
        text: bool = False,
        timeout: float | None = None,
        check: bool = False,
    ) -> subprocess.CompletedProcess[Any]:
        """Runs a program at an end of the link and waits for it; the arguments are those of
        :func:`subprocess.run`. There the ends are called ``near`` and ``far``.

        A program that takes more than ``timeout`` seconds is killed, with :class:`subprocess.TimeoutExpired`.
        """
        with contextlib.ExitStack() as files:
            given: IO[bytes] | None = None
            if input is not None:
                given = files.enter_context(tempfile.TemporaryFile())
                given.write(input.encode() if isinstance(input, str) else input)
                given.seek(0)
            caught = [
                files.enter_context(tempfile.TemporaryFile()) for _ in range(2 if capture_output else 0)
            ]
            out, err = caught or (None, None)
            program = self.start(args, at=at, cwd=cwd, env=env, stdin=given, stdout=out, stderr=err)
            try:
                status = program.wait(timeout)
            except BaseException:
                program.kill()
                program.wait()
                raise
            said: list[Any] = [_all(file, text) for file in caught] or [None, None]
        done = subprocess.CompletedProcess[Any](program.args, status, *said)
        if check:
            done.check_returncode()
        return done

    def set(
        self, *, link: str | None = None, direction: str = "both", **values: _text.Value
    ) -> dict[str, str]:
        """Changes the running link until :meth:`reset`: ``set(loss=1e-2, rate="2 Mbit/s", delay="40 ms")``.

        The keys are ``rate``, ``delay`` (one way), ``buffer``, ``loss``, ``ber`` and ``up``. ``direction`` is
        ``forward`` (to the near end), ``backward`` or ``both``; ``link`` names one of a scenario's links. Returns what has changed for each direction, and what it was before.
        """
        words = [f"{name}={_change(name, value)}" for name, value in values.items()]
        return self._control(["set", *words, *_target(link, direction)])

    def outage(self, length_s: float, *, link: str | None = None, direction: str = "both") -> dict[str, str]:
        """Loses all packets for ``length_s`` seconds from now on, and returns at once."""
        words = ["outage", f"{round(length_s * 1e6) / 1e6:f}s", *_target(link, direction)]
        return self._control(words)

    def reset(self, *, link: str | None = None, direction: str = "both") -> dict[str, str]:
        """Undoes all changes of :meth:`set` and :meth:`outage`."""
        return self._control(["reset", *_target(link, direction)])

    def show(self) -> dict[str, Any]:
        """Returns the state of the link: rates in bit/s, delays in ms, queues, losses, and how late packets
        left. It takes a quarter of a second, in which rates are measured."""
        return dict(self._answer(["show"]))

    def _control(self, words: list[str]) -> dict[str, str]:
        return {change["name"]: change["what"] for change in self._answer(words)["changes"]}

    def _answer(self, words: list[str]) -> Any:
        if self._process is None or self._process.poll() is not None:
            self._ended()
        command = [*_COMMAND, "link", *words, "--session", self.session, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise InputError(done.stderr.strip().removeprefix("error: "))
        return json.loads(done.stdout)

    def __repr__(self) -> str:
        state = "running" if self._process is not None else "ended"
        return f"<bentpipe.LiveLink {self.session!r}, {state}>"


def emulate(
    link: str | os.PathLike[str] | Scenario | Mapping[str, Any],
    *,
    far: str | None = None,
    values: Mapping[str, _text.Value] | None = None,
    seed: int | None = None,
    speed: float = 1.0,
    uplink: bool = False,
    realtime: bool = True,
    out: str | os.PathLike[str] | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> LiveLink:
    """Emulates a link in real time, on Linux and without root where user namespaces are allowed::

        with bentpipe.emulate("geo-10m", far="iperf3 -s") as link:
            link.run(["ping", "-c", "3", "far"])
            link.set(loss=1e-2)
            link.outage(2.0)

    ``link`` is a named link (:func:`bentpipe.links`) or a scenario. ``far`` is a shell command line that runs
    at the far end. ``values`` changes the link or the scenario's parameters; ``seed``, ``speed``, ``uplink``
    (the far end is this machine's network; needs root), ``out`` and ``journal`` are the options of ``bentpipe
    emulate``. The link is a child process; nothing changes in this one.

    Raises :class:`UnavailableError` if this machine or user cannot emulate links.
    """
    with contextlib.ExitStack() as files:
        name, sets = _name(link, files)
        for key, value in {**sets, **(values or {})}.items():
            name += ["--set", f"{key}={_text.value(key, value)}"]
        options = {"--seed": seed, "--speed": speed, "--out": out, "--journal": journal}
        for option, given in options.items():
            if given is not None:
                name += [option, os.fspath(given) if isinstance(given, os.PathLike) else str(given)]
        name += ["--uplink"] * uplink + ["--no-realtime"] * (not realtime)
        # the file of a scenario is read by the time the ends answer
        return LiveLink(name, far)


_COMMAND = [sys.executable, "-m", "bentpipe"]


def _name(link: Any, files: contextlib.ExitStack) -> tuple[list[str], dict[str, _text.Value]]:
    """What the command calls the link, and the values of parameters that it has already."""
    if isinstance(link, (str, os.PathLike)) and "\n" not in str(link):
        return [os.fspath(link)], {}
    scenario = Scenario.load(link)
    if scenario._schemes:
        raise InputError("a scheme that is written in Python cannot run live: leave it out")
    _, text, given, sets = scenario._native.parts()
    path = os.fspath(given)
    if path not in ("", "."):
        # trace files are beside it
        return [path], dict(sets)
    file = files.enter_context(tempfile.NamedTemporaryFile(suffix=".toml"))
    Path(file.name).write_bytes(text)
    return [file.name], dict(sets)


def _file(given: File, number: int, opened: contextlib.ExitStack) -> int:
    if given is None:
        return number
    if given == subprocess.DEVNULL:
        return opened.enter_context(open(os.devnull, "r+b")).fileno()
    if isinstance(given, int):
        if given < 0:
            raise InputError(
                "a pipe cannot be given here: open one with os.pipe(), or use run(capture_output=True)"
            )
        return given
    return given.fileno()


def _all(file: IO[bytes], text: bool) -> str | bytes:
    file.seek(0)
    return file.read().decode() if text else file.read()


def _read(connection: socket.socket) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(1)
        if not more:
            raise LinkError("the link has ended")
        data += more
    read: dict[str, Any] = json.loads(data)
    return read


def _change(name: str, value: _text.Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return _text.value(name, value)


def _target(link: str | None, direction: str) -> list[str]:
    return ["--direction", direction, *(["--link", link] if link else [])]
