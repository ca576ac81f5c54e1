"""What may be said of a key at a terminal, once for every command that makes or changes one.

In: options. Out: `Wishes`. `@wishing` gives a command these options beside its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

import typer

from isthmus.access.wishes import Wishes, read_wishes
from isthmus.errors import ConfigError
from isthmus.values.quantities import parse_duration

SCOPE: Final = "What it opens"
LIMITS: Final = "How much it may use"

Wished = Callable[..., Wishes]
"""What the options ask for, together with what is named besides."""

_ALL: Final = "all"
_NONE: Final = "none"
_NEVER: Final = "never"
_LIMIT: Final = "0: no limit of its own."
_MONEY: Final = "US dollars; 0: no limit of its own."

F = TypeVar("F", bound=Callable[..., Any])


def _option(annotation: Any, panel: str, help: str, *names: str, **more: Any) -> Any:
    return Annotated[annotation, typer.Option(*names, help=help, rich_help_panel=panel, **more)]


_OPTIONS: Final[dict[str, Any]] = {
    "team": _option(str | None, SCOPE, "Team whose responses, limits and budget it shares."),
    "models": _option(
        list[str] | None, SCOPE, "Models it may use, as `deepseek/*,fast`; `all` for any. Repeatable.", metavar="NAMES"
    ),
    "endpoints": _option(
        list[str] | None,
        SCOPE,
        "Endpoints it opens, as `responses,chat,models`; `all` for any. Repeatable.",
        metavar="NAMES",
    ),
    "tools": _option(
        list[str] | None,
        SCOPE,
        "Tools that run here, as `web_search,mcp:docs`; `all`, or `none`. Repeatable.",
        metavar="NAMES",
    ),
    "admin": _option(bool | None, SCOPE, "Whether it opens what operators do.", "--admin/--no-admin"),
    "expires": _option(str | None, SCOPE, "When it ends: `30d`, `12h`, `2027-01-31`, or `never`.", metavar="WHEN"),
    "requests_per_minute": _option(int | None, LIMITS, _LIMIT, min=0, metavar="N"),
    "tokens_per_minute": _option(int | None, LIMITS, _LIMIT, min=0, metavar="N"),
    "concurrent_requests": _option(int | None, LIMITS, _LIMIT, min=0, metavar="N"),
    "concurrent_streams": _option(int | None, LIMITS, _LIMIT, min=0, metavar="N"),
    "daily_budget": _option(float | None, LIMITS, _MONEY, min=0, metavar="N"),
    "monthly_budget": _option(float | None, LIMITS, _MONEY, min=0, metavar="N"),
    "metadata": _option(list[str] | None, SCOPE, "`NAME=VALUE`, for your own lists. Repeatable.", metavar="NAME=VALUE"),
}


def wishing(command: F) -> F:
    """The command, with these options; it gets what they ask for as `wishes`."""
    own = inspect.signature(command, eval_str=True)
    kept = [each for each in own.parameters.values() if each.name != "wishes"]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [inspect.Parameter(name, kind, default=None, annotation=said) for name, said in _OPTIONS.items()]

    @functools.wraps(command)
    def asked(**given: Any) -> Any:
        said = _read({name: given.pop(name) for name in _OPTIONS})
        return command(**given, wishes=lambda **more: _wish({**said, **more}))

    every = [*kept[:1], *added, *kept[1:]]
    asked.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
    asked.__annotations__ = {each.name: each.annotation for each in every} | {"return": None}
    return asked  # type: ignore[return-value]


def read_duration(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        more = ", a day such as `2027-01-31`, or `never`" if option == "--expires" else ""
        raise ConfigError(f"`{option} {text}` must be {error}{more}") from error


def _read(said: dict[str, Any]) -> dict[str, Any]:
    """Each option in the words of a wish."""
    expires = said.pop("expires")
    return {
        **said,
        "models": _listed(said["models"]),
        "endpoints": _listed(said["endpoints"]),
        "tools": _tools(said["tools"]),
        "metadata": _pairs(said["metadata"]),
        **_expiry(expires),
    }


def _wish(fields: dict[str, Any]) -> Wishes:
    return read_wishes({name: _meant(value) for name, value in fields.items() if value is not None})


def _meant(value: Any) -> Any:
    return None if value is _ANY else value


_ANY: Final = object()
"""Said in so many words: not narrowed, or without an end."""


def _listed(given: list[str] | None) -> Any:
    if given is None:
        return None
    words = [word.strip() for each in given for word in each.split(",") if word.strip()]
    return _ANY if words == [_ALL] else words


def _tools(given: list[str] | None) -> Any:
    words = _listed(given)
    return [] if words == [_NONE] else words


def _pairs(given: list[str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    if unfit := next((each for each in given if not each.partition("=")[1]), None):
        raise ConfigError(f"`--metadata {unfit}` must be `NAME=VALUE`")
    return dict(each.split("=", 1) for each in given)


def _expiry(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    if given == _NEVER:
        return {"expires_at": _ANY}
    try:
        day = datetime.fromisoformat(given)
    except ValueError:
        return {"expires_in": read_duration("--expires", given)}
    return {"expires_at": (day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp()}
