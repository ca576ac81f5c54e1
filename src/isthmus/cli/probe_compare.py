"""A provider file beside what its server was found to do: `isthmus providers probe NAME --compare`.

In: the facts for one dialect, the file's with the server's own word over them, as a gateway would have them; and the
findings. Out: one row per fact. A file that claims more than the server
does makes requests fail, or promises break in silence; one that claims less only leaves something unused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from rich.console import Console
from rich.text import Text

from isthmus.bridge.capabilities import Dialect, ProviderCapabilities
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import WIDE, heading, lined_table, words
from isthmus.providers import Provider
from isthmus.providers.dialects import capabilities_for
from isthmus.providers.responses import serves
from isthmus.providers.word.told import NOTHING, Told
from isthmus.upstream.probe.findings import Abilities, Findings

Standing = Literal["agrees", "claims more", "claims less", "unknown"]
_SIGNS: Final[dict[Standing, tuple[str, str]]] = {
    "agrees": ("✓ agrees", "green"),
    "claims more": ("✗ claims more", "red"),
    "claims less": ("· claims less", "yellow"),
    "unknown": ("? unknown", "dim"),
}
_ASKED: Final = ("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "user")
_SAMPLED: Final = {"chat": frozenset(_ASKED), "responses": frozenset({"temperature", "top_p"})}
"""The parameters that a probe asks about, in each dialect."""


@dataclass(frozen=True, slots=True)
class Row:
    dialect: str
    fact: str
    file: str
    server: str
    standing: Standing


def compare(provider: Provider, found: Findings) -> list[Row]:
    """The facts of a provider beside the findings about one of its models."""
    if found.word != NOTHING:
        provider = provider.hear(Told(words={found.model: found.word}))
    rows = [*_dialect("chat", capabilities_for(provider, found.model, "chat"), found, found), *_whole(provider, found)]
    if found.native is not None and serves(provider.responses, found.model):
        known = capabilities_for(provider, found.model, "responses")
        rows += _dialect("responses", known, found, found.native)
    return rows


def claims_more(rows: Collection[Row]) -> list[Row]:
    return [row for row in rows if row.standing == "claims more"]


def show_comparison(console: Console, rows: list[Row], name: str, model: str) -> None:
    heading(console, name, f"as its file says, and as {model} was found")
    for dialect in dict.fromkeys(row.dialect for row in rows):
        table = lined_table(dialect, "file", "server", "")
        for row in (row for row in rows if row.dialect == dialect):
            sign, style = _SIGNS[row.standing]
            fact = words(row.fact)
            fact.no_wrap = console.width >= WIDE
            table.add_row(fact, words(row.file), words(row.server), Text(sign, style=style, no_wrap=True))
        show_table(console, table)
        console.print()


def rows_json(rows: Collection[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def _whole(provider: Provider, found: Findings) -> Iterator[Row]:
    """What is not of one dialect."""
    has = serves(provider.responses, found.model)
    yield _flag("responses", "has a Responses endpoint", has, found.responses)


def _dialect(dialect: Dialect, known: ProviderCapabilities, found: Findings, can: Abilities) -> Iterator[Row]:
    unclear = can.unclear

    def flag(fact: str, claimed: bool, does: bool, *names: str) -> Row:
        return _flag(dialect, fact, claimed, None if unclear & set(names) and not does else does)

    parameters, rules = known.parameters, known.messages
    if dialect == "chat":
        yield _size(known.limits.context, found.context)
    yield _names(dialect, "reads", rules.input & {"image"}, can.inputs, {"image"} if "inputs" in unclear else ())
    yield flag("limits the answer", "max_output_tokens" in parameters, bool(can.limit_field))
    if can.limit_field and "max_output_tokens" in parameters:
        yield flag("tells that the limit was met", known.reply.tells_length, can.tells_length)
    asked = _SAMPLED["chat" if dialect == "chat" else "responses"]
    yield _names(dialect, "parameters", parameters.keys() & asked, [name for name in can.parameters if name in asked])
    yield flag("log probabilities", "top_logprobs" in parameters, can.logprobs, "logprobs")
    yield flag("effort `none`", _switches_off(known), can.effort_none, "effort_none")
    if dialect == "chat":
        yield flag("usage in streams", known.streaming_usage, can.streaming_usage)
        yield flag("developer role", rules.developer == "developer", can.developer, "developer")
        yield flag("system messages anywhere", rules.system == "anywhere", can.system_anywhere, "system_anywhere")
    yield flag("two messages of one speaker", rules.turns == "free", can.repeats, "repeats")
    calls = "function" in known.tools.native
    yield flag("tools", calls, can.tools, "tools")
    if not can.tools:
        return
    if dialect == "chat":
        yield flag("the user after a tool", rules.after_tool == "any", found.after_tool, "after_tool")
        takes_null = found.empty_content == "null"
        yield flag("calls with `content: null`", rules.empty_content == "null", takes_null)
        yield flag("call ids of any length", rules.call_ids == "keep", found.call_ids == "keep")
    yield flag("strict schemas of tools", known.tools.strict, can.strict, "strict")
    yield flag("`parallel_tool_calls`", "parallel_tool_calls" in parameters, "parallel_tool_calls" in can.parameters)
    # `none` is kept by sending no tools, whatever the server makes of the word.
    choices = known.tool_choice.supported & {"auto", "required", "function"} if known.tool_choice.sent else frozenset()
    open_choices = {name.partition(".")[2] for name in unclear if name.startswith("choices.")}
    yield _names(dialect, "tool choices", choices, [one for one in can.choices if one != "none"], open_choices)
    open_formats = {name.partition(".")[2] for name in unclear if name.startswith("formats.")}
    yield _names(dialect, "formats", known.response_formats.supported, can.formats, open_formats)


def _switches_off(known: ProviderCapabilities) -> bool:
    match known.reasoning.effort:
        case "native":
            return "none" in known.reasoning.scale or bool(known.reasoning.off)
        case "boolean":
            return bool(known.reasoning.off) or not known.reasoning.on
    return False


def _flag(dialect: str, fact: str, claimed: bool, does: bool | None) -> Row:
    said = "unknown" if does is None else _word(does)
    standing: Standing = "unknown" if does is None else _standing(claimed and not does, does and not claimed)
    return Row(dialect, fact, _word(claimed), said, standing)


def _names(
    dialect: str, fact: str, claimed: Collection[str], does: Collection[str], unclear: Collection[str] = ()
) -> Row:
    more, less = set(claimed) - set(does) - set(unclear), set(does) - set(claimed)
    unknown = (set(claimed) & set(unclear)) - set(does)
    standing = _standing(bool(more), bool(less))
    if unknown and standing == "agrees":
        standing = "unknown"
    said = [*sorted(does), *(f"{name}?" for name in sorted(unknown))]
    return Row(dialect, fact, _list(sorted(claimed)), _list(said), standing)


def _size(claimed: int | None, does: int | None) -> Row:
    said = "unknown" if does is None else f"{does:,}"
    standing: Standing = "unknown"
    if does is not None:
        standing = _standing(claimed is not None and claimed > does, claimed is None or claimed < does)
    return Row("chat", "context", "unknown" if claimed is None else f"{claimed:,}", said, standing)


def _standing(more: bool, less: bool) -> Standing:
    return "claims more" if more else "claims less" if less else "agrees"


def _word(value: bool) -> str:
    return "yes" if value else "no"


def _list(names: Collection[str]) -> str:
    return ", ".join(names) or "none"
