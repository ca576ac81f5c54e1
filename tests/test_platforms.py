"""Windows lacks signals, process groups, locks and limits: nothing fails for want of them. What is tried here is what
can be tried elsewhere, with these taken away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from isthmus.cli.beside import Launch, run_program
from isthmus.upstream.codex import process as codex_process

LACKING = """
    import asyncio, importlib, multiprocessing, os, pkgutil, signal, subprocess, sys, tempfile
    import aiohttp, mcp, pydantic, rich, starlette, typer, uvicorn  # they look after themselves
    for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGALRM", "SIGPROF", "setitimer", "pthread_kill"):
        delattr(signal, name)
    for name in ("killpg", "getpgid", "setsid", "fork", "getuid", "geteuid", "fchmod", "chown", "O_NONBLOCK"):
        delattr(os, name)
    for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "uvloop"):
        sys.modules[name] = None
    import isthmus
    for found in pkgutil.walk_packages(isthmus.__path__, "isthmus."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


def test_every_module_can_be_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(LACKING)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def no_handlers() -> Iterator[None]:
    """A loop as it is there, and the process's own handlers put back."""

    def add(*_: object) -> None:
        raise NotImplementedError

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", add)
        patch.setattr(asyncio.SelectorEventLoop, "remove_signal_handler", add)
        yield
    assert {each: signal.getsignal(each) for each in before} == before


async def test_a_program_runs_to_its_end_where_the_loop_handles_no_signals(no_handlers: None) -> None:
    assert await run_program(Launch([sys.executable, "-c", "raise SystemExit(7)"])) == 7


async def test_a_signal_reaches_the_program_all_the_same(no_handlers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    listening, own = asyncio.Event(), signal.signal

    def install(each: signal.Signals, do: object) -> object:
        if each == signal.SIGTERM:
            listening.set()
        return own(each, do)  # type: ignore[arg-type]

    monkeypatch.setattr(signal, "signal", install)
    running = asyncio.create_task(run_program(Launch([sys.executable, "-c", "import time; time.sleep(600)"])))
    await listening.wait()
    signal.raise_signal(signal.SIGINT)  # the program decides what Ctrl-C means
    await asyncio.sleep(0)
    assert not running.done()
    signal.raise_signal(signal.SIGTERM)
    assert await running == 128 + signal.SIGTERM


async def test_a_codex_process_is_ended_where_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)", stdin=pipe)
    process = object.__new__(codex_process.CodexProcess)
    process.pid, process._child = child.pid, child
    monkeypatch.delattr(os, "killpg")
    process._signal(codex_process.KILL)
    assert await child.wait() == -signal.SIGKILL
