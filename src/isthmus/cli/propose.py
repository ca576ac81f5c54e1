"""What a setup is about to do, shown before it is done: the differences, the question, the answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from rich.text import Text

from isthmus.cli.changes import Change, carry_out, diff_lines
from isthmus.cli.terminal import open_console, put, words


def propose(changes: Sequence[Change], *, dry_run: bool, yes: bool) -> bool:
    """Show the changes, ask, write them. `False`: they were only to be shown."""
    show_changes(changes)
    if dry_run:
        return False
    if not yes:
        _ask()
    carry_out(changes)
    return True


def say(sentence: str, style: str = "") -> None:
    """A command that stands by itself, set in from the margin, stays on one line: it is copied."""
    console = open_console(stderr=True)
    if sentence.startswith(" "):
        console.print(words(sentence, style), soft_wrap=True)
    else:
        put(console, words(sentence, style))


def show_changes(changes: Sequence[Change]) -> None:
    console = open_console()
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for change in changes:
        if change.note:
            put(console, words(_summary(change)))
            continue
        for line in diff_lines(change):
            console.print(Text(line, styles.get(line[:1], "")), soft_wrap=True)


def _summary(change: Change) -> str:
    if change.after is None:
        return f"remove `{change.path}`"
    return f"{'write' if change.before is None else 'update'} `{change.path}` ({change.note})"


def _ask() -> None:
    """Enter is yes; `n`, the end of a pipe and ^C are no."""
    try:
        if typer.confirm("Write this?", default=True, err=True):
            return
        answer = "Nothing was written."
    except typer.Abort:
        answer = "Nothing was written; use `--yes` where nobody can answer."
    if not sys.stdin.isatty():
        say("")  # nobody has pressed Enter behind the question
    say(answer)
    raise typer.Exit(1)
