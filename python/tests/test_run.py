"""Runs and their reports."""

from __future__ import annotations

import json
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import BugError, InputError, Scenario, _native

from .conftest import SMALL, Command

SHORT = ["applications", "demo", "window", "rate-negotiation", "burst", "rain", "accelerate"]


@pytest.mark.parametrize("name", SHORT)
def test_a_report_is_what_the_command_prints(name: str, command: Command) -> None:
    printed = command("sim", name, "--seed", "3", "--json")
    report = bentpipe.run(name, seed=3)
    assert report.to_dict() == json.loads(printed)
    assert report.to_json() + "\n" == printed
    text = command("sim", name, "--seed", "3")
    assert "\n  limits from 0 to " in text and str(report) == text


def test_the_same_seed_gives_the_same_report_and_another_seed_another_one(small: Scenario) -> None:
    assert bentpipe.run(small, seed=1) == bentpipe.run(small)
    assert bentpipe.run(small, seed=1) == bentpipe.run(small, seed=1, record=True)
    other = bentpipe.run(small, seed=2)
    assert other.seed == 2 and other.total != bentpipe.run(small).total


def test_values_are_attributes_and_keys(small: Scenario) -> None:
    report = bentpipe.run(small)
    assert report.scenario == small.title and report.parameters.flows == 5
    assert report.total.goodput_bps == report.to_dict()["total"]["goodput_bps"] > 0
    assert [f.name for f in report.flows] == [f"flow{n}" for n in range(1, 6)]
    flow = report.flows["flow3"]
    assert flow.tcp == "newreno" and flow["rtt_ms"]["p50"] == flow.rtt_ms.p50 > 550
    assert report.links[0].packets > 0 and len(report.flows[1:3]) == 2
    assert set(flow) == set(report.to_dict()["flows"][2]) and "name" in dir(flow)


def test_a_value_that_is_not_there_names_those_that_are(small: Scenario) -> None:
    report = bentpipe.run(small)
    with pytest.raises(AttributeError, match="it has schema, scenario"):
        report.goodput  # noqa: B018
    with pytest.raises(AttributeError, match="there are goodput_bps, jain"):
        report.total.goodput  # noqa: B018
    with pytest.raises(KeyError, match="flow1"):
        report.flows["web"]
    with pytest.raises(IndexError):
        report.flows[5]


def test_a_metric_is_that_of_the_command(small: Scenario) -> None:
    report = bentpipe.run(small)
    assert report.metric("goodput") == report.total.goodput_bps
    assert report.metric("goodput[flow2]") == report.flows["flow2"].goodput_bps
    assert report.metric("finished") is None
    with pytest.raises(InputError, match="did you mean `goodput`"):
        report.metric("godput")
    with pytest.raises(InputError, match="the run has no flow `x`"):
        report.metric("goodput[x]")


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True])
def test_what_is_no_seed_is_refused(small: Scenario, seed: Any) -> None:
    with pytest.raises(InputError, match="the seed"):
        bentpipe.run(small, seed=seed)


def test_the_largest_seed_is_a_seed(small: Scenario) -> None:
    assert bentpipe.run(small, seed=2**64 - 1).to_dict()["seed"] == 2**64 - 1


def test_a_notebook_shows_the_page_with_pictures(small: Scenario) -> None:
    shown = bentpipe.run(small)._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "&lt;svg" in shown
    assert "Files beside this page" not in shown
    # the picture reacts; the page reaches neither the notebook nor a network
    assert re.findall(r'sandbox="([^"]*)"', shown) == ["allow-scripts"] and "&lt;script" in shown
    assert "http-equiv=&quot;Content-Security-Policy&quot; content=&quot;default-src &#x27;none&#x27;;" in shown


def test_the_text_says_what_limited_the_flows(small: Scenario) -> None:
    text = str(bentpipe.run(small))
    lines = text.splitlines()
    assert lines[0].startswith("The 5 flows use ") and lines[1].startswith("  flow1 |") and len(lines[1]) == 70
    assert lines[6].startswith("  limits from 0 to ")
    # the course of a recorded run is at hand
    recorded = bentpipe.run(small, record=True)
    assert str(recorded).splitlines()[0] == lines[0] and "\n  limits from 0 to " in str(recorded)


def test_results_are_saved_as_by_the_command(small: Scenario, tmp_path: Path, command: Command) -> None:
    sets = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    command("sim", "sharing", *sets, "--out", str(tmp_path / "b"))
    paths = bentpipe.run(small).save(tmp_path / "a")
    assert paths[0].name == "report.html" and len(paths) > 5
    for path in paths:
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_folder_that_cannot_be_made_is_the_systems_error(small: Scenario, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OSError, match="not a folder"):
        bentpipe.run(small).save(tmp_path / "taken")


def test_a_panic_of_the_engine_is_an_exception() -> None:
    with pytest.raises(BugError, match="out of order"):
        _native.fail("out of order")
    assert bentpipe.run("demo").total.goodput_bps > 0


def test_other_threads_go_on_during_a_run() -> None:
    scenario = Scenario.load("sharing").with_(flows=50)
    turns, over = 0, threading.Event()

    def run() -> None:
        bentpipe.run(scenario)
        over.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not over.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 20


INTERRUPTED = """
import bentpipe, sys
print("begun", flush=True)
try:
    bentpipe.run(bentpipe.Scenario.load("sharing").with_(duration="100000 s", flows=100))
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(7)
"""


def test_ctrl_c_ends_a_run() -> None:
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert child.wait(timeout=20) == 7 and time.monotonic() - start < 3


def test_values_survive_pickling(small: Scenario) -> None:
    flow = bentpipe.run(small).flows[0]
    assert pickle.loads(pickle.dumps(flow)) == flow


def test_links_and_schemes_are_those_of_the_command(command: Command) -> None:
    assert bentpipe.links() == json.loads(command("links", "--json"))
    schemes = bentpipe.schemes()
    assert list(schemes)[:2] == ["reno", "newreno"] and schemes["cubic"]["beta"]["default"] == 0.7


def test_the_version_is_that_of_the_command(command: Command) -> None:
    assert command("--version").split() == ["bentpipe", bentpipe.__version__]
