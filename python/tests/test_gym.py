"""The environment of Gymnasium."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import pytest

import bentpipe
from bentpipe import InputError, Scenario

gymnasium: Any = pytest.importorskip("gymnasium")
np: Any = pytest.importorskip("numpy")
gym: Any = pytest.importorskip("bentpipe.gym")


def trajectory(env: Any, seed: int, steps: int = 200) -> list[Any]:
    choices = np.random.default_rng(0)
    seen: list[Any] = [env.reset(seed=seed)[0].tolist()]
    for _ in range(steps):
        action = choices.uniform(-0.3, 0.35, 1).astype(np.float32)
        observed, reward, terminated, truncated, _ = env.step(action)
        seen.append((observed.tolist(), reward))
        if terminated or truncated:
            break
    return seen


@pytest.mark.parametrize("action", ["window", "pace"])
def test_the_checker_of_gymnasium_passes_without_warnings(action: str) -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("bentpipe/Connection-v0", scenario="window", action=action).unwrapped)


@pytest.mark.parametrize("action", ["window", "pace"])
def test_the_same_seed_is_the_same_trajectory(action: str) -> None:
    lossy = Scenario.load("window").with_(loss=1e-2)
    env, other = (gym.Connection(lossy, action=action) for _ in range(2))
    first = trajectory(env, 7)
    assert trajectory(env, 7) == first == trajectory(other, 7)
    assert trajectory(env, 8) != first


def test_a_reset_without_a_seed_goes_on_to_another_episode() -> None:
    env = gym.Connection(Scenario.load("window").with_(loss=1e-2))
    env.reset(seed=1)

    def episode() -> list[float]:
        env.reset()
        return [float(env.step(np.full(1, 0.1, np.float32))[1]) for _ in range(100)]

    assert episode() != episode()


def test_the_window_is_what_the_agent_says() -> None:
    env = gym.Connection("window", step_s=2.0)
    observed, info = env.reset(seed=1)
    assert info["time_s"] > 1.1 and info["window_kb"] == 2, "after the handshake and the first round trip"
    for _ in range(4):
        observed, _, _, _, info = env.step(np.ones(1, np.float32))
    assert info["window_kb"] == 32
    steps = [env.step(np.zeros(1, np.float32)) for _ in range(10)]
    observed, _, _, _, info = steps[-1]
    # W/T, with the round trip of a queue that is empty
    mean = sum(step[4]["delivered_mbps"] for step in steps) / len(steps)
    assert mean == pytest.approx(8 * 32e-3 / 0.592, rel=0.05)
    assert info["rtt_ms"] == pytest.approx(info["rtt_min_ms"], rel=0.02)
    assert observed.tolist() == [np.float32(info[name]) for name in gym.OBSERVED]
    for _ in range(2):
        *_, info = env.step(np.ones(1, np.float32))
    assert info["in_flight_kb"] > 110 and info["delivered_mbps"] < 1.544
    assert info["rtt_ms"] > 1.05 * info["rtt_min_ms"], "more than the path holds waits in the queue"


def test_the_pace_is_what_the_agent_says() -> None:
    env = gym.Connection("window", action="pace", step_s=3.0)
    _, info = env.reset(seed=1)
    for action in (1, 1, 1, 1, 0):
        *_, info = env.step(np.full(1, action, np.float32))
    assert info["delivered_mbps"] == pytest.approx(info["pace_mbps"], rel=0.1)
    for action in (-1, -1, -1, 0):
        *_, info = env.step(np.full(1, action, np.float32))
    assert info["delivered_mbps"] == pytest.approx(info["pace_mbps"], rel=0.1)


def test_losses_cost_reward() -> None:
    rewards = []
    for loss in (0.0, 0.1):
        env = gym.Connection(Scenario.load("window").with_(loss=loss), step_s=1.0)
        env.reset(seed=1)
        steps = [env.step(np.full(1, 0.05, np.float32)) for _ in range(40)]
        rewards.append(sum(float(step[1]) for step in steps))
        assert (max(step[0][3] for step in steps) > 0) == (loss > 0)
    assert rewards[1] < rewards[0] - 10


def test_episodes_end_with_the_transfer_or_the_time() -> None:
    short = gym.Connection(Scenario.load("window").with_(duration="5 s"), step_s=1.0)
    _, info = short.reset(seed=1)
    ends: list[tuple[bool, bool]] = []
    while not ends or not (ends[-1][0] or ends[-1][1]):
        _, _, terminated, truncated, info = short.step(np.zeros(1, np.float32))
        ends.append((terminated, truncated))
    assert ends[-1] == (False, True) and info["time_s"] == 5
    transfer = gym.Connection("transfer", step_s=1.0, reward=lambda step: float(step.delivered))
    _, info = transfer.reset(seed=1)
    total, over = 0.0, (False, False)
    while not any(over):
        _, reward, terminated, truncated, info = transfer.step(np.full(1, 0.1, np.float32))
        total, over = total + float(reward), (terminated, truncated)
    assert over == (True, False) and 0 < total <= 1.01 * info["received_bytes"]


def test_only_the_named_flow_obeys() -> None:
    env = gym.Connection(Scenario.load("sharing").with_(flows=2), flow="flow2", step_s=5.0)
    _, info = env.reset(seed=1)
    for _ in range(3):
        *_, info = env.step(np.full(1, -1, np.float32))
    assert info["window_kb"] == 1 and info["delivered_mbps"] < 0.05
    with pytest.raises(InputError, match="no flow of TCP called `web`: it has flow1, flow2"):
        gym.Connection(Scenario.load("sharing").with_(flows=2), flow="web")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="write 'window' or 'pace'"):
        gym.Connection(action="rate")
    with pytest.raises(InputError, match="write the length of a step"):
        gym.Connection(step_s=0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        gym.Connection().step(np.zeros(1, np.float32))


def test_gymnasium_makes_it_by_its_name_alone_and_in_a_vector() -> None:
    env = gymnasium.make("bentpipe/Connection-v0", scenario="window")
    env.reset(seed=1)
    env.close()
    many = gymnasium.make_vec("bentpipe/Connection-v0", num_envs=3, vectorization_mode="sync")
    many.reset(seed=1)
    observed, *_ = many.step(np.zeros((3, 1), np.float32))
    assert observed.shape == (3, len(gym.OBSERVED))
    many.close()


def test_thousands_of_steps_in_a_second() -> None:
    env = gym.Connection("window", step_s=0.01)
    env.reset(seed=1)
    action = np.zeros(1, np.float32)
    begin, steps = time.perf_counter(), 3000
    for _ in range(steps):
        env.step(action)
    assert steps / (time.perf_counter() - begin) > 2000


def test_without_gymnasium_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "bentpipe.gym")
    with pytest.raises(ImportError, match=r"pip install 'bentpipe\[gym\]'"):
        import bentpipe.gym  # noqa: F401


def test_the_loop_of_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    import agent

    agent.main()
    assert "reward" in capsys.readouterr().out
    assert bentpipe.__version__
