"""Options as data, for a command that does not wait for the library that reads all the others.

Two read the same table: `read_plainly` takes what is said in plain words, which is all that a start needs; whatever is
not plain (a wish for help, a slip, a value that is none) is for typer, which has the words for it: see `for_typer`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Option(NamedTuple):
    """Named as the parameter that it fills; a `bool` has a `--no-…` beside it."""

    kind: type[Path] | type[str] | type[int] | type[bool]
    help: str
    metavar: str | None = None


def taking(options: Mapping[str, Option], *examples: str) -> Callable[[F], F]:
    """A command that takes these, and how a person would call it."""

    def keep(function: F) -> F:
        function.options, function.examples = options, examples  # type: ignore[attr-defined]
        return function

    return keep


def read_plainly(options: Mapping[str, Option], words: Iterable[str]) -> dict[str, Any] | None:
    """The value of each option that is given; `None`: these words are not plain."""
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            return None
        said, equals, value = word[2:].partition("=")
        name = said.replace("-", "_")
        option = options.get(name)
        if option is not None and option.kind is not bool and said == _spoken(name):
            read = _value(option, value if equals else next(rest, ""))
            if read is None:
                return None
            found[name] = read
        elif (switch := _switch(options, said)) and not equals:
            found[switch] = said == _spoken(switch)
        else:
            return None
    return found


def _spoken(name: str) -> str:
    return name.replace("_", "-")


def _value(option: Option, said: str) -> Path | str | int | None:
    if not said or said.startswith("-"):  # it may be the next option
        return None
    if option.kind is int:
        return int(said) if said.isascii() and said.isdigit() else None
    return Path(said) if option.kind is Path else said


def _switch(options: Mapping[str, Option], said: str) -> str:
    name = said.removeprefix("no-").replace("-", "_")
    return name if name in options and options[name].kind is bool else ""


def for_typer(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with a signature in which typer finds the options of its table, if it has one."""
    options: Mapping[str, Option] | None = getattr(function, "options", None)
    if options is None:
        return function
    import inspect
    from typing import Annotated

    import typer

    @functools.wraps(function)
    def called(**given: Any) -> Any:
        return function(**given)

    parameters = []
    for name, option in options.items():
        spoken = _spoken(name)
        names = f"--{spoken}/--no-{spoken}" if option.kind is bool else f"--{spoken}"
        said = typer.Option(names, metavar=option.metavar, help=option.help)
        told = Annotated[option.kind | None, said]  # type: ignore[name-defined]  # made here, not written
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=told))
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called
