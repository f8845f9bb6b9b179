"""AIMD in Python, which does what `reno` does: one segment more in a round trip, half after a loss."""

from __future__ import annotations

import bentpipe


class Aimd(bentpipe.Scheme):
    recovery = "reno"

    def on_start(self, start: bentpipe.Start) -> None:
        self.cwnd, self.ssthresh, self.credit = float(start.window), start.ssthresh, 0.0

    def on_ack(self, ack: bentpipe.Ack) -> None:
        if not ack.may_grow:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += min(ack.acked, ack.mss)
            return
        self.credit += min(ack.acked, ack.mss)
        if self.credit >= self.cwnd:
            self.credit -= self.cwnd
            self.cwnd += ack.mss

    def on_loss(self, loss: bentpipe.Loss) -> None:
        timeout = "timeout" in loss.cause
        if loss.cause != "repeated-timeout":
            used = min(loss.flight, self.cwnd) if timeout else loss.flight
            self.ssthresh = max(used // 2, 2 * loss.mss)
        self.cwnd, self.credit = loss.mss if timeout else self.ssthresh, 0

    def plan(self) -> float:
        return self.cwnd


def main() -> None:
    link = bentpipe.Scenario.load("sharing").with_(flows=1, loss=1e-3, duration="100 s", jitter="0 ms")
    for tcp in ("reno", Aimd()):
        report = bentpipe.run(link.with_(tcp=tcp))
        print(f"{report.flows[0].tcp}: {report.total.goodput_bps / 1e6:.3f} Mbit/s")


if __name__ == "__main__":
    main()
