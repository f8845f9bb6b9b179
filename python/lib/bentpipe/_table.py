"""Tables that other libraries take over."""

from __future__ import annotations

from typing import Any

from . import _native
from ._errors import InputError


class Table:
    """Columns of equal length.

    pyarrow, polars, pandas and DuckDB take it over without a copy, by the Arrow PyCapsule interface:
    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)``.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self._native.column_names

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column as a list; ``None`` where there is no value."""
        column = self._native.column(name)
        if column is None:
            raise KeyError(f"no column `{name}`: there are {', '.join(self.column_names)}")
        return column

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns as lists."""
        return {name: self[name] for name in self.column_names}

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows as dicts."""
        names = self.column_names
        return [dict(zip(names, row)) for row in zip(*(self[name] for name in names))]

    def to_pandas(self) -> Any:
        """Returns the table as a data frame of pandas, which must be installed together with pyarrow."""
        return self._by("pyarrow").table(self).to_pandas()

    def to_polars(self) -> Any:
        """Returns the table as a data frame of polars, which must be installed."""
        return self._by("polars").DataFrame(self)

    @staticmethod
    def _by(library: str) -> Any:
        import importlib

        try:
            return importlib.import_module(library)
        except ImportError as missing:
            raise InputError(f"{library} is not installed: pip install {library}") from missing

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of the Arrow C interface."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns in the Arrow C interface."""
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<bentpipe.Table of {len(self)} rows: {', '.join(self.column_names)}>"

    def _repr_html_(self) -> str:
        import html

        shown = 20

        def cell(tag: str, value: object) -> str:
            return f"<{tag}>{html.escape('' if value is None else str(value))}</{tag}>"

        head = "".join(cell("th", name) for name in self.column_names)
        columns = [self[name][:shown] for name in self.column_names]
        body = "".join("<tr>" + "".join(cell("td", v) for v in row) + "</tr>" for row in zip(*columns))
        more = f"<p>the first {shown} of {len(self)} rows</p>" if len(self) > shown else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
