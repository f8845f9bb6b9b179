"""Links in real time. Where they cannot be emulated, the tests are skipped with the reason."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

import bentpipe
from bentpipe import InputError, LiveLink, Scenario, UnavailableError

from .conftest import Command

FAST: dict[str, bentpipe.Value] = {"rate": "20 Mbit/s", "delay": "10 ms"}

ECHO = """
import socket, sys
server = socket.create_server(("0.0.0.0", 7000))
while True:
    peer, _ = server.accept()
    peer.sendall(peer.recv(1000))
    peer.close()
"""
ASK = """
import socket, time
begin = time.monotonic()
with socket.create_connection(("far", 7000), timeout=20) as peer:
    peer.sendall(b"hello")
    print(peer.recv(1000).decode(), time.monotonic() - begin)
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture(scope="module")
def link() -> Iterator[LiveLink]:
    try:
        link = bentpipe.emulate("geo-10m", values=FAST)
    except UnavailableError as error:
        pytest.skip(f"links cannot be emulated here: {error}")
    with link:
        link.start(python(ECHO), at="far")
        time.sleep(0.5)
        yield link


def ask(link: LiveLink) -> float:
    """Time of two round trips, s."""
    said, seconds = link.run(
        python(ASK), capture_output=True, text=True, check=True, timeout=30
    ).stdout.split()
    assert said == "hello"
    return float(seconds)


def test_programs_are_at_the_two_ends(link: LiveLink) -> None:
    where = "import socket; print(socket.gethostbyname('near'), socket.gethostbyname('far'))"
    near, far = (
        link.run(python(where), at=end, capture_output=True, text=True).stdout for end in ("near", "far")
    )
    assert near == far and len(set(near.split())) == 2
    assert 0.04 < ask(link) < 0.2


def test_a_program_has_its_input_output_status_folder_and_environment(link: LiveLink, tmp_path: Path) -> None:
    code = (
        "import os, sys; print(os.getcwd(), os.environ['MINE'], sys.stdin.read())\n"
        "print('e', file=sys.stderr); sys.exit(3)"
    )
    done = link.run(
        python(code), cwd=tmp_path, env={"MINE": "x"}, input="typed", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path} x typed\n", "e\n")
    assert link.run(["true"], capture_output=True).stdout == b""
    with pytest.raises(subprocess.CalledProcessError):
        link.run(["false"], check=True)
    with pytest.raises(FileNotFoundError):
        link.run(["no-such-program"])
    wrongs: list[str | list[str]] = ["ping far", []]
    for wrong in wrongs:
        with pytest.raises(InputError, match="is no list of words"):
            link.run(wrong)
    with pytest.raises(InputError, match="write 'near' or 'far'"):
        link.run(["true"], at="middle")


def test_a_program_that_takes_too_long_is_killed(link: LiveLink) -> None:
    begin = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        link.run(["sleep", "30"], timeout=0.2)
    assert time.monotonic() - begin < 5
    program = link.start(["sleep", "30"])
    assert program.poll() is None and program.pid > 0
    program.terminate()
    assert program.wait(timeout=5) == -15 == program.poll()


def test_the_link_changes_while_it_runs(link: LiveLink) -> None:
    before = ask(link)
    changes = link.set(delay="60 ms")
    assert len(changes) == 2 and any("delay" in message for message in link.messages)
    assert ask(link) > before + 0.15
    assert all(way["one_way_ms"] == 60 for way in link.show()["links"])
    link.set(delay="90 ms", direction="forward")
    assert sorted(way["one_way_ms"] for way in link.show()["links"]) == [60, 90]
    link.reset()
    assert ask(link) < before + 0.1


def test_an_outage_loses_everything_for_its_time(link: LiveLink) -> None:
    begin = time.monotonic()
    link.outage(1.5)
    ask(link)
    assert time.monotonic() - begin > 1.4
    link.set(up=False)
    assert not any(way["up"] for way in link.show()["links"])
    link.set(up=True)
    ask(link)


def test_a_wrong_change_says_what_to_write(link: LiveLink) -> None:
    with pytest.raises(InputError, match="loss"):
        link.set(loss=2)
    with pytest.raises(InputError, match="latency"):
        link.set(latency="1 ms")
    with pytest.raises(InputError, match="uplink"):
        link.set(loss=0, link="uplink")


def test_the_end_ends_all_programs_and_leaves_nothing(
    bentpipe_link: Callable[..., LiveLink], command: Command, tmp_path: Path
) -> None:
    link = bentpipe_link("geo-10m", far="sleep 1000", out=tmp_path / "out", seed=3)
    program = link.start(["sleep", "1000"])
    assert Path(f"/proc/{program.pid}").exists()
    begin = time.monotonic()
    link.close()
    assert time.monotonic() - begin < 10
    assert (tmp_path / "out" / "report.html").is_file()
    assert link.session not in command("link", "show", "--session", "none-of-them", status=2)
    with pytest.raises(bentpipe.LinkError):
        link.run(["true"])
    link.close()


def test_a_scenario_is_emulated_with_its_values(bentpipe_link: Callable[..., LiveLink]) -> None:
    scenario = Scenario.load("window").with_(rtt="80 ms")
    link = bentpipe_link(scenario)
    state = link.show()
    assert {way["rate_bps"] for way in state["links"]} >= {1_544_000}
    assert "1.544" in state["title"] or state["session"] == link.session


def test_a_link_that_is_not_there_is_refused() -> None:
    with pytest.raises((InputError, UnavailableError)) as raised:
        bentpipe.emulate("geo-11m")
    if isinstance(raised.value, InputError):
        assert "geo-1" in str(raised.value)


def test_where_links_cannot_be_emulated_the_error_says_so() -> None:
    """As in a container without namespaces: the kernel refuses them."""
    code = (
        "import ctypes, bentpipe\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "import resource, os\n"
        "try:\n"
        "    open('/proc/sys/user/max_user_namespaces')\n"
        "    bentpipe.emulate('geo-10m').close()\n"
        "except bentpipe.UnavailableError as error:\n"
        "    print('unavailable:', error)\n"
    )
    wrapped = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    script = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$0" -c "$1"'
    done = subprocess.run([*wrapped, script, sys.executable, code], capture_output=True, text=True)
    if "unshare:" in done.stderr or "cannot create" in done.stderr or "Read-only" in done.stderr:
        pytest.skip(f"namespaces cannot be limited here: {done.stderr.strip()}")
    assert done.stdout.startswith("unavailable: "), done.stderr
