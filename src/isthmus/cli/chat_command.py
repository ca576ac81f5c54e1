"""`isthmus chat`: talk to a model in the terminal, with tools, and see what it costs.

In: lines. Out: answers. Ctrl-C stops an answer and keeps the conversation; Ctrl-D ends it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from isthmus.cli.help_view import examples
from isthmus.cli.terminal import clean, open_console, say_failure
from isthmus.errors import ConfigError, IsthmusError

if TYPE_CHECKING:
    from isthmus.client.result import RunResult
    from isthmus.tools.calls import ToolCall
    from isthmus.tools.definition import ToolLike
    from isthmus.tools.messages import Message
    from isthmus.wiring_bridge import Bridge

HELP = "/model NAME  other model    /models  list them    /reset  forget everything    /cost  so far    /quit"


@examples(
    'isthmus chat "hello"',
    "isthmus chat --model deepseek/deepseek-v4-pro",
    'git diff | isthmus chat --system "Review this"',
    "isthmus chat --tools my_tools:get_weather",
)
def chat(
    message: Annotated[list[str] | None, typer.Argument(help="Ask only this, answer and leave.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="`provider/model`; else the default one.")] = None,
    tools: Annotated[
        list[str] | None, typer.Option("--tools", "-t", help="`module:function`; may be repeated.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", "-s", help="Instructions for the model.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Config file (TOML).")] = None,
    gateway: Annotated[str | None, typer.Option(metavar="URL", help="Talk to a gateway at this address.")] = None,
    thinking: Annotated[bool, typer.Option(help="Show what the model thinks.")] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Approve every tool call.")] = False,
) -> None:
    """Talk to a model, here and now: no gateway has to run. Without any key the built-in demo model answers.

    The answer goes to stdout and all else to stderr, so that it can be piped. Ctrl-C stops an answer, Ctrl-D ends it.
    """
    from isthmus.wiring_bridge import Bridge

    loaded = [load_tool(name) for name in tools or ()]
    bridge = Bridge.remote(gateway, tools=loaded) if gateway else _open_bridge(config, loaded)
    console = open_console(stderr=True)
    session = ChatSession(bridge, console, model=model, system=system, thinking=thinking, yes=yes)
    with asyncio.Runner() as runner:
        try:
            if message:
                session.answer(runner, " ".join(message))
            elif not sys.stdin.isatty():
                session.answer(runner, sys.stdin.read())
            else:
                session.converse(runner)
        finally:
            runner.run(bridge.aclose())


def _open_bridge(config: Path | None, tools: list[ToolLike]) -> Bridge:
    """As `Bridge.from_env`, and with the servers that are found on this machine where nothing is configured."""
    from isthmus.wiring_bridge import Bridge
    from isthmus.wiring_notice import load_noticed

    if os.environ.get("ISTHMUS_BASE_URL", "").strip():
        return Bridge.from_env(config_file=config, tools=tools)
    default = os.environ.get("ISTHMUS_MODEL", "").strip() or None
    return Bridge(config=load_noticed(config).config, default=default, tools=tools, environ=os.environ)


class ChatSession:
    """One conversation."""

    def __init__(
        self, bridge: Bridge, console: Console, *, model: str | None, system: str | None, thinking: bool, yes: bool
    ) -> None:
        from isthmus.cli.chat_view import ChatView

        self._bridge = bridge
        self._console = console
        self._view = ChatView(console, thinking=thinking)
        self._model = model
        self._system = system
        self._yes = yes
        self._messages: tuple[Message, ...] = ()
        self._spent = 0.0

    def converse(self, runner: asyncio.Runner) -> None:
        """Until the user has had enough."""
        names = ", ".join(one.name for one in self._bridge.tools)
        info = runner.run(self._bridge.model(self._model))
        self._console.print(Text.assemble((clean(info.name), "bold"), (f"   tools: {names}" if names else "", "dim")))
        self._console.print(Text("/help for commands, Ctrl-D to leave", "dim"))
        for line in self._lines():
            if not line.startswith("/"):
                try:
                    self.answer(runner, line)
                except IsthmusError as error:
                    say_failure(error)
            elif not self._command(runner, line):
                return

    def answer(self, runner: asyncio.Runner, text: str) -> None:
        """One question, answered; stopped by Ctrl-C it keeps what there is."""
        from isthmus.client.result import partial_result
        from isthmus.tools.messages import user

        asked = [*self._messages, user(text)]
        try:
            run = runner.run(self._ask(asked))
        except KeyboardInterrupt as stop:
            found = partial_result(stop)
            if found is None:
                raise
            run = found
        except IsthmusError:
            self._view.stop()
            raise
        self._messages = run.messages
        self._spent += run.usage.cost or 0.0
        self._view.end(run)

    async def _ask(self, messages: list[Message]) -> RunResult[str]:
        options: dict[str, Any] = {"instructions": self._system} if self._system else {}
        async with self._bridge.run_stream(self._model, messages, approve=self._approve, **options) as events:
            async for event in events:
                self._view.show(event)
        return events.result

    async def _approve(self, call: ToolCall) -> bool:
        if self._yes:
            return True
        if not sys.stdin.isatty():
            return False
        question = f"Run {clean(call.name)} {clean(call.raw_arguments)}? [y/N] "
        return (await asyncio.to_thread(self._console.input, Text(question, "yellow"))).strip().lower() in ("y", "yes")

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                line = self._console.input(Text("› ", "bold cyan")).strip()
            except EOFError:
                self._console.print()
                return
            except KeyboardInterrupt:
                self._console.print()
                continue
            if line:
                yield line

    def _command(self, runner: asyncio.Runner, line: str) -> bool:
        """Carry out `/…`; `False` ends the conversation."""
        name, _, rest = line[1:].partition(" ")
        match name:
            case "quit" | "exit" | "q":
                return False
            case "reset":
                self._messages = ()
            case "model" if rest.strip():
                self._model = rest.strip()
            case "models":
                for model in runner.run(self._bridge.models()):
                    self._console.print(Text(clean(model.name)))
            case "cost":
                self._console.print(Text(f"${self._spent:.4f}"))
            case _:
                self._console.print(Text(HELP, "dim"))
        return True


def load_tool(name: str) -> ToolLike:
    """`module:function` → the tool; modules of the working folder count."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"`--tools {name}` names no tool; write `module:function`", code="invalid_tool")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module_name)
        for step in attribute.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as error:
        hint = "write `module:function`, of a module in this folder or an installed one"
        raise ConfigError(f"`--tools {name}` cannot be loaded: {error}; {hint}", code="invalid_tool") from error
    loaded: ToolLike = found
    return loaded
