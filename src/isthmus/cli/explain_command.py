"""`isthmus explain`: what would become of a request, without sending it.

In: a request (a file, or `-` for stdin) and a provider, or all of them. Out: on stdout the decisions, the tools, the
contract, the exact upstream body if it is asked for, and in the end what it comes to. Exit code 2 means that the
request is refused; 1 that it could not be explained.
An id in place of a file means a request that was made: what was decided then, and what was really sent.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from isthmus.bridge.limits import RequestLimits, take_limits
from isthmus.bridge.parse import decode_json
from isthmus.bridge.resolve import split_reference
from isthmus.cli.explain_choice import choice_named, explain_choice
from isthmus.cli.explain_compare import compare, show_comparison
from isthmus.cli.explain_hooks import explain_hooked
from isthmus.cli.explain_kept import Shown, explain_kept, is_id
from isthmus.cli.explain_plan import Asked, Explained, ask, choose_model, refusal_json
from isthmus.cli.explain_plan import explain as explain_request
from isthmus.cli.explain_view import show_explained
from isthmus.cli.foreseen import foresee
from isthmus.cli.heard import load_known, recall_lessons
from isthmus.cli.help_view import OUTPUT, examples
from isthmus.cli.kept_store import with_kept
from isthmus.cli.provider_folders import FolderFlag, provider_folders
from isthmus.cli.providers_view import list_json, show_list
from isthmus.cli.terminal import open_console, print_json, say_error
from isthmus.cli.trace_source import GatewayOption, KeyOption
from isthmus.config import read_config
from isthmus.config.known import all_names
from isthmus.config.schema import Config
from isthmus.errors import ConfigError, RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider, load_provider, provider_names

REFUSED = 2


@examples(
    "isthmus explain request.json --provider deepseek",
    "isthmus explain request.json --all",
    "isthmus explain last --body",
)
def explain(
    request: Annotated[
        str | None,
        typer.Argument(
            metavar="REQUEST",
            help="A JSON file, `-` for stdin, or the id of a request that was made: `resp_…`, `req_…`, `last`.",
        ),
    ] = None,
    provider: Annotated[str, typer.Option("--provider", "-p", help="The provider to plan for.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="Its model, or a name of `models.choices`.")] = "",
    everywhere: Annotated[bool, typer.Option("--all", help="Compare all providers, each with its model.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the providers.")] = False,
    chat: Annotated[bool, typer.Option("--chat", help="The request is a Chat Completions one.")] = False,
    messages: Annotated[bool, typer.Option("--messages", help="The request is one of Anthropic's Messages.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Reject what would be degraded or ignored.")] = False,
    body: Annotated[bool, typer.Option("--body", help="Show the upstream body, too.", rich_help_panel=OUTPUT)] = False,
    full: Annotated[bool, typer.Option("--full", help="The body, with nothing cut.", rich_help_panel=OUTPUT)] = False,
    body_only: Annotated[bool, typer.Option("--body-only", help="Print the upstream body and nothing else.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)] = False,
    folder: FolderFlag = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
) -> None:
    """Show what would become of a request: every decision, the tools, and what it comes to. Nothing is sent.

    With the id of a request that was made, what was decided then, and what was really sent.
    """
    if request is not None and is_id(request) and not Path(request).exists():
        settings = read_config().config
        kept = with_kept(settings, gateway, key, request)
        if not provider:
            explain_kept(kept, settings, Shown(body or full, full, body_only, as_json))
            return
        wish = _Wish(provider, model, strict, Shown(body or full, full, body_only, as_json))
        _explain(kept.asked(), settings, provider_folders(folder), wish, request)
        return
    folders = provider_folders(folder)
    if listing:
        providers = [load_provider(name, folders) for name in provider_names(folders)]
        if as_json:
            print_json(list_json(providers))
        else:
            show_list(open_console(), providers)
        return
    if chat and messages:
        raise ConfigError("a request is written for one API: leave out `--chat` or `--messages`")
    said = _read_body(request)
    config = read_config().config
    try:
        asked = ask(said, chat=chat, messages=messages, limits=take_limits(RequestLimits, config.limits))
    except RequestRefused as error:
        if as_json:
            print_json({"refused": refusal_json(error)})
        say_error(f"the request is refused, whatever the provider: {error.message}{_hint(said, chat, messages)}")
        raise typer.Exit(REFUSED) from error
    if everywhere:
        _compare(asked, folders, strict=strict, full=full, as_json=as_json, source=_name(request))
        return
    shown = Shown(body or full, full, body_only, as_json)
    _explain(asked, config, folders, _Wish(provider, model, strict, shown), _name(request))


@dataclass(frozen=True, slots=True)
class _Wish:
    """How one plan is made and shown."""

    provider: str
    model: str
    strict: bool
    shown: Shown


def _explain(asked: Asked, config: Config, folders: Sequence[Path], wish: _Wish, source: str) -> None:
    title, shown = "", wish.shown

    def plan(asked: Asked) -> Explained:
        nonlocal title
        explained, chosen = _plan(asked, config, folders, wish)
        title = chosen.title
        return explained

    try:
        explained = explain_hooked(config, asked, plan)
    except RequestRefused as error:
        if shown.as_json:
            print_json({"refused": refusal_json(error, asked)})
        say_error(f"the request is refused by the hook `{error.metadata['hook']}`: {error.message}")
        raise typer.Exit(REFUSED) from error
    if shown.body_only and explained.plan is not None:
        print_json(explained.body, pretty=not shown.as_json)
    elif shown.as_json:
        print_json(explained.to_json())
    else:
        console = open_console(stderr=shown.body_only)
        show_explained(console, explained, title=title, source=source, full=shown.full, body=shown.body)
    if explained.refusal is not None:
        raise typer.Exit(REFUSED)


def _plan(asked: Asked, config: Config, folders: Sequence[Path], wish: _Wish) -> tuple[Explained, Provider]:
    choice = choice_named(asked, wish.model, config) if not wish.provider else None
    managed = foresee(config, asked)
    if choice is not None:
        return explain_choice(asked, choice, config, folders, strict=wish.strict, managed=managed)
    name = _choose_name(asked, wish.provider, folders, config)
    chosen, settings = load_known(name, folders, config)
    known_as, dialect = (name, settings.dialect) if settings is not None else ("", None)
    model = choose_model(asked, chosen, wish.model, known_as)
    lessons = recall_lessons(config, name, chosen, model) if known_as else []
    explained = explain_request(
        asked, chosen, model, strict=wish.strict, name=known_as, dialect=dialect, lessons=lessons, managed=managed
    )
    return explained, chosen


def _compare(asked: Asked, folders: Sequence[Path], *, strict: bool, full: bool, as_json: bool, source: str) -> None:
    providers = [load_provider(name, folders) for name in provider_names(folders)]
    comparison = compare(asked, providers, strict=strict)
    if as_json:
        print_json(comparison.to_json())
    else:
        show_comparison(open_console(), comparison, source=source, full=full)


def _read_body(request: str | None) -> JsonObject:
    if request is None:
        raise ConfigError(
            "no request; name a JSON file, or `-` for stdin: `isthmus explain request.json --provider deepseek`"
        )
    try:
        raw = sys.stdin.buffer.read() if request == "-" else Path(request).read_bytes()
    except OSError as error:
        raise ConfigError(f"`{request}` cannot be read: {error.strerror or error}; name a JSON file") from error
    try:
        body = decode_json(raw)
    except RequestRefused as error:
        raise ConfigError(f"`{_name(request)}`: {error.message}") from error
    if not isinstance(body, dict):
        raise ConfigError(f'`{_name(request)}` does not hold a JSON object; write `{{"model": …, "input": …}}`')
    # Recorders like to wrap what they saw: `{"method": …, "headers": …, "body": {…}}`, and that once more.
    for name in ("request", "body"):
        wrapped = body.get(name)
        if isinstance(wrapped, dict) and not body.keys() & {"input", "messages"}:
            body = wrapped
    return body


def _choose_name(asked: Asked, named: str, folders: Sequence[Path], config: Config) -> str:
    if named:
        return named
    sides = split_reference(str(asked.request.body.get("model") or ""))
    if sides is not None and (sides[0] in config.providers or sides[0] in all_names(folders)):
        return sides[0]
    raise ConfigError(
        "no provider; add `--provider NAME` (`isthmus explain --list` shows them), or `--all` to compare them"
    )


def _hint(body: JsonObject, chat: bool, messages: bool) -> str:
    flag = "--chat" if chat else "--messages" if messages else ""
    if not flag and "messages" in body and "input" not in body:
        return " (it looks like a Chat Completions request: add `--chat`; one of Anthropic's wants `--messages`)"
    return f" (it looks like a Responses request: leave `{flag}` out)" if flag and "input" in body else ""


def _name(request: str | None) -> str:
    return "standard input" if request == "-" else str(request)
