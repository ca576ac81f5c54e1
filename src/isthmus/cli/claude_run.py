"""Claude Code at a gateway for one go: settings in a file that goes with it, nothing written to its home."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from isthmus.cli.beside import Launch, run_beside, run_program
from isthmus.cli.claude_keys import ELSEWHERE, Settings
from isthmus.config.schema import Config


async def run_claude(program: Path, config: Config, settings: Settings, arguments: Sequence[str]) -> int:
    """Start both, wait for Claude Code, stop the gateway; Claude Code's exit code."""
    return await run_beside(config, _preparing(program, settings, arguments))


async def run_claude_at(program: Path, settings: Settings, arguments: Sequence[str]) -> int:
    """The same at a gateway that runs elsewhere."""
    with _preparing(program, settings, arguments)(settings.base_url) as launch:
        return await run_program(launch)


def _preparing(
    program: Path, settings: Settings, arguments: Sequence[str]
) -> Callable[[str], AbstractContextManager[Launch]]:
    @contextmanager
    def prepare(url: str) -> Iterator[Launch]:
        told = replace(settings, base_url=url)
        # The user's own settings win over variables, and `--settings` over those. It is a file because of the key:
        # everybody on the machine can read the arguments of a program.
        with tempfile.TemporaryDirectory(prefix="isthmus-claude-") as folder:
            file = Path(folder) / "settings.json"
            file.write_bytes(msgspec.json.encode({"env": {**told.blanks(ELSEWHERE), **told.variables}}))
            command = [str(program), "--settings", str(file), *arguments]
            yield Launch(command, {**dict.fromkeys(ELSEWHERE), **told.variables})

    return prepare
