"""The loop of an environment, without training: an agent that keeps its queue short. Needs gymnasium."""

from __future__ import annotations

import gymnasium
import numpy as np

import bentpipe.gym  # noqa: F401, it registers the environment


def main() -> None:
    env = gymnasium.make("bentpipe/Connection-v0", scenario="window", step_s=0.5)
    observed, info = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        # more while the round trip is near its smallest, less once a queue has grown
        queueing = info["rtt_ms"] / max(info["rtt_min_ms"], 1.0) - 1.0
        action = np.array([np.clip(0.5 - 5.0 * queueing, -1.0, 1.0)], np.float32)
        observed, reward, terminated, truncated, info = env.step(action)
        total, over = total + float(reward), terminated or truncated
    env.close()
    received = 1e-6 * info["received_bytes"]
    print(f"{received:.2f} MB in {info['time_s']:.1f} s, reward {total:.1f}")


if __name__ == "__main__":
    main()
