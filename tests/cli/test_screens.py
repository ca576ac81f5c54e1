"""Every command, as it looks: at 80 and at 140 columns nothing is wider than the terminal, no word is broken, nothing
is cut; piped, and with `NO_COLOR`, nothing is coloured, and rows stay rows.

The commands come from the real tree. Whoever adds one tells here what it is to be seen doing.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from typer.main import get_command

import isthmus.server.serve
from filled_home import fill_home
from isthmus.cli import trace_commands
from isthmus.cli.commands import app
from isthmus.cli.help_view import HelpfulCommand, HelpfulGroup, examples_of
from isthmus.testing import ScriptedUpstream, error
from probed_servers import SERVERS, routes
from screens import Screen, draw

SCREENS: Final[dict[str, tuple[str, ...]]] = {
    "serve": ("", "--port 70000", "--model nobody/x"),
    "init": ("--dry-run -p deepseek", "--yes -p deepseek --path new.toml", "--yes -p deepseek --path isthmus.toml"),
    "explain": (
        "codex.json -p deepseek",
        "codex.json -p deepseek --body",
        "codex.json -p anthropic",
        "codex.json -p openai --strict",
        "request.json",
        "request.json --body",
        "request.json --model either",
        "chat.json --chat -p mistral --body",
        "chat.json -p mistral",
        "images.json --all",
        "codex.json --all --full",
        "--list",
        "last",
        f"req_{3:024x}",
        f"req_{3:024x} --body",
        f"req_{4:024x}",
        "nowhere.json",
        "",
    ),
    "trace list": ("", "--errors", "--since nonsense"),
    "trace show": ("last", f"req_{3:024x}", f"req_{4:024x}", "req_nowhere000"),
    "trace tail": ("",),
    "trace export": ("--output out.jsonl",),
    "trace replay": (f"req_{3:024x} --provider zhipu", f"req_{3:024x}", f"req_{5:024x}"),
    "trace cache": ("", f"req_{3:024x}", "nobody"),
    "trace capture": ("10m",),
    "chat": ("-m demo/demo hello", "-m fast hello", "-m demo/demo '[[demo: error 400]] hello'", "-m nobody/x hello"),
    "providers list": ("", "--all", "router", "nosuchword"),
    "providers show": ("deepseek", "openai", "azure", "fireworks", "openrouter", "a-server-of-our-own", "depseek"),
    "providers check": ("broken.toml sound.toml", "nowhere.toml"),
    "providers test": ("demo a-server-of-our-own --timeout 2", "nobody"),
    "providers probe": ("{server}", "deepseek --base-url {server} --compare", "http://127.0.0.1:1/v1"),
    "models": ("", "demo", "nobody", "--gateway http://127.0.0.1:1"),
    "doctor": ("--offline", "--offline --config nowhere.toml", "--offline --gateway {server}"),
    "config check": ("", "--set server.prot=1 --set models.default=x", "--config nowhere.toml"),
    "config print": (),
    "keys create": ("carla", "carla --expires soon"),
    "keys list": ("", "--all", "--team nobody"),
    "keys show": ("ann", "'a person with a rather long name of her own'", "nobody"),
    "keys change": ("ann --models fast", "ann"),
    "keys rotate": ("ann --grace 24h",),
    "keys revoke": ("ann",),
    "audit": ("", "--before 1"),
    "store stats": ("", "--store sqlite:nowhere.db"),
    "store prune": ("--days 1", "--days 0"),
    "store export": ("--output out.jsonl",),
    "store check": ("",),
    "store migrate": ("", "--dry-run"),
    "store copy": ("--from sqlite:isthmus.db --to sqlite:copy.db", "--from sqlite:no.db --to sqlite:copy.db"),
    "store backup": ("copy.db", "isthmus.db"),
    "store restore": ("nowhere.db",),
    "usage": ("", "--by day,key", "--by day,owner,key,team,provider,model", "--team nobody", "--by nonsense"),
    "webhooks list": ("",),
    "webhooks retry": ("--all", "wh_nobody"),
    "webhooks forget": ("--all",),
    "mcp list": ("", "nobody"),
    "codex setup": ("--dry-run", "--yes", "--undo --yes", "--model nobody/x"),
    "codex run": ("--binary nowhere",),
    "claude setup": ("--dry-run", "--yes", "--undo --yes"),
    "claude run": ("--binary nowhere",),
}
"""What follows each command, once for every screen. What is made for programs alone has none."""

COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
FOR_PROGRAMS: Final = ("config print",)


def leaves(command: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name in command.list_commands(None):
        found = command.get_command(None, name)
        path = f"{above} {name}".strip()
        if hasattr(found, "list_commands"):
            yield path, found
            yield from leaves(found, path)
        else:
            yield path, found


ALL: Final = dict(leaves(get_command(app)))
COMMANDS: Final = [name for name, found in ALL.items() if not hasattr(found, "list_commands")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ScriptedUpstream.running(default=error(404), routes=routes(SERVERS["openai"])) as upstream:
        yield upstream.base_url


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="i"))
    fill_home(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With a short name: how a path longer than the terminal is broken says nothing about the commands."""
    folder = Path(tempfile.mkdtemp(prefix="h"))
    shutil.copytree(filled, folder, dirs_exist_ok=True)
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "ISTHMUS_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "codex_cli_bin", None)  # else its program is named, wherever that is
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(isthmus.server.serve, "serve", _start_only)
    monkeypatch.setattr(trace_commands, "asyncio", SimpleNamespace(run=asyncio.run, sleep=_leave))
    yield folder
    shutil.rmtree(folder)


