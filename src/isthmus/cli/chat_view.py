"""How a conversation looks in a terminal: the answer on stdout as it is written, everything else on stderr.

In: events of a run. Out: characters. Piped, stdout holds nothing but the answers.
"""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from isthmus.cli.terminal import clean, shorten
from isthmus.client.events import (
    HistoryRepaired,
    RefusalDelta,
    Retrying,
    RunEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)
from isthmus.client.result import RunResult
from isthmus.tools.calls import ToolCall, canonical_json

_SHOWN = 300


class ChatView:
    """Prints events; knows whether the cursor stands at the beginning of a line."""

    def __init__(self, console: Console, *, thinking: bool = True) -> None:
        self._console = console
        self._thinking = thinking
        self._kind = ""

    def show(self, event: RunEvent) -> None:
        match event:
            case TextDelta(text) | RefusalDelta(text):
                self._turn_to("text")
                # A terminal would obey what a model writes; a file should hold it as it is.
                sys.stdout.write(clean(text) if sys.stdout.isatty() else text)
                sys.stdout.flush()
            case ThinkingDelta(text) if self._thinking:
                self._turn_to("thinking")
                self._console.print(Text(clean(text), "dim italic"), end="", soft_wrap=True)
            case ToolStarted(call):
                self._line(Text.assemble(("⚙ ", "cyan"), (call.name, "cyan"), (f" {_arguments(call)}", "dim")))
            case ToolFinished(result):
                sign, style = ("✓", "green") if result.ok else ("✗", "red")
                words = "" if result.ok else f"{result.status}: "
                shown = f" {result.name} {words}{shorten(result.text, _SHOWN)}"
                self._line(Text.assemble((sign, style), (shown, "dim"), (f"  {result.duration:.1f} s", "dim")))
            case Retrying(error, _, wait):
                self._line(Text(f"… trying again in {wait:.1f} s: {clean(str(error))}", "yellow"))
            case HistoryRepaired(notes):
                self._line(Text("; ".join(notes), "yellow"))
            case _:
                pass

    def end(self, run: RunResult[Any]) -> None:
        """The line below an answer: how it ended, and what it took."""
        self._turn_to("")
        used = run.usage
        facts = [
            f"{run.turns} turn{'s' if run.turns != 1 else ''}",
            f"{used.input_tokens} in, {used.output_tokens} out",
        ]
        if used.cost is not None:
            facts.append(f"${used.cost:.4f}")
        if run.stop_reason != "completed":
            facts.insert(0, run.stop_reason.replace("_", " "))
        self._console.print(Text(" · ".join(facts), "dim"))

    def _line(self, text: Text) -> None:
        self._turn_to("")
        self._console.print(text, soft_wrap=True)

    def _turn_to(self, kind: str) -> None:
        """Another voice begins on a line of its own."""
        if self._kind == "text" and kind != "text":
            sys.stdout.write("\n")
            sys.stdout.flush()
        elif self._kind == "thinking" and kind != "thinking":
            self._console.print()
        self._kind = kind


def _arguments(call: ToolCall) -> str:
    text = canonical_json(call.arguments) if call.arguments is not None else call.raw_arguments
    return shorten(text, _SHOWN)
