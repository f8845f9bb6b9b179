"""A connection over a satellite link as an environment of Gymnasium: an agent decides what it may send.

>>> import gymnasium, bentpipe.gym
>>> env = gymnasium.make("bentpipe/Connection-v0", scenario="window")  # doctest: +SKIP

Needs ``pip install 'bentpipe[gym]'``.
"""

from __future__ import annotations

import math
from typing import Any, Callable, SupportsFloat

try:
    import gymnasium
    import numpy as np
    import numpy.typing as npt
    from gymnasium import spaces
except ImportError as missing:
    raise ImportError("bentpipe.gym needs gymnasium: pip install 'bentpipe[gym]'") from missing

from . import _native
from ._errors import InputError
from ._native import Step
from ._scenario import Scenario, ScenarioLike

Observation = npt.NDArray[np.float32]
Action = npt.NDArray[np.float32]
Reward = Callable[[Step], float]
"""Judges a step; its values are in bytes and seconds."""

OBSERVED: dict[str, float] = {
    "delivered_mbps": 1e6,
    "rtt_ms": 1e7,
    "rtt_min_ms": 1e7,
    "lost_share": 1.0,
    "in_flight_kb": 1e9,
    "window_kb": 1e9,
}
"""What an observation has, each with its largest value: rate of the data delivered in the step, Mbit/s;
mean of the round-trip times in it (the last known if there were none) and the smallest so far, ms; share of
bytes that were lost; bytes in flight and window, kB."""

MOST_WINDOW = 1e9
"""Largest window, bytes."""
MOST_PACE = 1e12
"""Largest pace, bit/s."""


def power(step: Step) -> float:
    """The reward if no other is given: Copa's objective ``log2(rate) - log2(delay) / 2`` (Arun and
    Balakrishnan, NSDI 2018), rate in Mbit/s and delay relative to the smallest, less ten times the share of
    lost bytes."""
    rate = 8e-6 * step.delivered / step.length_s
    rtt, least = step.rtt_s or step.srtt_s, step.rtt_min_s
    delay = rtt / least if least > 0 else 1.0
    lost = step.lost / max(step.lost + step.delivered, 1)
    return math.log2(max(rate, 1e-3)) - 0.5 * math.log2(max(delay, 1.0)) - 10.0 * lost


class Connection(gymnasium.Env[Observation, Action]):
    """The sender of one flow of a scenario obeys the agent; all else is as in :func:`bentpipe.run`.

    A step lasts ``step_s`` seconds of simulated time. The action is one number ``a`` from -1 to 1: it
    multiplies the window (``action="window"``) or the pace (``action="pace"``) by ``2**a``. With a pace the
    window is twice what the pace sends in a smoothed round trip. Losses are found by RACK and repaired by the
    engine. An episode begins with the first acknowledgment. It ends when the flow is complete (terminated) or
    the scenario's time is over (truncated).

    The observation has the values of :data:`OBSERVED`, and ``info`` has them by name, with the time and the
    bytes that the application has received. The same seed and actions give the same episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: ScenarioLike = "window",
        *,
        flow: str | None = None,
        action: str = "window",
        step_s: float = 0.1,
        reward: Reward = power,
        render_mode: None = None,
    ) -> None:
        """``flow`` is the name of the flow; without it the first flow of TCP obeys."""
        if action not in ("window", "pace"):
            raise InputError(f"action={action!r}: write 'window' or 'pace'")
        if not 1e-6 <= step_s <= 1e6:
            raise InputError(f"step_s={step_s!r}: write the length of a step in seconds, from 1e-6 to 1e6")
        self.scenario = Scenario.load(scenario)
        self.render_mode = render_mode
        self._flow, self._paced, self._step_s, self._reward = flow, action == "pace", step_s, reward
        # a flow that is not there is refused now, not with the first episode
        _native.Episode(self.scenario._native, 0, flow)
        self._episode: _native.Episode | None = None
        self._window, self._pace, self._rtt_s = 0.0, 0.0, 0.0
        largest = np.array(list(OBSERVED.values()), np.float32)
        self.observation_space = spaces.Box(np.zeros_like(largest), largest, dtype=np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode; the same ``seed`` begins the same one."""
        super().reset(seed=seed)
        own = int(self.np_random.integers(0, 2**63))
        self._episode = _native.Episode(self.scenario._native, own, self._flow)
        step = self._episode.begin()
        self._window, self._rtt_s = float(step.window), step.srtt_s
        # the window, once in a round trip
        self._pace = 8.0 * self._window / max(step.srtt_s, 1e-3)
        return self._observed(step)

    def step(self, action: Action) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Acts, and runs for the length of a step."""
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        factor = 2.0 ** min(max(float(np.asarray(action).reshape(-1)[0]), -1.0), 1.0)
        if self._paced:
            self._pace = min(max(self._pace * factor, 1e3), MOST_PACE)
            self._window = min(2.0 * self._pace / 8.0 * max(self._rtt_s, 1e-3), MOST_WINDOW)
            step = self._episode.step(self._window, self._pace, self._step_s)
        else:
            self._window = min(self._window * factor, MOST_WINDOW)
            step = self._episode.step(self._window, None, self._step_s)
        self._window = float(max(self._window, step.mss))
        observed, info = self._observed(step)
        return observed, self._reward(step), step.finished, step.over and not step.finished, info

    def close(self) -> None:
        """Ends the simulation."""
        self._episode = None

    def _observed(self, step: Step) -> tuple[Observation, dict[str, Any]]:
        self._rtt_s = step.rtt_s or self._rtt_s
        values = {
            "delivered_mbps": 8e-6 * step.delivered / step.length_s if step.length_s > 0 else 0.0,
            "rtt_ms": 1e3 * self._rtt_s,
            "rtt_min_ms": 1e3 * step.rtt_min_s,
            "lost_share": step.lost / max(step.lost + step.delivered, 1),
            "in_flight_kb": 1e-3 * step.in_flight,
            "window_kb": 1e-3 * step.window,
        }
        observed = np.array([min(values[name], most) for name, most in OBSERVED.items()], np.float32)
        info = {**values, "time_s": step.now_s, "received_bytes": step.received, "timeouts": step.timeouts}
        if self._paced:
            info["pace_mbps"] = 1e-6 * self._pace
        return observed, info


gymnasium.register("bentpipe/Connection-v0", entry_point="bentpipe.gym:Connection")
