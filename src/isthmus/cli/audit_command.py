"""`isthmus audit`: what those did who look after the gateway."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich.console import Group
from rich.text import Text

from isthmus.access.told import tell_deed
from isthmus.cli.help_view import OUTPUT, examples
from isthmus.cli.key_store import with_keeper
from isthmus.cli.layout import show_table
from isthmus.cli.store_options import ConfigOption, StoreOption
from isthmus.cli.terminal import clean, lined_table, open_console, print_json
from isthmus.ports.keys import Deed

_SPACIOUS: Final = 170


@examples("isthmus audit", "isthmus audit --most 10 --json")
def audit(
    config: ConfigOption = None,
    store: StoreOption = None,
    most: Annotated[int, typer.Option(min=1, max=100_000, help="How many, at the most.")] = 50,
    before: Annotated[int | None, typer.Option(min=1, help="Only those before this number, to read on.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Show what operators did, the latest first: keys that were made, changed and revoked, traces that were kept whole,
    requests that were sent again."""
    found = with_keeper(config, store, lambda _, opened: opened.deeds(most=most, before=before))
    if as_json:
        for deed in found:
            print_json(tell_deed(deed), pretty=False)
    elif found:
        _show(found)
    else:
        typer.echo("nothing was done yet" if before is None else "nothing before that", err=True)


def _show(deeds: list[Deed]) -> None:
    console = open_console()
    wide = console.width >= _SPACIOUS
    table = lined_table(*(("#", "UTC", "who", "did", "to", "details") if wide else ("#", "UTC, who", "did, to")))
    for deed in deeds:
        when = datetime.fromtimestamp(deed.at, UTC).strftime("%m-%d %H:%M:%S")
        details = ", ".join(f"{name}={value}" for name, value in deed.details.items())
        cells = (str(deed.number), when, deed.actor, deed.action, deed.target or "-", details or "-")
        number, moment, who, did, to, more = (Text(clean(cell)) for cell in cells)
        number.no_wrap = moment.no_wrap = True
        if wide:
            table.add_row(number, moment, who, did, to, more)
        else:
            parts = [Text.assemble(did, "  ", to), *([more] if details else [])]
            table.add_row(number, Group(moment, who), Group(*parts))
    show_table(console, table, indent=0)
