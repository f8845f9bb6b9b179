"""Ten figures with matplotlib from runs and sweeps: python gallery.py FOLDER."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from aimd import Aimd

import bentpipe
from bentpipe import Scenario

Axes = Any
LINK = Scenario.load("sharing").with_(flows=1, duration="100 s", jitter="0 ms", window="256 segments")
SCHEMES = ["newreno", "cubic", "hybla", "bbr"]
ACCESS = {"rate": "100 Mbit/s", "delay": "1 ms", "buffer": "1000 packets"}
TRANSFER = {
    "schema": 1,
    "title": "A file over a GEO satellite",
    "duration": "200 s",
    "parameters": {"tcp": {"default": "newreno"}},
    "dumbbell": {
        "rtt": "550 ms",
        "rate": "10 Mbit/s",
        "buffer": "600 packets",
        "loss": 1e-3,
        "access": ACCESS,
    },
    "host": {"tcp": "$tcp"},
    "flows": [{"name": "file", "from": "src1", "to": "dst1", "app": {"transfer": "5 MB"}}],
}


def course(table: bentpipe.Table, name: str, column: str) -> tuple[list[float], list[float]]:
    """Times in s and values of one flow or link, where there are some."""
    rows = zip(table["time_s"], table["name"], table[column])
    points = [(time, value) for time, of, value in rows if of == name and value is not None]
    assert points, f"{name} has no {column}"
    return [time for time, _ in points], [value for _, value in points]


def recorded(scenario: Scenario) -> bentpipe.Table:
    return bentpipe.run(scenario, seed=1, record=True).series


def window(ax: Axes) -> None:
    """NewReno: half the window after a loss, then a segment per round trip"""
    times, cwnd = course(recorded(LINK.with_(loss=3e-4)), "flow1", "cwnd_bytes")
    ax.plot(times, [c / 1e3 for c in cwnd])
    ax.set(xlabel="time, s", ylabel="congestion window, kB")


def schemes(ax: Axes) -> None:
    """What four schemes send over the same losses"""
    for tcp in SCHEMES:
        times, rate = course(recorded(LINK.with_(loss=3e-4, tcp=tcp)), "flow1", "goodput_bps")
        every = max(len(times) // 60, 1)
        means = [sum(rate[i : i + every]) / every / 1e6 for i in range(0, len(rate) - every, every)]
        ax.plot(times[: len(rate) - every : every], means, label=tcp)
    ax.set(xlabel="time, s", ylabel="goodput, Mbit/s")
    ax.legend()


def loss(ax: Axes) -> None:
    """Goodput over loss, with 95 % intervals"""
    losses = [1e-5, 1e-4, 1e-3, 1e-2]
    cells = bentpipe.sweep(LINK.with_(duration="60 s"), {"tcp": SCHEMES, "loss": losses}, seeds=5)
    for tcp in SCHEMES:
        rows = [row for row in cells.rows() if row["tcp"] == tcp]
        mean = [row["goodput_bps"] / 1e6 for row in rows]
        half = [(row["goodput_bps_high"] or 0) / 1e6 - m for row, m in zip(rows, mean)]
        ax.errorbar([row["loss"] for row in rows], mean, half, capsize=3, marker="o", label=tcp)
    ax.set(xlabel="packet loss probability", ylabel="goodput, Mbit/s", xscale="log", yscale="log")
    ax.legend()


def queue(ax: Axes) -> None:
    """The queue of the satellite hop while twenty connections share it"""
    table = recorded(LINK.with_(flows=20, loss=0, window="64 segments"))
    times, peak = course(table, "bottleneck", "queue_peak_packets")
    ax.plot(times, peak, label="peak", lw=0.8)
    ax.plot(*course(table, "bottleneck", "queue_packets"), label="mean", lw=0.8)
    ax.set(xlabel="time, s", ylabel="packets")
    ax.legend()


def round_trip(ax: Axes) -> None:
    """Round-trip times: BBR keeps the queue shorter than CUBIC"""
    for tcp in ("cubic", "bbr"):
        ax.plot(
            *course(recorded(LINK.with_(loss=0, tcp=tcp, window="2000 segments")), "flow1", "rtt_ms"),
            label=tcp,
        )
    ax.set(xlabel="time, s", ylabel="round-trip time, ms")
    ax.legend()


def share(ax: Axes) -> None:
    """Goodput of twenty connections, sorted, with the fair share"""
    report = bentpipe.run(LINK.with_(flows=20, loss=1e-4), seed=1)
    rates = sorted(flow.goodput_bps / 1e6 for flow in report.flows)
    ax.bar(range(1, len(rates) + 1), rates)
    ax.axhline(sum(rates) / len(rates), color="k", ls=":")
    ax.set(xlabel=f"connection (Jain's index {report.total.jain:.3f})", ylabel="goodput, Mbit/s")


def limits(ax: Axes) -> None:
    """What limited each scheme, as shares of its time"""
    reports = [bentpipe.run(LINK.with_(loss=3e-4, tcp=tcp), seed=1) for tcp in SCHEMES]
    bottom = [0.0] * len(SCHEMES)
    for cause in reports[0].flows[0].limited_by:
        shares = [report.flows[0].limited_by[cause] for report in reports]
        if max(shares) > 0.01:
            ax.bar(SCHEMES, shares, bottom=bottom, label=cause.replace("_", " "))
            bottom = [b + s for b, s in zip(bottom, shares)]
    ax.set(ylabel="share of time", ylim=(0, 1.35))
    ax.legend(ncols=2, fontsize="small")


def grid(ax: Axes) -> None:
    """Goodput over receive window and loss, Mbit/s"""
    windows, losses = [f"{n} segments" for n in (32, 64, 128, 256)], [1e-5, 1e-4, 1e-3, 1e-2]
    # LINK has a window already, and an axis has several
    link = Scenario.load("sharing").with_(flows=1, duration="60 s", jitter="0 ms")
    cells = bentpipe.sweep(link, {"window": windows, "loss": losses}, seeds=3)
    means = [mean / 1e6 for mean in cells["goodput_bps"]]
    table = [means[n : n + len(losses)] for n in range(0, len(means), len(losses))]
    picture = ax.imshow(table, aspect="auto", origin="lower")
    ax.set_xticks(range(len(losses)), [f"{p:g}" for p in losses])
    ax.set_yticks(range(len(windows)), [w.removesuffix(" segments") for w in windows])
    ax.set(xlabel="packet loss probability", ylabel="window, segments")
    ax.figure.colorbar(picture)


def times(ax: Axes) -> None:
    """Times of a transfer over many seeds, as distributions"""
    transfer = Scenario.load(TRANSFER)
    for tcp in ("newreno", "cubic"):
        took = [bentpipe.run(transfer.with_(tcp=tcp), seed).metric("finished") for seed in range(1, 41)]
        known = sorted(t for t in took if t is not None)
        ax.step(known, [(n + 1) / len(took) for n in range(len(known))], where="post", label=tcp)
    ax.set(xlabel="time of the transfer, s", ylabel="share of runs")
    ax.legend()


def own(ax: Axes) -> None:
    """A scheme in Python beside the built-in one that it follows"""
    for tcp, style in (("reno", "-"), (Aimd(), "--")):
        times, cwnd = course(recorded(LINK.with_(loss=3e-4, tcp=tcp)), "flow1", "cwnd_bytes")
        ax.plot(times, [c / 1e3 for c in cwnd], style, label=tcp if isinstance(tcp, str) else "Aimd (Python)")
    ax.set(xlabel="time, s", ylabel="congestion window, kB")
    ax.legend()


FIGURES: list[Callable[[Axes], None]] = [
    window,
    schemes,
    loss,
    queue,
    round_trip,
    share,
    limits,
    grid,
    times,
    own,
]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        drawn, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
        figure(ax)
        ax.set_title(figure.__doc__ or "", fontsize="medium")
        drawn.savefig(folder / f"{figure.__name__}.png", dpi=120)
        plt.close(drawn)
        print(folder / f"{figure.__name__}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gallery"))
