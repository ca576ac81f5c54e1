"""`isthmus trace list | show | tail | export | replay | cache`: why requests were shaped as they were, and what became
of them. Reads the file of this machine's gateway, also while it runs, or a gateway at an address."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from isthmus.cli.help_view import OUTPUT, Commands, examples
from isthmus.cli.trace_find import CONVERSATION, DECISION, DOOR, ERRORS, MODEL, PROVIDER, SINCE, STATUS
from isthmus.cli.trace_source import (
    ConfigOption,
    GatewayOption,
    KeyOption,
    StoreOption,
    TraceReader,
    named,
    read_settings,
    with_traces,
)

if TYPE_CHECKING:
    from isthmus.cli.trace_find import Wanted
    from isthmus.ports.traced import Trace, TraceSummary
    from isthmus.ports.traces import Capturing

trace_app = Commands(
    name="trace", help="See why requests were shaped as they were, and what became of them.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object per line.", rich_help_panel=OUTPUT)]
Full = Annotated[bool, typer.Option("--full", help="Cut nothing.", rich_help_panel=OUTPUT)]
Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="Of the request (`req_…`) or of its response (`resp_…`); `last`: the newest."),
]
REFUSED: Final = 2
_PAUSE: Final = 0.5
"""Seconds between two looks at what is new."""


@trace_app.command("list")
@examples("isthmus trace list", "isthmus trace list --errors --since 2h")
def list_(
    provider: PROVIDER = "",
    model: MODEL = "",
    status: STATUS = "",
    since: SINCE = "",
    conversation: CONVERSATION = "",
    decision: DECISION = "",
    errors: ERRORS = False,
    door: DOOR = "",
    most: Annotated[int, typer.Option("--most", "-n", min=1, max=1000, help="How many.")] = 20,
    config: ConfigOption = None,
    store: StoreOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """The last requests, newest first."""
    from isthmus.cli.terminal import open_console, print_json
    from isthmus.cli.trace_find import find_all, read_wanted
    from isthmus.cli.trace_list import show_traces

    asked = _asked(provider, model, status, since, conversation, decision, errors, door)

    async def find(reader: TraceReader) -> tuple[list[TraceSummary], bool]:
        return await find_all(reader, await read_wanted(reader, **asked), most)

    found, more = with_traces(config, store, gateway, key, find)
    if as_json:
        print_json({"traces": found, "has_more": more})
        return
    if not found:
        _say("no request was traced that fits" if any(asked.values()) else "no request was traced yet")
        return
    show_traces(open_console(), found)
    if more:
        _say(f"there are more; `--most {most * 5}` or a filter such as `--since 1h` shows others")


@trace_app.command()
@examples("isthmus trace show last", "isthmus trace show last --body")
def show(
    id: Id,
    body: Annotated[
        bool, typer.Option("--body", help="Show what was sent upstream, if it was kept.", rich_help_panel=OUTPUT)
    ] = False,
    full: Full = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """One request: who asked, every decision with its reason, both sides, attempts, answer, timings."""
    from isthmus.cli.terminal import open_console, print_json
    from isthmus.cli.trace_view import show_trace

    trace = with_traces(config, store, gateway, key, lambda reader: find_trace(reader, id))
    if as_json:
        print_json(trace)
    else:
        show_trace(open_console(), trace, full=full, body=body or full)


@trace_app.command()
@examples("isthmus trace tail", "isthmus trace tail --provider deepseek")
def tail(
    provider: PROVIDER = "",
    model: MODEL = "",
    status: STATUS = "",
    conversation: CONVERSATION = "",
    decision: DECISION = "",
    errors: ERRORS = False,
    door: DOOR = "",
    last: Annotated[int, typer.Option("--last", "-n", min=0, max=1000, help="How many old ones come first.")] = 10,
    config: ConfigOption = None,
    store: StoreOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Lines = False,
) -> None:
    """The last requests, then each one as it ends. Ctrl-C leaves."""
    from isthmus.cli.trace_find import read_wanted
    from isthmus.cli.trace_list import TraceLines

    asked = _asked(provider, model, status, "", conversation, decision, errors, door)
    lines = TraceLines()

    async def follow(reader: TraceReader) -> None:
        wanted = await read_wanted(reader, **asked)
        async for summary in _follow(reader, wanted, last):
            if as_json:
                _write_line(summary)
            else:
                lines.add(summary)

    try:
        with_traces(config, store, gateway, key, follow)
    except (KeyboardInterrupt, BrokenPipeError):
        raise typer.Exit from None


@trace_app.command()
@examples("isthmus trace export --since 1d --output traces.jsonl")
def export(
    provider: PROVIDER = "",
    model: MODEL = "",
    status: STATUS = "",
    since: SINCE = "",
    conversation: CONVERSATION = "",
    decision: DECISION = "",
    errors: ERRORS = False,
    door: DOOR = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Lines = True,
) -> None:
    """Write whole traces, oldest first, as one JSON object per line."""
    import msgspec

    from isthmus.cli.trace_find import read_wanted

    del as_json  # there is no other way; it is taken so that it may be given everywhere
    asked = _asked(provider, model, status, since, conversation, decision, errors, door)

    async def write(reader: TraceReader) -> int:
        wanted, count = await read_wanted(reader, **asked), 0
        target = output.open("wb") if output is not None else sys.stdout.buffer
        try:
            async for trace in _exported(reader, wanted):
                target.write(msgspec.json.encode(trace) + b"\n")
                count += 1
        finally:
            if output is not None:
                target.close()
            else:
                target.flush()
        return count

    _say(f"exported {with_traces(config, store, gateway, key, write)} traces")


@trace_app.command()
@examples("isthmus trace replay last --provider deepseek", "isthmus trace replay last --provider deepseek --send")
def replay(
    id: Id,
    provider: Annotated[str, typer.Option("--provider", "-p", help="Plan it for this one; else for the same.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="Its model; the provider's default otherwise.")] = "",
    send: Annotated[bool, typer.Option("--send", help="Really ask it: that costs what a request costs.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Reject what would be degraded or ignored.")] = False,
    full: Full = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """Plan a recorded request again, for another provider, and show both plans' differences. Nothing is sent without
    `--send`. Exit code 2: the other provider would refuse it."""
    from isthmus.cli.kept_store import with_kept
    from isthmus.cli.replay import recorded_answer, send_here, send_there, summary_of
    from isthmus.cli.replay import replay as replay_kept
    from isthmus.cli.replay_view import show_answers, show_replay
    from isthmus.cli.terminal import open_console, print_json

    settings = read_settings(config, store)
    replayed = replay_kept(with_kept(settings, gateway, key, id), settings, provider, model, strict=strict)
    answer: dict[str, Any] | None = None
    if send and replayed.refusal is None:
        answer = asyncio.run(send_there(replayed, gateway, key or "") if gateway else send_here(replayed, settings))
    if as_json:
        print_json({**replayed.to_json(), **({} if answer is None else {"response": answer})})
    else:
        console = open_console()
        show_replay(console, replayed, full=full)
        if answer is not None:
            show_answers(console, recorded_answer(replayed.kept), summary_of(answer))
    if replayed.refusal is not None:
        raise typer.Exit(REFUSED)


@trace_app.command()
@examples("isthmus trace cache", "isthmus trace cache last")
def cache(
    id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="A request or response of the conversation, or `last`; else all."),
    ] = None,
    provider: PROVIDER = "",
    model: MODEL = "",
    since: SINCE = "",
    conversation: CONVERSATION = "",
    config: ConfigOption = None,
    store: StoreOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """The cache doctor: how much of each prompt was the same as in the turn before, the first difference, what the
    provider found in its cache, what that cost, and what it could have cost."""
    from isthmus.cli.terminal import open_console, print_json
    from isthmus.cli.trace_cache import (
        known_prices,
        read_conversation,
        read_conversations,
        show_conversation,
        show_conversations,
    )
    from isthmus.cli.trace_find import read_wanted
    from isthmus.observe.conversation import Conversation

    asked = _asked(provider, model, "", since, conversation, "", False, "")
    prices = known_prices(read_settings(config, store))

    async def read(reader: TraceReader) -> list[Conversation]:
        if id:
            return [await read_conversation(reader, id, prices)]
        return await read_conversations(reader, await read_wanted(reader, **asked), prices)

    found = with_traces(config, store, gateway, key, read)
    alone = bool(id or conversation)
    if as_json:
        print_json(found[0].to_json() if alone and found else {"conversations": [each.to_json() for each in found]})
    elif alone and found:
        show_conversation(open_console(), found[0])
    elif found:
        show_conversations(open_console(), found)
        _say("`isthmus trace cache ID` shows one of them turn by turn")
    else:
        _say("no conversation with more than one turn was traced yet")


@trace_app.command()
@examples("isthmus trace capture 10m", "isthmus trace capture 0")
def capture(
    how_long: Annotated[str, typer.Argument(metavar="HOW-LONG", help="`10m`, `1h` …; `0` ends it.")],
    owner: Annotated[str, typer.Option("--owner", help="Only requests of this owner.")] = "",
    key_id: Annotated[str, typer.Option("--key-id", help="Only requests with this key, as the log tells it.")] = "",
    config: ConfigOption = None,
    gateway: GatewayOption = None,
    key: KeyOption = None,
    as_json: Json = False,
) -> None:
    """Have a running gateway keep contents, too, for a while. It is the operator's to ask: where there are keys, with
    the admin key."""
    from isthmus.cli.terminal import print_json
    from isthmus.cli.trace_list import when
    from isthmus.cli.trace_remote import RemoteTraces
    from isthmus.errors import ConfigError
    from isthmus.server.listen import public_url
    from isthmus.values.quantities import parse_duration

    try:
        seconds = parse_duration(how_long)
    except ValueError as error:
        raise ConfigError(f"`{how_long}` must be {error}") from error
    address = gateway or public_url(read_settings(config, None).server)
    if address.startswith("unix:"):
        raise ConfigError("a gateway on a Unix socket is not asked from here; give the address of a proxy: `--gateway`")

    async def ask() -> Capturing:
        remote = RemoteTraces(address, key or "")
        try:
            return await remote.capture(seconds, owner=owner, key=key_id)
        finally:
            await remote.aclose()

    told = asyncio.run(ask())
    if as_json:
        print_json(told)
    elif told.full_until is None:
        _say(f"contents are kept no longer than the configuration says (`{told.capture}`)")
    else:
        whose = " and ".join(filter(None, (f"owner {owner}" if owner else "", f"key {key_id}" if key_id else "")))
        _say(f"contents of {whose or 'all requests'} are kept until {when(told.full_until)} UTC")


async def find_trace(reader: TraceReader, id: str) -> Trace:
    from isthmus.errors import ConfigError

    trace = await reader.find(await named(reader, id))
    if trace is None:
        raise ConfigError(
            f"no request `{id}` was traced here, or it was forgotten since: `isthmus trace list` shows what there is"
        )
    return trace


def _asked(
    provider: str, model: str, status: str, since: str, conversation: str, decision: str, errors: bool, door: str
) -> dict[str, Any]:
    return {
        "provider": provider,
        "model": model,
        "status": status,
        "since": since,
        "conversation": conversation,
        "decision": decision,
        "errors": errors,
        "door": door,
    }


async def _follow(reader: TraceReader, wanted: Wanted, last: int) -> AsyncIterator[TraceSummary]:
    """The last ones that are wanted, oldest first, then those to come."""
    from isthmus.cli.trace_find import find_all, fits
    from isthmus.ports.traces import TraceFilter

    newest = (await reader.list(TraceFilter(), limit=1)).traces
    seen = newest[0].seq if newest else 0
    if last:
        before, _ = await find_all(reader, wanted, last)
        for summary in reversed(before):
            seen = max(seen, summary.seq)
            yield summary
    while True:
        page = await reader.list(wanted.filter, limit=200, after=seen, order="asc")
        for summary in page.traces:
            seen = summary.seq
            if await fits(reader, wanted, summary):
                yield summary
        if not page.has_more:
            await asyncio.sleep(_PAUSE)


async def _exported(reader: TraceReader, wanted: Wanted) -> AsyncIterator[Trace]:
    from isthmus.cli.trace_find import fits

    async for trace in reader.export(wanted.filter):
        if wanted.plain or await fits(reader, wanted, trace.summary):
            yield trace


def _write_line(value: Any) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def _say(text: str) -> None:
    """Talk is for people: it goes where no pipe reads it."""
    typer.echo(text, err=True)
