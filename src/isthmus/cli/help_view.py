"""The help of every command, drawn here: what it does, how it is called, examples, and options in groups.

In: a command, as typer made it. Out: lines that break between words and lose none, whatever the width. A flag is shown
as what is typed; only an option that wants a value shows one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from isthmus.cli.terminal import heading, indented, open_console, words

WHERE: Final = "Which store or gateway"
OUTPUT: Final = "Output"
"""Groups that many commands have."""

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "Done.",
    1: "It could not be done, and stderr says why and what to do; or what was checked (`config check`, "
    "`providers check`, `providers test`, `providers probe --compare`, `mcp list`, `doctor`) is not as it should be.",
    2: "The command was not understood: an option or an argument is wrong. Of `explain` and `trace replay`: the "
    "request would be refused.",
    3: "`store check` found damage, and left it.",
    130: "It was interrupted (Ctrl-C).",
}
"""`codex run` and `claude run` end with the code of the program that they start."""

_WIDEST: Final = 100
"""Longer lines are hard to read, however wide the terminal."""
_NAMES: Final = 30
"""Longer names have a line to themselves."""

F = TypeVar("F", bound=Callable[..., Any])


def examples(*lines: str) -> Callable[[F], F]:
    """How the command is called, as a person would: the help and the reference page show it."""

    def keep(function: F) -> F:
        function.examples = lines  # type: ignore[attr-defined]
        return function

    return keep


def examples_of(command: Any) -> tuple[str, ...]:
    return getattr(command.callback, "examples", ())


def value_of(parameter: Any) -> str:
    """What stands for a value, where the option does not say so itself: its name, in capitals."""
    return str(parameter.metavar or parameter.name.upper().replace("_", "-"))


def sections_of(parameters: Sequence[Any]) -> dict[str, list[Any]]:
    """Arguments first, then options by their groups, those of no group in the beginning."""
    shown = [each for each in parameters if not getattr(each, "hidden", False)]
    sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for each in shown:
        argument = each.param_type_name == "argument"
        sections.setdefault("Arguments" if argument else each.rich_help_panel or "Options", []).append(each)
    if all(each.name == "help" for each in sections["Options"]):
        sections["Options"] = sections.pop("Options")  # nothing of its own: last
    return {title: inside for title, inside in sections.items() if inside}


class HelpfulCommand(TyperCommand):
    """One command, with help of ours."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(argument_of(each) for each in arguments)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_help(self, ctx)


class HelpfulGroup(TyperGroup):
    """Commands with something in common, with help of ours."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Titles for commands that belong together; the rest stands below `Commands`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_help(self, ctx)


class Commands(typer.Typer):
    """`typer.Typer`, whose commands show this help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": HelpfulGroup, "rich_markup_mode": None, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        return super().command(name, **{"cls": HelpfulCommand, **options})


def show_help(command: Any, context: Any) -> None:
    console = open_console()
    console.width = min(console.width, _WIDEST)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    console.print(Text.assemble(("Usage: ", "dim"), (usage, "bold")))
    for paragraph in paragraphs(command.help or ""):
        console.print()
        console.print(words(paragraph))
    if shown := examples_of(command):
        heading(console, "Examples")
        for line in shown:
            console.print(indented(Text(line, "cyan")))
    for title, inside in _commands(command, context):
        heading(console, title)
        _show_rows(console, [(Text(each.name, "bold"), words(_first(each))) for each in inside])
    for title, inside in sections_of(command.get_params(context)).items():
        heading(console, title)
        _show_rows(console, [(_names(each), words(_about(each))) for each in inside])
    for paragraph in paragraphs(command.epilog or ""):
        console.print()
        console.print(words(paragraph))


def paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def argument_of(parameter: Any) -> str:
    """As it stands in a usage line: in brackets where it may be left out."""
    name = value_of(parameter).strip("[]")
    return name if parameter.required else f"[{name}]"


def _commands(command: Any, context: Any) -> Iterator[tuple[str, list[Any]]]:
    if not isinstance(command, TyperGroup):
        return
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    left = {name: each for name, each in found.items() if each is not None and not each.hidden}
    for title, names in getattr(command, "sections", {}).items():
        yield title, [left.pop(name) for name in names if name in left]
    if left:
        yield "Commands" if len(left) == len(found) else "More", list(left.values())


def _first(command: Any) -> str:
    return next(iter(paragraphs(command.help or "")), "")


def _names(parameter: Any) -> Text:
    if parameter.param_type_name == "argument":
        return Text(value_of(parameter).strip("[]"), "bold")
    ways = sorted(parameter.opts, key=lambda way: way.startswith("--"))
    names = Text(", ".join([*ways, *parameter.secondary_opts]), "bold")
    return names if parameter.is_flag else Text.assemble(names, " ", (value_of(parameter), "cyan"))


def _about(parameter: Any) -> str:
    told = (parameter.help or "").strip()
    default = default_of(parameter)
    if default:
        told += f" Default: `{default}`."
    if parameter.required and parameter.param_type_name == "option":
        told += " It must be given."
    return told.strip()


def default_of(parameter: Any) -> str:
    """What counts where nothing is said, if that is worth a word."""
    value = parameter.default
    if parameter.param_type_name == "argument" or parameter.is_flag or callable(value):
        return ""
    return "" if value in (None, "", False, [], ()) else str(value)


def _show_rows(console: Console, rows: Sequence[tuple[Text, Text]]) -> None:
    """Two columns; a name that is too long for the first stands above its text."""
    width = max((len(name) for name, _ in rows if len(name) <= _NAMES), default=_NAMES)
    for name, text in rows:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, width=width)
        table.add_column()
        if len(name) > _NAMES:
            console.print(indented(name))
            name = Text()
        table.add_row(name, text)
        console.print(indented(table))
