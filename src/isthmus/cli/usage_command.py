"""`isthmus usage`: what was used and what it cost, from the store itself."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer
from rich.console import Group
from rich.text import Text

from isthmus.access.report import MOST_ROWS, Question, as_csv, read_question, row_of, total_of
from isthmus.cli.help_view import OUTPUT, examples
from isthmus.cli.layout import show_table
from isthmus.cli.store_commands import with_store
from isthmus.cli.store_options import ConfigOption, StoreOption
from isthmus.cli.terminal import clean, lined_table, open_console
from isthmus.errors import ConfigError
from isthmus.ports.spending import NANO, Use


@examples("isthmus usage", "isthmus usage --since 7d --by team,model", "isthmus usage --since 2026-11-01 --csv")
def usage(
    config: ConfigOption = None,
    store: StoreOption = None,
    since: Annotated[str, typer.Option(help="First day: `2026-11-01`, or so many days ago (`30d`).")] = "29d",
    until: Annotated[str, typer.Option(help="Last day; today, if none is named.")] = "",
    by: Annotated[
        str, typer.Option(help="What sums are told apart by: `day,owner,key,team,provider,model`.")
    ] = "day,key,provider,model",
    key: Annotated[str, typer.Option(help="Of this key alone, by its id.")] = "",
    team: Annotated[str, typer.Option(help="Of this team alone.")] = "",
    as_table: Annotated[bool, typer.Option("--csv", help="As CSV, with a head.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Show what was used and what it cost, by day, key and model. A gateway that runs writes it down each second."""
    if as_table and as_json:
        raise ConfigError("choose one of `--csv` and `--json`")
    asked = {"since": since, "until": until, "by": by, "key": key, "team": team}
    question = read_question(asked, time.time())
    found = with_store(config, store, lambda opened: opened.uses(**question.asked(), most=MOST_ROWS))
    if as_table:
        typer.echo(as_csv(found, question.by), nl=False)
    elif as_json:
        import msgspec

        for use in found:
            typer.echo(msgspec.json.encode(row_of(use, question.by)).decode())
    elif found:
        _show(found, question)
    else:
        typer.echo(f"nothing was used from {question.since} to {question.until}")


def _show(found: list[Use], question: Question) -> None:
    """A line for each sum; on a terminal that is too narrow for it, what it is of stands below each other."""
    console = open_console()
    lines = _lines(found, question)
    if not console.is_terminal or max(map(len, lines)) <= console.width:
        for line in lines:
            typer.echo(line.rstrip())
        return
    table = lined_table(", ".join(question.by), *_HEAD)
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for use in found:
        names = [Text(clean(getattr(use, name) or "-")) for name in question.by]
        table.add_row(Group(*names), *_figures(use))
    table.add_row("total", *_figures(total_of(found)))
    show_table(console, table, indent=0)


def _lines(found: list[Use], question: Question) -> list[str]:
    head = [*question.by, *_HEAD]
    rows = [[*(getattr(use, name) or "-" for name in question.by), *_figures(use)] for use in found]
    rows.append([*("total" if index == 0 else "" for index in range(len(question.by))), *_figures(total_of(found))])
    wide = [max(len(row[index]) for row in [head, *rows]) for index in range(len(head))]
    left = len(question.by)
    return ["  ".join(_aligned(row, wide, left)) for row in [head, *rows]]


_HEAD: Final = ("requests", "input", "cached", "output", "dollars")


def _aligned(row: list[str], wide: list[int], left: int) -> list[str]:
    """Words to the left, figures to the right."""
    cells = enumerate(zip(row, wide, strict=True))
    return [cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in cells]


def _figures(use: Use) -> list[str]:
    money = f"{use.nanos / NANO:,.4f}" + (" +?" if use.unpriced else "")
    return [*(f"{each:,}" for each in (use.requests, use.input_tokens, use.cached_tokens, use.output_tokens)), money]
