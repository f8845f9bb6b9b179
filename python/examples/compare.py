"""Which scheme suits a lossy satellite link? A table, and the loss at which CUBIC falls below 1 Mbit/s."""

from __future__ import annotations

import bentpipe


def main() -> None:
    sharing = bentpipe.Scenario.load("sharing").with_(duration="20 s")
    print(bentpipe.run(sharing, seed=1))

    cells = bentpipe.sweep(sharing, {"tcp": ["newreno", "cubic"], "loss": [1e-4, 1e-2]}, seeds=3)
    for row in cells.rows():
        low, high = row["goodput_bps_low"], row["goodput_bps_high"]
        print(f"{row['tcp']:8} loss {row['loss']:<6g} {low / 1e6:6.3f} to {high / 1e6:6.3f} Mbit/s")

    found = bentpipe.find(sharing.with_(tcp="cubic"), {"loss": (1e-4, 0.2)}, "goodput < 1 Mbit/s", seeds=2)
    print(found)


if __name__ == "__main__":
    main()
