"""A small frozen table: named columns of equal length, printed and written the same every time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

Column = NDArray[Any] | tuple[str, ...]

_SHOWN = 20  # rows printed; a longer table shows its first and last ten

# What spreadsheets read as the beginning of a formula, unless the whole field is a number.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Columns by name: numbers and truth values as arrays, text as tuples of ``str``.

    Parameters
    ----------
    data
        Name of each column -> n numbers, truth values or strings.
    caption
        What the table shows, in one line.
    note
        What its reader must know, printed below it and kept in the files that can hold it.

    Equal tables write equal bytes. Numbers are written with the fewest digits that read back
    as the same double.

    Examples
    --------
    >>> print(Table({"sex": ["F", "M"], "people": np.array([1203.0, 998.5])}, note="noise only"))
    sex  people
    ---  ------
    F      1203
    M     998.5
    noise only
    """

    data: Mapping[str, Column]
    caption: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.data:
            raise InvalidInput("a table needs at least one column.")
        columns = {
            _text("a column's name", name): _column(name, v) for name, v in self.data.items()
        }
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInput(f"the columns of a table must be equally long, got {lengths}.")
        _text("the caption", self.caption)
        _text("the note", self.note)
        object.__setattr__(self, "data", MappingProxyType(columns))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.data)

    def __len__(self) -> int:
        return len(next(iter(self.data.values())))

    def __getitem__(self, name: str) -> Column:
        if name not in self.data:
            raise InvalidInput(f"no column is called {name!r}: there are {', '.join(self.data)}.")
        return self.data[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dict of Python values."""
        for values in zip(*map(_values, self.data.values()), strict=True):
            yield dict(zip(self.data, values, strict=True))

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.data)})"

    def __str__(self) -> str:
        shown = self._shown()
        cells = [[_printable(name), *shown[name]] for name in self.data]
        widths = [max(map(len, column)) for column in cells]
        numeric = [_is_numeric(column) for column in self.data.values()]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        total = [f"{len(self):,} rows"] if len(self) > _SHOWN else []
        return "\n".join([*_given(self.caption), *lines, *total, *_given(self.note)])

    def _repr_html_(self) -> str:
        shown, names = self._shown(), list(self.data)
        style = ['style="text-align:right"' if _is_numeric(self.data[n]) else "" for n in names]
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
        body = "".join(
            "<tr>"
            + "".join(f"<td {s}>{escape(v)}</td>" for s, v in zip(style, row, strict=True))
            + "</tr>"
            for row in zip(*(shown[name] for name in names), strict=True)
        )
        caption = " ".join([*_given(self.caption), f"({len(self):,} rows)", *_given(self.note)])
        return (
            f"<table><caption>{escape(caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def __rich__(self) -> Any:
        from ..report.terminal import table

        return table(self)

    def _shown(self) -> dict[str, list[str]]:
        """Return the cells to print: all rows, or the first and the last with dots between."""
        if len(self) <= _SHOWN:
            return {name: list(map(_short, _values(c))) for name, c in self.data.items()}
        half = _SHOWN // 2
        return {
            name: [*map(_short, _values(c[:half])), "...", *map(_short, _values(c[-half:]))]
            for name, c in self.data.items()
        }

    def to_csv(self, path: str | Path) -> None:
        r"""Write UTF-8 text with one header line, lines ending in ``\n``, quoted as RFC 4180 says.

        A text that a spreadsheet would run as a formula (it begins with ``= + - @``, a tab or
        a carriage return, and is no number) gets an apostrophe in front; ``to_parquet`` keeps
        every text as it is.
        """
        lines = [",".join(map(_quoted, self.data))]
        columns = [map(_field, _values(column)) for column in self.data.values()]
        lines += map(",".join, zip(*columns, strict=True))
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")

    def to_parquet(self, path: str | Path) -> None:
        """Write one Parquet file; caption and note are in the schema's metadata."""
        import pyarrow.parquet as pq

        with open(path, "wb") as file:  # pyarrow takes no name that is not UTF-8
            pq.write_table(self.to_arrow(), file)

    def to_arrow(self) -> pa.Table:
        """Return a ``pyarrow.Table``; caption and note are in its schema's metadata."""
        import pyarrow as pa

        arrays = {
            name: pa.array(column, pa.string() if isinstance(column, tuple) else None)
            for name, column in self.data.items()
        }
        return pa.table(arrays, metadata={"caption": self.caption, "note": self.note})

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``; caption and note are in its ``attrs``."""
        try:
            import pandas as pd
        except ImportError:
            raise ModuleNotFoundError(
                "to_pandas needs pandas, which is not installed: install pandas, or use to_arrow()."
            ) from None
        frame = pd.DataFrame({name: _values(column) for name, column in self.data.items()})
        frame.attrs.update(caption=self.caption, note=self.note)
        return frame


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, got {type(value).__name__}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} must be valid Unicode: it holds half a character.") from None
    return value


def _column(name: str, values: Any) -> Column:
    """Return a column as it is kept: a tuple of str, or a read-only array of numbers."""
    if not isinstance(values, np.ndarray):
        values = list(values)
        if all(isinstance(v, str) for v in values):
            return tuple(str(_text(f"column {name!r}", v)) for v in values)
    array = np.array(values)
    if array.ndim == 1 and array.dtype.kind in "UT":
        return tuple(str(_text(f"column {name!r}", str(v))) for v in array)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"column {name!r} must be one axis of text, truth values or numbers of at most 64 "
            f"bits, got {array.dtype} of shape {array.shape}."
        )
    array.setflags(write=False)
    return array


def _values(column: Column) -> list[Any]:
    return list(column) if isinstance(column, tuple) else column.tolist()


def _is_numeric(column: Column) -> bool:
    return not isinstance(column, tuple) and column.dtype.kind in "iuf"


def _given(text: str) -> list[str]:
    return [text] if text else []


def _short(value: Any) -> str:
    """Return a value for the screen: six digits or all whole ones of a float, text on one line."""
    if isinstance(value, float):
        if 1e5 <= abs(value) < 1e15:
            return f"{value:,.0f}"  # counts of people are not read in powers of ten
        return str(int(value)) if value.is_integer() and abs(value) < 1e5 else f"{value:.6g}"
    return _printable(value) if isinstance(value, str) else str(value)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _field(value: Any) -> str:
    """Return a value for CSV; ``repr`` of a double is the shortest text that reads back as it."""
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = "'" + text
    if not text or text != text.strip() or any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
