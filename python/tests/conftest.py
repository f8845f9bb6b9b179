"""What the tests share: scenarios that are small, and the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

import bentpipe

SMALL: dict[str, bentpipe.Value] = {"duration": "5 s", "flows": 5}
"""Values of `sharing` with which a run takes milliseconds, and differs for every seed."""

Command = Callable[..., str]


@pytest.fixture
def small() -> bentpipe.Scenario:
    return bentpipe.Scenario.load("sharing").with_(SMALL)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs the command `bentpipe` of the package, and returns its standard output."""

    def call(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bentpipe", *words], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    return call
