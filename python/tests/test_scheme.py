"""Congestion control schemes written in Python."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aimd import Aimd

import bentpipe
from bentpipe import Ack, InputError, Loss, Plan, Scenario, Scheme, Start

LOSSY: dict[str, bentpipe.Value] = {"flows": 1, "duration": "60 s", "loss": 1e-3}


@pytest.fixture
def lossy() -> Scenario:
    return Scenario.load("sharing").with_(LOSSY)


@pytest.fixture
def single() -> Scenario:
    """The same without a loss, which is to be an axis."""
    return Scenario.load("sharing").with_(flows=1, duration="60 s")


class Fixed(Scheme):
    """A window that never changes, and a note of what it was told."""

    def __init__(self, segments: float = 10) -> None:
        self.segments = segments

    def on_start(self, start: Start) -> None:
        self.window = self.segments * start.mss

    def on_ack(self, ack: Ack) -> None:
        pass

    def on_loss(self, loss: Loss) -> None:
        pass

    def plan(self) -> Any:
        return self.window


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_aimd_is_reno_in_congestion_avoidance(lossy: Scenario, seed: int) -> None:
    long = lossy.with_(duration="300 s")
    reno = bentpipe.run(long.with_(tcp="reno"), seed)
    own = bentpipe.run(long.with_(tcp=Aimd()), seed)
    assert own.flows[0].tcp == "Aimd" and reno.flows[0].retransmits > 10
    assert own.total.goodput_bps == pytest.approx(reno.total.goodput_bps, rel=1e-3)
    assert own.flows[0].timeouts == reno.flows[0].timeouts


def test_the_same_run_again_is_the_same(lossy: Scenario) -> None:
    own = lossy.with_(tcp=Aimd())
    assert bentpipe.run(own) == bentpipe.run(own) == bentpipe.run(own, record=True)
    assert len(bentpipe.run(own).series) > 100


def test_a_window_limits_what_is_sent(lossy: Scenario) -> None:
    clean = lossy.with_(loss=0)
    rates = [bentpipe.run(clean.with_(tcp=Fixed(n))).total.goodput_bps for n in (10, 20)]
    # W/T: 10 segments of 8000 bit in about 551 ms
    assert rates[0] == pytest.approx(10 * 8000 / 0.551, rel=0.05)
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.02)


def test_a_pace_limits_what_is_sent(lossy: Scenario) -> None:
    class Paced(Fixed):
        def plan(self) -> Plan:
            return Plan(64 * 1000, 400_000)

    report = bentpipe.run(lossy.with_(loss=0, tcp=Paced()))
    assert report.total.goodput_bps == pytest.approx(400_000, rel=0.05)
    assert report.flows[0].limited_by["pacing"] > 0.8


def test_events_have_the_values_of_the_connection(lossy: Scenario) -> None:
    seen: list[tuple[float, ...]] = []
    causes: list[str] = []

    class Watching(Aimd):
        def __deepcopy__(self, memo: object) -> Watching:
            return Watching()

        def on_ack(self, ack: Ack) -> None:
            super().on_ack(ack)
            assert ack.mss == 1000 and ack.una <= ack.next and ack.limited_by and ack.round >= 0
            assert ack.acked <= ack.delivered_total and ack.peer_window > 0 and not ack.app_limited
            if ack.rtt_s is not None and ack.rate_bps is not None:
                seen.append((ack.now_s, ack.rtt_s, ack.rtt_min_s or 0, ack.srtt_s or 0, ack.rate_bps))

        def on_loss(self, loss: Loss) -> None:
            super().on_loss(loss)
            assert loss.last_sent_s < loss.now_s and loss.flight >= 0 and loss.resends >= 0
            causes.append(loss.cause)

    report = bentpipe.run(lossy.with_(tcp=Watching()))
    times = [time for time, *_ in seen]
    assert times == sorted(times) and 50 < times[-1] <= 60
    assert all(0.55 <= least <= rtt < 1 and 0.55 <= srtt < 1 for _, rtt, least, srtt, _ in seen)
    assert max(rate for *_, rate in seen) <= 10e6
    assert set(causes) <= {"fast", "timeout", "repeated-timeout"} and "fast" in causes
    assert sum("timeout" in cause for cause in causes) == report.flows[0].timeouts


def test_a_class_need_not_have_the_base(lossy: Scenario) -> None:
    class Duck:
        name = "duck"

        def on_ack(self, ack: Ack) -> None: ...

        def on_loss(self, loss: Loss) -> None: ...

        def plan(self) -> float:
            return 20_000

    assert bentpipe.run(lossy.with_(tcp=Duck())).flows[0].tcp == "duck"


def test_connections_do_not_share_an_object(lossy: Scenario) -> None:
    alone = bentpipe.run(lossy.with_(tcp=Aimd(), flows=1, loss=0)).flows[0].goodput_bps
    both = bentpipe.run(lossy.with_(tcp=Aimd(), flows=2, loss=0))
    assert [flow.goodput_bps for flow in both.flows] == pytest.approx([alone, alone], rel=0.02)


@pytest.mark.parametrize("method", ["on_start", "on_ack", "on_loss", "plan"])
def test_an_exception_ends_the_run_and_comes_out(lossy: Scenario, method: str) -> None:
    class Failing(Aimd):
        pass

    def fail(self: Failing, *_: object) -> None:
        raise ZeroDivisionError(f"in {method}")

    setattr(Failing, method, fail)
    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError, match=f"in {method}") as raised:
        bentpipe.run(lossy.with_(tcp=Failing(), duration="100000 s"))
    assert time.monotonic() - begin < 5
    assert raised.traceback[-1].name == "fail"
    # nothing is left of it
    assert bentpipe.run(lossy.with_(tcp=Aimd())).total.goodput_bps > 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (float("nan"), "plan() is nan: write a window in bytes"),
        (float("inf"), "plan() is inf"),
        (-1, "plan() is -1"),
        (None, "plan() is None"),
        ((1e4, 0), "the pace of plan() is 0: write bit/s from 1"),
        ((1e4, "fast"), "the pace of plan() is fast"),
    ],
)
def test_a_plan_that_makes_no_sense_says_what_to_write(lossy: Scenario, answer: Any, said: str) -> None:
    class Wrong(Fixed):
        def plan(self) -> Any:
            return answer

    with pytest.raises(InputError) as raised:
        bentpipe.run(lossy.with_(tcp=Wrong()))
    assert said in str(raised.value)


def test_names_and_recovery_are_checked(lossy: Scenario) -> None:
    for name, value, said in [
        ("name", "reno", "`reno` is a scheme of bentpipe"),
        ("name", "a b", "write letters, digits"),
        ("recovery", "rneo", "write the name of a scheme whose loss recovery it has: reno, newreno"),
        ("recovery", 3, "write the name of a scheme"),
    ]:
        scheme = Aimd()
        setattr(scheme, name, value)
        with pytest.raises(InputError) as raised:
            lossy.with_(tcp=scheme)
        assert said in str(raised.value)
    with pytest.raises(InputError, match=r"Aimd is a class: write an object of it, Aimd\(\)"):
        lossy.with_(tcp=Aimd)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no value of a parameter"):
        lossy.with_(tcp=object())  # type: ignore[arg-type]


def test_an_object_that_changes_later_changes_no_scenario(lossy: Scenario) -> None:
    scheme = Fixed(10)
    own = lossy.with_(tcp=scheme, loss=0)
    before = bentpipe.run(own)
    scheme.segments = 20
    assert bentpipe.run(own.with_(loss=0)) == before
    assert own != lossy.with_(tcp=scheme, loss=0)
    # two objects of one name, in either order
    again = lossy.with_(tcp=scheme, loss=0)
    assert bentpipe.run(own.with_(loss=0)) == before != bentpipe.run(again)


def test_a_scheme_that_nobody_uses_is_forgotten(lossy: Scenario) -> None:
    import gc
    import weakref

    class Held(Fixed):
        def __deepcopy__(self, memo: object) -> Held:
            return self

    scheme = Held()
    gone = weakref.ref(scheme)
    report = bentpipe.run(lossy.with_(tcp=scheme))
    del scheme
    assert len(report.series) > 0, "the report makes the run again"
    del report
    gc.collect()
    bentpipe.run(lossy)  # objects that were given up without Python's lock are freed with the next run
    gc.collect()
    assert gone() is None


def test_ctrl_c_within_a_scheme(lossy: Scenario) -> None:
    class Waiting(Fixed):
        def on_ack(self, ack: Ack) -> None:
            threading.Timer(0.05, lambda: __import__("_thread").interrupt_main()).start()
            time.sleep(5)

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        bentpipe.run(lossy.with_(tcp=Waiting()))
    assert time.monotonic() - begin < 6


def test_a_sweep_has_a_row_for_each_scheme(single: Scenario, tmp_path: Path) -> None:
    axes: dict[str, Any] = {"tcp": ["reno", Aimd()], "loss": [1e-3, 1e-2]}
    tables: dict[Path, bentpipe.Table] = {}
    for kind in (None, "threads", ThreadPoolExecutor(2)):
        out = tmp_path / str(len(tables))
        tables[out] = bentpipe.sweep(single, axes, seeds=3, executor=kind, out=out)
    first, *others = tables
    assert tables[first]["tcp"] == ["reno", "reno", "Aimd", "Aimd"]
    rates = tables[first]["goodput_bps"]
    assert rates[2:] == pytest.approx(rates[:2], rel=2e-2)
    for other in others:
        for name in ("runs.csv", "cells.csv", "report.html"):
            assert (first / name).read_bytes() == (other / name).read_bytes()


def test_runs_are_kept_as_long_as_the_code_is_the_same(lossy: Scenario, tmp_path: Path) -> None:
    def kept() -> int:
        return len(list(tmp_path.glob("runs/*.json")))

    def sweep(scheme: Scheme) -> None:
        bentpipe.sweep(lossy, {"tcp": [scheme]}, seeds=2, executor="threads", out=tmp_path)

    sweep(Fixed(10))
    assert kept() == 2
    sweep(Fixed(10))
    assert kept() == 2
    sweep(Fixed(11))
    assert kept() == 4

    class Fixed2(Fixed):
        name = "Fixed"

        def on_ack(self, ack: Ack) -> None:
            self.window += 1

    sweep(Fixed2(10))
    assert kept() == 6


def test_two_schemes_of_one_name_on_an_axis_are_refused(lossy: Scenario) -> None:
    with pytest.raises(InputError, match="two schemes are called `Fixed`: give each object a `name`"):
        bentpipe.sweep(lossy, {"tcp": [Fixed(1), Fixed(2)]}, seeds=1)
    first, second = Fixed(4), Fixed(8)
    first.name, second.name = "four", "eight"
    table = bentpipe.sweep(lossy, {"tcp": [first, second]}, seeds=1, executor="threads")
    assert table["tcp"] == ["four", "eight"]
    assert table["goodput_bps"][1] > 1.8 * table["goodput_bps"][0]


def test_an_exception_in_a_sweep_comes_out(lossy: Scenario) -> None:
    class Failing(Fixed):
        def on_ack(self, ack: Ack) -> None:
            raise LookupError("here")

    for executor in ("threads", "processes"):
        with pytest.raises(LookupError, match="here"):
            bentpipe.sweep(lossy, {"tcp": [Failing()]}, seeds=1, executor=executor)


def test_a_search_takes_a_scheme(single: Scenario) -> None:
    vary = {"loss": (1e-4, 0.2)}
    short = single.with_(duration="30 s")
    found = [
        bentpipe.find(short.with_(tcp=tcp), vary, "goodput < 0.5 Mbit/s", seeds=1).value
        for tcp in ("reno", Aimd())
    ]
    assert found[1] == pytest.approx(found[0], rel=0.05)


SCRIPT = """
import bentpipe

