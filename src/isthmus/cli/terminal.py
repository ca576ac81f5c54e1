"""How the commands look: one console, one set of signs for the four fates, numbers that people can read.

Output is for pipes (stdout), talk is for people (stderr). Colour comes only with a terminal, and never alone: every
fate has a sign and a word. Lines are broken for a terminal, between words; what goes into a pipe is not: a row stays a
row for whoever reads it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import typer
from rich.box import Box
from rich.cells import chop_cells
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from isthmus.bridge.diagnostics import Action
from isthmus.errors import IsthmusError

FATES: Final[Mapping[Action, tuple[str, str]]] = {
    "supported": ("✓", "green"),
    "degraded": ("~", "yellow"),
    "ignored": ("–", "magenta"),
    "rejected": ("✗", "bold red"),
}
"""The sign and the colour of each fate."""

WIDE: Final = 110
"""From this width on a table may have a column of its own for every fact."""

READABLE: Final = 120
"""Text that is broken for people has no longer lines, however much room there is."""

_TRY: Final = "`isthmus providers test {}` tries it, and says what to do"
_NEXT: Final[Mapping[str, tuple[str, str]]] = {
    "upstream_unauthorized": (_TRY, "its operator can put that right"),
    "upstream_unreachable": (_TRY, "is it running there (`isthmus serve`), and is the address right?"),
    "model_not_found": ("`isthmus models {}` lists what it has", "`isthmus models --gateway URL` lists what it has"),
}
"""Code → what to do next: about a provider, and about a gateway elsewhere."""

_PIPED: Final = 1000
"""Columns where nobody says how many there are: in a pipe. Nothing has to be broken there."""

# A thin line under the head and nothing else: words need the room more than frames do.
_LINED: Final = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")


def open_console(*, stderr: bool = False) -> Console:
    """As wide as the terminal, or as `COLUMNS` says. `NO_COLOR` takes bold and dim away, too."""
    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(stderr=stderr, highlight=False, color_system=None if plain else "auto")
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = _PIPED
    return console


def say(told: str | Text, *, stderr: bool = False) -> None:
    """Our own sentence: broken between words on a terminal, whole in a pipe."""
    console = open_console(stderr=stderr)
    put(console, words(told) if isinstance(told, str) else told)


def put(console: Console, told: str | Text) -> None:
    """The same on a console; text that is not ours must not be read as markup: hand it over as `Text`."""
    console.print(told, soft_wrap=not console.is_terminal)


def print_json(value: Any, *, pretty: bool = True) -> None:
    """JSON is UTF-8 wherever it goes, whatever the terminal speaks."""
    encoded = msgspec.json.encode(value)
    typer.echo(msgspec.json.format(encoded, indent=2) if pretty else encoded)


def say_error(message: str) -> None:
    say(Text.assemble(("error:", "bold red"), " ", clean(message)), stderr=True)


def say_failure(error: IsthmusError) -> None:
    """What failed; where its words are a provider's or a gateway's, also where to look next."""
    say_error(error.message)
    provider, gateway = _NEXT.get(error.code, ("", ""))
    if provider and error.message.startswith(f"provider `{error.provider}`"):
        say(f"→ {provider.format(error.provider)}", stderr=True)
    elif gateway and error.message.startswith("the gateway "):
        say(f"→ {gateway}", stderr=True)


def fate(action: Action) -> Text:
    sign, style = FATES[action]
    return Text(f"{sign} {action}", style=style, no_wrap=True)


def counts(actions: Iterable[str]) -> Text:
    """`✓ 14 supported   ~ 6 degraded`: what there is, in the order of the fates."""
    seen = Counter(actions)
    parts = [Text(f"{sign} {seen[action]} {action}", style) for action, (sign, style) in FATES.items() if seen[action]]
    return Text("   ").join(parts)


def heading(console: Console, title: str, note: str = "") -> None:
    console.print()
    console.print(Text.assemble((title, "bold"), words(f"   {note}" if note else "", "dim")))


def lined_table(*columns: str) -> Table:
    """A table without frames; columns are named plainly and fold where they must."""
    table = Table(
        box=_LINED, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", border_style="dim"
    )
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    return table


def facts_table() -> Table:
    """Name and value, side by side."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def indented(content: Any) -> Padding:
    return Padding(content, (0, 0, 0, 2), expand=False)


def words(text: str, style: str = "") -> Text:
    """Our own sentences: what stands between backticks is code, and looks like it."""
    shown = Text(style=style)
    for index, piece in enumerate(clean(text).split("`")):
        shown.append(piece, "cyan" if index % 2 else "")
    return shown


def clean(text: str) -> str:
    """Text from outside, without the characters that a terminal would obey."""
    return text.translate(_CONTROLS)


_CONTROLS: Final = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "�")


def shorten(text: str, limit: int) -> str:
    """One line, cut in the end with a sign that it was cut."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= limit else f"{line[: max(limit - 1, 1)].rstrip()}…"


def preview(text: Text, width: int) -> Text:
    """The beginning of a line that goes on: as many whole words as have room, and a sign that there are more."""
    if text.cell_len <= width:
        return text
    end = len(chop_cells(text.plain, max(width - 2, 1))[0])
    word = text.plain.rfind(" ", 0, end + 1)
    shown = text[: word if word > end // 2 else end]
    shown.rstrip()
    return shown.append(" …")


def plain_json(value: Any) -> str:
    """JSON on one line, with spaces to break it at."""
    return value if isinstance(value, str) else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def size(count: int) -> str:
    """Bytes for people: `812 B`, `54.2 kB`."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def number(value: int) -> str:
    return f"{value:,}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
