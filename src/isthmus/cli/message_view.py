"""The messages of an upstream body, one line each: who speaks, what about, how much.

In: a body of the chat, responses or messages dialect. Out: a table. Base64 and long text never get to the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.text import Text

from isthmus.cli.layout import show_table
from isthmus.cli.terminal import READABLE, clean, heading, lined_table, number, plain_json, preview, shorten

_SHOWN: Final = 60
"""More messages than this are shown as a head and a tail."""
_HEAD: Final = 12
_BESIDE: Final = 40
"""Columns that the others take, at the most."""
_ROLES: Final = {"system": "blue", "developer": "blue", "user": "green", "assistant": "yellow", "tool": "magenta"}


def show_messages(console: Console, body: Mapping[str, Any], *, full: bool = False) -> None:
    messages: Sequence[Any] = body.get("messages") or body.get("input") or ()
    if isinstance(messages, str) or not messages:
        return
    if body.get("system"):  # Messages keep it apart
        messages = [{"role": "system", "content": body["system"]}, *messages]
    heading(console, "Messages", f"{number(len(messages))} in the body")
    table = lined_table("#", "who", "says", "bytes")
    table.columns[0].justify = table.columns[3].justify = "right"
    room = min(console.width, READABLE) - _BESIDE
    left_out = 0 if full or len(messages) <= _SHOWN else len(messages) - _SHOWN
    for index, message in enumerate(messages):
        if left_out and _HEAD <= index < _HEAD + left_out:
            if index == _HEAD:
                table.add_row("", "", Text(f"… {number(left_out)} more; `--full` shows all", "dim"), "")
            continue
        says = preview(_says(message), room)
        table.add_row(str(index), _who(message), says, number(len(msgspec.json.encode(message))))
    show_table(console, table)


def _who(message: Mapping[str, Any]) -> Text:
    role = str(message.get("role") or message.get("type") or "?")
    return Text(clean(role), _ROLES.get(role, ""))


def _says(message: Mapping[str, Any]) -> Text:
    said = Text()
    if message.get("tool_call_id"):
        said.append(f"[{clean(str(message['tool_call_id']))}] ", "dim")
    text = content_words(message.get("content"))
    said.append(shorten(text, 400))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        said.append(" " if said.plain else "")
        said.append(clean(str(function.get("name", call.get("type", "call")))), "bold")
        said.append(f"({shorten(str(function.get('arguments', '')), 200)})", "dim")
    if not said.plain:
        rest = {key: value for key, value in message.items() if key not in ("role", "type")}
        said.append(shorten(plain_json(rest), 400), "dim")
    return said


def content_words(content: Any) -> str:
    """Text as it is; other parts by their kind."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return " ".join(map(_part_words, content))


def _part_words(part: Mapping[str, Any]) -> str:
    if isinstance(part.get("text"), str):
        return str(part["text"])
    match part.get("type"):
        case "tool_use":
            return f"{part.get('name')}({shorten(plain_json(part.get('input')), 200)})"
        case "tool_result":
            return f"[{part.get('tool_use_id')}] {content_words(part.get('content'))}"
        case kind:
            return f"[{kind or 'part'}]"