async def _leave(_: float) -> None:
    """Whoever watches has seen enough."""
    raise KeyboardInterrupt


async def _start_only(settings: Any, *, started: Any, waiting: Any, **_: Any) -> None:
    started("http://127.0.0.1:8484", None)


def seen(command: str, columns: int | None, server: str, **options: Any) -> Iterator[tuple[str, Screen]]:
    for arguments in SCREENS[command]:
        line = f"{command} {arguments}".format(server=server)
        yield line, draw(shlex.split(line), columns, **options)


def test_every_command_tells_here_what_it_is_to_be_seen_doing() -> None:
    assert sorted(SCREENS) == sorted(COMMANDS), "add the command to `SCREENS`, with what follows it"
    assert [name for name in COMMANDS if not SCREENS[name]] == list(FOR_PROGRAMS)


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_fits_its_terminal_and_breaks_between_words(
    command: str, columns: int, home: Path, server: str
) -> None:
    for line, screen in seen(command, columns, server):
        assert screen.lines, f"`{line}` shows nothing"
        assert screen.wider_than(columns) == [], line
        assert screen.broken == [], line
        assert screen.cut == [], line


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_coloured_in_a_pipe_or_where_nobody_wants_it(command: str, home: Path, server: str) -> None:
    for line, screen in seen(command, None, server, terminal=False):
        assert "\x1b" not in screen.out + screen.err, line
    for line, screen in seen(command, 100, server, environ={"NO_COLOR": "1"}):
        assert not COLOUR.search(screen.out + screen.err), line


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("command", ["", *ALL])
def test_the_help_fits_and_nothing_of_it_is_cut(command: str, columns: int) -> None:
    screen = draw([*command.split(), "--help"], columns)
    assert screen.code == 0
    assert screen.wider_than(columns) == []
    assert screen.broken == []
    assert screen.cut == []
    assert "<bool>" not in screen.out
    assert "\x1b" not in draw([*command.split(), "--help"], columns, environ={"NO_COLOR": "1"}).out


def test_every_command_says_what_it_does_and_gives_examples_that_can_be_typed() -> None:
    for name, command in ALL.items():
        assert (command.help or "").rstrip().endswith("."), f"`isthmus {name}` needs a sentence"
        if isinstance(command, HelpfulGroup):
            continue
        assert isinstance(command, HelpfulCommand), f"`isthmus {name}` shows a help that is not ours"
        assert examples_of(command), f"`isthmus {name}` needs examples"
        for example in examples_of(command):
            words = shlex.split(example)
            words = words[words.index("isthmus") + 1 :]
            assert len(f"  {example}") <= 80, example
            assert words[: len(name.split())] == name.split(), example
            command.make_context(name, words[len(name.split()) :])  # fails where an option is not one


def test_rows_stay_rows_in_a_pipe(home: Path) -> None:
    """Nobody says how wide a pipe is: a line for each thing, for whoever counts and searches them."""
    lines = draw(["providers", "list"], None, terminal=False).out.splitlines()
    row = next(line for line in lines if line.startswith("vertex "))
    assert "/locations/global/endpoints/openapi" in row
    assert "a Google account" in row
    listed = draw(["trace", "list"], None, terminal=False).out.splitlines()
    assert all("deepseek/deepseek-v4-pro" in line for line in listed if f"{3:024x}" in line)
    told = draw(["config", "check", "--set", "server.prot=1"], None, terminal=False).out.splitlines()
    assert [line[:6] for line in told[:2]] == ["error ", "  fix:"]
