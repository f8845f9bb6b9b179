"""The command of the package, which starts helpers of its own."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import bentpipe

from .conftest import Command

root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root here")


def test_the_script_is_the_command(tmp_path: Path) -> None:
    script = Path(sysconfig.get_path("scripts"), "bentpipe")
    done = subprocess.run([script, "sim", "demo", "--json"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == bentpipe.run("demo").to_json() + "\n", done.stderr


def test_the_command_has_the_exit_status_of_the_program(command: Command) -> None:
    assert "no such file" in command("sim", "none.toml", status=2)
    assert "Usage" in command("sim", status=2)
    command("sim", "demo", "--expect", "goodput > 1 Gbit/s", status=3)


@root
def test_programs_are_run_behind_a_link(command: Command) -> None:
    assert "1 received" in command("emulate", "geo-10m", "--", "ping", "-c", "1", "far")


@root
def test_programs_are_started_without_what_python_ignores(command: Command) -> None:
    _, ignored = command("emulate", "geo-10m", "--", "grep", "SigIgn", "/proc/self/status").split()
    # 32 and 33 are the C library's own
    assert int(ignored, 16) & 0x7FFF_FFFF == 0, ignored
