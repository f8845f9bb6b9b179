"""Searches are those of the command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import InputError, Scenario, ScenarioError

from .conftest import SMALL, Command

UNTIL = "goodput < 1 Mbit/s"


@pytest.mark.parametrize(
    "vary",
    ["loss=1e-3..0.2", {"loss": (1e-3, 0.2)}, {"loss": ("1e-3", "0.2")}],
    ids=["text", "numbers", "texts"],
)
def test_the_answer_is_that_of_the_command(vary: Any, small: Scenario, command: Command) -> None:
    sets = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    words = ["find", "sharing", *sets, "--vary", "loss=1e-3..0.2", "--until", UNTIL, "--seeds", "2"]
    found = bentpipe.find(small, vary, UNTIL, seeds=2)
    wanted = json.loads(command(*words, "--json"))
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert str(found) + "\n" == command(*words)
    assert found.value is not None and found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high


def test_a_search_without_a_crossing_says_so(small: Scenario) -> None:
    found = bentpipe.find(small, "loss=1e-3..2e-3", "goodput < 1 bit/s", seeds=1)
    assert found.value is None and "no crossing" in str(found), str(found)


def test_runs_are_kept_in_the_folder(small: Scenario, tmp_path: Path) -> None:
    first = bentpipe.find(small, "loss=1e-3..0.2", UNTIL, seeds=1, out=tmp_path)
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert (tmp_path / "report.html").exists() and len(made) == first.runs
    assert bentpipe.find(small, "loss=1e-3..0.2", UNTIL, seeds=1, out=tmp_path) == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == made


def test_what_is_wrong_is_underlined(small: Scenario) -> None:
    with pytest.raises(ScenarioError) as caught:
        bentpipe.find(small, "loss=0.2..1e-3", UNTIL)
    assert caught.value.place.name == "vary" and caught.value.place.text == "loss=0.2..1e-3"
    with pytest.raises(ScenarioError, match="did you mean `goodput`") as caught:
        bentpipe.find(small, "loss=1e-3..0.2", "godput < 1")
    assert caught.value.place.name == "until"


@pytest.mark.parametrize(
    ("vary", "seeds", "said"),
    [
        ({}, 1, "one parameter"),
        ({"loss": (1, 2, 3)}, 1, "two bounds"),
        ({"loss": "1..2"}, 1, "two bounds"),
        ("loss=0..0.2", 0, "from 1 to 1000"),
    ],
)
def test_a_wrong_argument_is_refused(small: Scenario, vary: Any, seeds: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        bentpipe.find(small, vary, UNTIL, seeds=seeds)


LONG = """
import bentpipe, sys
scenario = bentpipe.Scenario.load("sharing").with_(duration="20000 s")
print("begun", flush=True)
try:
    bentpipe.find(scenario, "loss=1e-5..0.2", "goodput < 1 Mbit/s", seeds=50)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_ctrl_c_ends_a_search() -> None:
    child = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert child.wait(timeout=30) == 7 and time.monotonic() - start < 5
