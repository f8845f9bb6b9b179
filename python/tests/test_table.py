"""Tables, and the libraries that take them over."""

from __future__ import annotations

import csv
import gc
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import InputError, Scenario, Table

pa: Any = pytest.importorskip("pyarrow")


@pytest.fixture
def table(small: Scenario) -> Table:
    return bentpipe.run(small, record=True).series


def test_the_series_are_those_of_the_file(small: Scenario, tmp_path: Path, table: Table) -> None:
    bentpipe.run(small).save(tmp_path)
    with (tmp_path / "series.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(table) > 1000 and table.column_names == list(rows[0])
    for name in table.column_names:
        text = name in ("kind", "name")
        wanted = [row[name] if text else float(row[name]) if row[name] else None for row in rows]
        assert table[name] == wanted, name


def test_the_series_are_the_same_whether_recorded_at_once_or_later(small: Scenario, table: Table) -> None:
    assert bentpipe.run(small).series.to_dict() == table.to_dict()


def test_pyarrow_takes_it_over_without_a_copy(table: Table) -> None:
    first, second = pa.table(table), pa.table(table)
    assert first.column_names == table.column_names and len(first) == len(table)
    for name in table.column_names:
        pairs = zip(first[name].chunks, second[name].chunks)
        for a, b in pairs:
            same = [x is y is None or x.address == y.address for x, y in zip(a.buffers(), b.buffers())]
            assert all(same), f"{name} was copied"
        assert first[name].to_pylist() == table[name]


def test_what_was_taken_over_outlives_the_table(table: Table) -> None:
    wanted = table["time_s"]
    taken = pa.table(table)
    del table
    gc.collect()
    assert taken["time_s"].to_pylist() == wanted


def test_a_stream_that_nobody_reads_is_released(table: Table) -> None:
    for _ in range(1000):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()
    assert len(pa.table(table)) == len(table)


def test_the_schema_is_handed_over_alone(table: Table) -> None:
    schema = pa.schema(table)
    assert schema.field("goodput_bps").type == pa.float64() and schema.field("kind").type == pa.string()


def test_missing_values_are_null(table: Table) -> None:
    taken = pa.table(table)
    links = [kind == "link" for kind in table["kind"]]
    assert taken["goodput_bps"].is_null().to_pylist() == links


def test_polars_takes_it_over(table: Table) -> None:
    pl: Any = pytest.importorskip("polars")
    frame = pl.DataFrame(table)
    assert frame.columns == table.column_names and frame.height == len(table)
    assert table.to_polars()["cwnd_bytes"].to_list() == table["cwnd_bytes"]


def test_pandas_takes_it_over(table: Table) -> None:
    pd: Any = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == table.column_names
    assert frame["time_s"].tolist() == table["time_s"]


def test_duckdb_takes_it_over(table: Table) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    taken = pa.table(table)  # noqa: F841
    counted = duckdb.sql("select count(*) from taken where kind = 'flow'").fetchall()
    assert counted == [(table["kind"].count("flow"),)]


def test_a_library_that_is_not_installed_is_named(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="pip install polars"):
        table.to_polars()


def test_an_unknown_column_names_the_known_ones(table: Table) -> None:
    with pytest.raises(KeyError, match="time_s"):
        table["time"]


def test_a_notebook_shows_the_first_rows(small: Scenario) -> None:
    cells = bentpipe.sweep(small, {"tcp": ["cubic", "newreno"]}, seeds=2)
    shown = cells._repr_html_()
    assert shown.count("<tr>") == 3 and "<td>newreno</td>" in shown and "goodput_bps_low" in repr(cells)
