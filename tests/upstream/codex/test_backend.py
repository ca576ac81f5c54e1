"""The backend as a client meets it: from the configuration to what the program hears, in good times and bad."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_program import alive, heard, install
from isthmus.config import load_config
from isthmus.errors import ConfigError
from isthmus.wiring import running_gateway
from serving import GatewayThread, running_gateway_server
from talking import Talk, message_text

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def _toml(folder: Path, **lines: str) -> str:
    said = {"store.url": '"memory:"', "server.port": "0", "models.demo": "false", "log.level": '"error"'}
    said |= {"providers.codex.uses": '"codex"', "providers.codex.codex.binary": f'"{folder / "codex"}"', **lines}
    return "".join(f"{key} = {value}\n" for key, value in said.items())


class House(Talk):
    def __init__(self, gateway: GatewayThread, program: Path) -> None:
        super().__init__(gateway.url)
        self.server, self.program = gateway, program

    def ask(self, text: Any, **fields: Any) -> dict[str, Any]:
        return {"model": "codex/gpt-5.5", "input": text, "tools": [LOOK], **fields}


@contextmanager
def _house(folder: Path, **lines: str) -> Iterator[House]:
    program = install(folder)
    with running_gateway_server(_toml(folder, **lines)) as gateway:
        yield House(gateway, program)


def test_a_program_that_is_missing_for_a_while_is_told_and_survived(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        assert message_text(house.create(house.ask("hi"))) == "ok"
        house.program.unlink()
        for pid in alive(house.program):
            os.kill(pid, signal.SIGKILL)
        reply = house.post("/v1/responses", house.ask("hi"))
        while reply.status == 200:  # until it has noticed
            reply = house.post("/v1/responses", house.ask("hi"))
        assert (reply.status, reply.error["code"]) == (503, "server_is_overloaded"), reply.body
        assert str(house.program) in reply.error["message"]
        assert int(reply.headers["retry-after"]) >= 1
        install(tmp_path)
        while house.post("/v1/responses", house.ask("hi")).status != 200:
            house.server.skip(60)
        assert message_text(house.create(house.ask("hi"))) == "ok"


STEPS = {"no catalog": "--bundled", "no initialize": "initialize", "no account/read": "account/read", "": "config/read"}


@pytest.mark.parametrize("trouble", [None, *STEPS])
def test_a_start_that_fails_late_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str | None
) -> None:
    """Something after the provider cannot start: at once, or while the program is at this step of its own start."""
    folders = tmp_path / "folders"
    folders.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    program = install(tmp_path)
    (tmp_path / "trouble").write_text(trouble or "")
    file = tmp_path / "isthmus.toml"
    file.write_text(_toml(tmp_path))
    config = load_config(file, environ={}).config

    async def main() -> None:
        before = asyncio.all_tasks()
        with pytest.raises(ConfigError, match="disk is full"):
            async with running_gateway(config):
                while trouble is not None and STEPS[trouble] not in str(heard(program)):
                    await asyncio.sleep(0.01)
                raise ConfigError("the disk is full")
        assert asyncio.all_tasks() == before

    asyncio.run(main())
    assert alive(program) == []
    assert list(folders.iterdir()) == []
