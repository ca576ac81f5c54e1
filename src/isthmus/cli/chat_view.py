"""How a conversation looks in a terminal: the answer on stdout as it is written, everything else on stderr.

In: events of a run. Out: characters, broken between words where somebody reads them. Piped, stdout holds nothing but
the answers, as they are.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from isthmus.cli.flow import Flow
from isthmus.cli.terminal import clean, put, shorten
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
        self._answer = Flow(sys.stdout.write, _columns)
        self._thought = Flow(self._print_thought, _columns)

    def show(self, event: RunEvent) -> None:
        match event:
            case TextDelta(text) | RefusalDelta(text):
                self._turn_to("text")
                if sys.stdout.isatty():
                    self._answer.write(clean(text))  # a terminal would obey what a model writes
                else:
                    sys.stdout.write(text)
                sys.stdout.flush()
            case ThinkingDelta(text) if self._thinking:
                self._turn_to("thinking")
                if self._console.is_terminal:
                    self._thought.write(clean(text))
                else:
                    self._print_thought(clean(text))
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

    def stop(self) -> None:
        """What was begun is not gone on with: what is held comes out, and the next line is a new one."""
        self._turn_to("")

    def _line(self, text: Text) -> None:
        self._turn_to("")
        put(self._console, text)

    def _print_thought(self, text: str) -> None:
        self._console.print(Text(text, "dim italic"), end="", soft_wrap=True)

    def _turn_to(self, kind: str) -> None:
        """Another voice begins on a line of its own."""
        if self._kind == "text" and kind != "text":
            self._answer.end()
            sys.stdout.write("\n")
            sys.stdout.flush()
        elif self._kind == "thinking" and kind != "thinking":
            self._thought.end()
            self._console.print()
        self._kind = kind


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _arguments(call: ToolCall) -> str:
    text = canonical_json(call.arguments) if call.arguments is not None else call.raw_arguments
    return shorten(text, _SHOWN)
