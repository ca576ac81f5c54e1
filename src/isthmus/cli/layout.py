"""A table that fits its terminal, without a word that is broken or lost.

Columns get the width of their longest word first, then what is left by what they lack. A path or an address that is
longer than its share counts as several words, which end where it has a `/`, a `.` or another sign. Where not even the
words have room beside each other, each row becomes a record: its first cell, and below it the others with their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_INDENT: Final = 2
_ENDLESS: Final = 1 << 20
_SHORT: Final = 24
"""Words up to this length are never broken."""


def show_table(console: Console, table: Table, *, indent: int = _INDENT) -> None:
    """Print it, `indent` columns from the left."""
    content = fit_table(console, table, console.width - indent)
    console.print(Padding(content, (0, 0, 0, indent), expand=False) if indent else content)


def fit_table(console: Console, table: Table, room: int) -> RenderableType:
    """The table itself, with the widths that its columns are to have, or records in its place."""
    longest = max(room // max(len(table.columns), 2), _SHORT)
    widths = share([_measure(console, column, longest) for column in table.columns], room - _gaps(table))
    if widths is None:
        return Group(*_records(console, table, room))
    for column, width in zip(table.columns, widths, strict=True):
        column.width, column.max_width = width, None
        column.header = fold_words(column.header, width)
        column._cells[:] = [fold_words(cell, width) for cell in column.cells]  # rich has no other way to change them
    return table


def share(needs: Sequence[tuple[int, int]], room: int) -> list[int] | None:
    """How wide each column becomes, of those that need at least so much and would like so much; `None`: no room."""
    widths = [least for least, _ in needs]
    left = room - sum(widths)
    if left < 0:
        return None
    lacking = [liked - least for least, liked in needs]
    # Whoever lacks little gets all of it: a short column that wraps looks worse than a long one that wraps once more.
    for place, index in enumerate(order := sorted(range(len(needs)), key=lacking.__getitem__)):
        given = min(lacking[index], left // (len(order) - place))
        widths[index] += given
        left -= given
    return widths


def fold_words(cell: Any, width: int) -> Any:
    """The same, with words that are too long for it broken where they have a sign to break at."""
    match cell:
        case Text() if not cell.no_wrap:
            places = [place for found in _WORD.finditer(cell.plain) for place in _breaks(found, width)]
            return Text("\n").join(cell.divide(places)) if places else cell
        case Group():
            return Group(*(fold_words(each, width) for each in cell.renderables))
        case _:
            return cell


_WORD: Final = re.compile(r"\S+")
_STRONG: Final = re.compile(r"[^/?&=,;:.]*[/?&=,;:.]+|[^/?&=,;:.]+")
_WEAK: Final = re.compile(r"[^_-]*[_-]+|[^_-]+")


def _breaks(word: re.Match[str], width: int) -> Iterator[int]:
    """Where to break it: as few lines as can be, behind a `/` or a `.` sooner than within a name."""
    if cell_len(word[0]) <= width:
        return
    at, taken = word.start(), 0
    for piece in _pieces(word[0], width):
        if taken and taken + cell_len(piece) > width:
            yield at
            taken = 0
        at += len(piece)
        taken += cell_len(piece)


def _pieces(word: str, width: int) -> Iterator[str]:
    for piece in _STRONG.findall(word):
        if cell_len(piece) <= width:
            yield piece
        else:
            yield from _WEAK.findall(piece)


def _measure(console: Console, column: Column, longest: int) -> tuple[int, int]:
    """What a column needs, and what it would like. No word counts for more than `longest`."""
    found = [_need(console, cell, longest) for cell in (column.header, *column.cells)]
    least, liked = (max(each) for each in zip(*found, strict=True))
    least = max(least, column.min_width or 0)
    if column.no_wrap:
        least = max(liked, least)
    if column.width is not None:
        least = liked = max(column.width, least)
    wished = liked if column.max_width is None else min(liked, column.max_width)
    return least, max(wished, least)


def _need(console: Console, cell: RenderableType, longest: int) -> tuple[int, int]:
    least, liked = Measurement.get(console, console.options.update_width(_ENDLESS), cell)
    return (liked, liked) if isinstance(cell, Text) and cell.no_wrap else (min(least, longest), liked)


def _gaps(table: Table) -> int:
    """What stands between the columns."""
    _, right, _, left = table.padding
    between = len(table.columns) - 1
    return (right + left) * (between + table.pad_edge) + (between if table.box else 0)


def _records(console: Console, table: Table, room: int) -> Iterator[RenderableType]:
    if isinstance(table.columns[0].header, Text) and _filled(table.columns[0].header):
        yield Text(table.columns[0].header.plain, "dim")
    for index, row in enumerate(zip(*(list(column.cells) for column in table.columns), strict=True)):
        if not any(map(_filled, row)):
            continue  # a row that keeps others apart
        if index:
            yield Text()
        yield fold_words(row[0], room)
        facts = Table.grid(padding=(0, 2, 0, 0))
        facts.add_column(style="dim")
        facts.add_column()
        for column, cell in zip(table.columns[1:], row[1:], strict=True):
            if _filled(cell):
                facts.add_row(column.header, cell)
        if facts.row_count:
            yield Padding(fit_table(console, facts, room - 2), (0, 0, 0, 2), expand=False)


def _filled(cell: Any) -> bool:
    match cell:
        case Text():
            return bool(cell.plain.strip())
        case str():
            return bool(cell.strip())
        case _:
            return True
