"""Scenarios from everything that they may be loaded from, and what is wrong with some."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import InputError, Scenario, ScenarioError

TEXT = """schema = 1
title = "two hosts"
duration = "$duration"
seed = 7
[parameters]
duration = "2 s"
tcp = "cubic"
[host]
tcp = "$tcp"
[[hosts]]
name = "a"
[[hosts]]
name = "b"
[[links]]
name = "up"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "50 ms"
buffer = "100 packets"
[[flows]]
name = "file"
from = "a"
to = "b"
app = { transfer = "146 kB" }
"""

DICT: dict[str, Any] = {
    "schema": 1,
    "title": "two hosts",
    "duration": "$duration",
    "seed": 7,
    "parameters": {"duration": "2 s", "tcp": "cubic"},
    "host": {"tcp": "$tcp"},
    "hosts": [{"name": "a"}, {"name": "b"}],
    "links": [
        {
            "name": "up",
            "from": "a",
            "to": "b",
            "rate": "10 Mbit/s",
            "delay": "50 ms",
            "buffer": "100 packets",
        }
    ],
    "flows": [{"name": "file", "from": "a", "to": "b", "app": {"transfer": "146 kB"}}],
}


@pytest.mark.parametrize("name", bentpipe.scenarios())
def test_every_shipped_scenario_is_loaded_by_its_name(name: str) -> None:
    scenario = Scenario.load(name)
    assert scenario.title and scenario.duration_s > 0
    assert Scenario.load(scenario.check()).check() == scenario.check()


def test_a_scenario_is_loaded_from_a_text_a_dict_and_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TEXT)
    loaded = [Scenario.load(source) for source in (TEXT, DICT, path, str(path))]
    assert {s.check() for s in loaded} == {loaded[0].check()}
    assert loaded[0].title == "two hosts" and loaded[0].seed == 7 and loaded[0].duration_s == 2.0
    assert loaded[0].parameters == {"duration": "2 s", "tcp": "cubic"}


def test_a_loaded_scenario_is_taken_as_it_is() -> None:
    scenario = Scenario.load(TEXT)
    assert Scenario.load(scenario) is scenario


def test_texts_with_quotes_survive_in_a_dict() -> None:
    title = 'a "b" \\ c é 卫星'
    assert Scenario.load({**DICT, "title": title}).title == title
    with pytest.raises(ScenarioError, match="it holds a control character"):
        Scenario.load({**DICT, "title": "a\tb\x7f"})


def test_trace_files_are_beside_the_scenario(tmp_path: Path) -> None:
    text = TEXT.replace('rate = "10 Mbit/s"', 'rate = "10 Mbit/s"\ncapacity = { file = "rates.csv" }')
    path = tmp_path / "traced.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match="No such file"):
        Scenario.load(path)
    (tmp_path / "rates.csv").write_text("time_s,rate_bps\n0,1000000\n1,2000000\n")
    traced = Scenario.load(path)
    slow = bentpipe.run(traced).flows["file"].finished_s
    fast = bentpipe.run(TEXT).flows["file"].finished_s
    assert slow is not None and fast is not None and slow > fast
    swept = bentpipe.sweep(traced, {"tcp": ["cubic"]}, seeds=1, measure="finished")
    assert swept["finished_s"] == [slow]


def test_other_values_make_another_scenario_and_leave_the_first_one(small: Scenario) -> None:
    bbr = small.with_(loss=1e-3, tcp="bbr")
    assert (bbr.parameters["loss"], bbr.parameters["tcp"], bbr.parameters["flows"]) == (1e-3, "bbr", 5)
    assert small.parameters["tcp"] == "newreno"
    assert bbr.with_(tcp="cubic").parameters["tcp"] == "cubic"


@pytest.mark.parametrize(
    ("value", "read"), [(1e-5, 1e-5), (0.0001, 1e-4), (0, 0.0), ("1e-3", 1e-3), (1, 1.0), (0.25, 0.25)]
)
def test_a_number_is_read_as_it_was_given(small: Scenario, value: Any, read: float) -> None:
    assert small.with_(loss=value).parameters["loss"] == read


def test_scenarios_with_equal_parts_are_equal(small: Scenario) -> None:
    again = Scenario.load("sharing").with_(flows=5, duration="5 s").with_(duration="5 s")
    assert again != small.with_(flows=6) and hash(small) == hash(pickle.loads(pickle.dumps(small)))
    assert pickle.loads(pickle.dumps(small)) == small


def test_a_wrong_value_is_shown_where_it_was_given(small: Scenario) -> None:
    with pytest.raises(ScenarioError) as caught:
        small.with_(loss="lots")
    error = caught.value
    assert error.place.name == "with_" and error.place.text == "loss=lots" and error.place.column == 6
    assert "--set" not in str(error) and "^^^^" in str(error)
    assert isinstance(error, ValueError) and isinstance(error, bentpipe.Error)


def test_an_unknown_parameter_names_the_known_ones(small: Scenario) -> None:
    with pytest.raises(ScenarioError, match="los") as caught:
        small.with_(los=1e-3)
    assert "did you mean `loss`?" in str(caught.value)


def test_an_error_in_a_text_has_its_line() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(TEXT.replace("50 ms", "50 parsecs"))
    place = caught.value.place
    assert (place.name, place.line, place.text) == ("<text>", 19, 'delay = "50 parsecs"')
    assert caught.value.message


def test_an_error_in_a_dict_shows_its_line_as_toml() -> None:
    wrong = {**DICT, "flows": [{**DICT["flows"][0], "to": "c"}]}
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(wrong)
    assert caught.value.place.text == 'to = "c"' and caught.value.place.name == "<dict>"


def test_an_error_survives_pickling() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(TEXT.replace("50 ms", "50 parsecs"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.place) == (str(caught.value), caught.value.place)


def test_a_missing_file_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Scenario.load(tmp_path / "none.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"title = '\xff'\n")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        Scenario.load(tmp_path / "x.toml")


def test_an_unknown_name_is_answered_with_a_similar_one() -> None:
    with pytest.raises(InputError, match="did you mean `sharing`"):
        Scenario.load("sharin")


@pytest.mark.parametrize("source", [7, None, b"x = 1", ["demo"]])
def test_what_is_no_scenario_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="is no scenario"):
        Scenario.load(source)


@pytest.mark.parametrize("value", [None, [1], float("nan"), float("inf"), 1j])
def test_what_is_no_value_is_refused(small: Scenario, value: Any) -> None:
    with pytest.raises(InputError):
        small.with_(loss=value)