class Mine(bentpipe.Scheme):
    def on_ack(self, ack): pass
    def on_loss(self, loss): pass
    def plan(self): return 20000

if __name__ == "__main__":
    table = bentpipe.sweep("sharing", {"tcp": [Mine()], "duration": ["5 s"], "flows": [1]}, seeds=4)
    print(table["tcp"], table["goodput_bps_n"])
"""


def test_a_scheme_of_a_script_goes_to_processes(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "['Mine'] [4]\n", done.stderr


def test_the_engine_knows_its_own_schemes_only(lossy: Scenario) -> None:
    lossy.with_(tcp=Aimd())
    assert "Aimd" not in bentpipe.schemes() and "reno" in bentpipe.schemes()


@pytest.mark.slow
def test_callbacks_are_cheap(lossy: Scenario) -> None:
    """At least 200 000 calls in a second; here a call is one of a method, `plan` among them."""
    calls = 0

    class Counting(Fixed):
        def __deepcopy__(self, memo: object) -> Counting:
            return Counting(60)

        def on_ack(self, ack: Ack) -> None:
            nonlocal calls
            calls += 1

    busy = lossy.with_(flows=8, loss=0, tcp=Counting(), duration="400 s")
    begin = time.perf_counter()
    bentpipe.run(busy)
    spent = time.perf_counter() - begin
    assert calls > 100_000
    assert 2 * calls / spent > 200_000, f"{2 * calls / spent:.0f} calls in a second"
