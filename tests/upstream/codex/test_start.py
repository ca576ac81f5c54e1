"""What a start does before anybody may use the program: the catalog, the login, what its threads need to know."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codex_program import alive, heard, install
from isthmus.errors import CredentialsRefused, IsthmusError
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.start import Starter
from isthmus.upstream.codex.threads import Threads


def _start(folder: Path, answers: dict[str, Any] | None = None, **fields: Any) -> Any:
    """The settings for threads, or the error; nothing is left running in either case."""
    program = install(folder)
    script = folder / "program.py"
    answered = "".join(
        f'        case "{method}":\n            send(id=identity, {answer})\n'
        for method, answer in (answers or {}).items()
    )
    script.write_text(script.read_text().replace("    match method:\n", f"    match method:\n{answered}"))

    async def main() -> Any:
        options = CodexOptions(binary=program, home=folder, **fields)
        starter = Starter("codex", options, Threads(options), folder=folder)
        try:
            process = await starter.start()
        except IsthmusError as error:
            return error
        await process.close()
        return starter.thread_config

    told = asyncio.run(asyncio.wait_for(main(), 60))
    assert alive(program) == []
    return told


def test_a_model_only_program_is_given_its_catalog(tmp_path: Path) -> None:
    assert _start(tmp_path) == {}
    assert (tmp_path / "models.json").read_bytes() == b'{"models":[]}'
    assert f'model_catalog_json="{tmp_path}/models.json"' in str(heard(tmp_path / "codex")[1]["arguments"])


def test_a_program_with_tools_of_its_own_keeps_its_catalog_and_servers(tmp_path: Path) -> None:
    assert _start(tmp_path, own_tools=True) == {}
    assert not (tmp_path / "models.json").exists()
    assert heard(tmp_path / "codex", "config/read") == []


def test_the_users_own_servers_are_switched_off(tmp_path: Path) -> None:
    config = {"config/read": 'result={"config": {"mcp_servers": {"mine": {"command": "x"}}}}'}
    assert _start(tmp_path, config) == {"mcp_servers": {"mine": {"enabled": False}}}


def test_without_a_login_the_error_is_the_command_to_run(tmp_path: Path) -> None:
    error = _start(tmp_path, {"account/read": 'result={"requiresOpenaiAuth": True, "account": None}'})
    assert isinstance(error, CredentialsRefused)
    assert f"`CODEX_HOME={tmp_path} {tmp_path}/codex login`" in error.message


def test_a_question_that_the_program_does_not_know_has_no_answer(tmp_path: Path) -> None:
    unknown = 'error={"code": -32600, "message": "unknown variant `x`"}'
    assert _start(tmp_path, {"account/read": unknown, "config/read": unknown}) == {}


def test_a_refusal_of_another_kind_fails_the_start(tmp_path: Path) -> None:
    error = _start(tmp_path, {"config/read": 'error={"code": -32600, "message": "broken"}'})
    assert "codex refused `config/read`: broken" in error.message


def test_a_document_in_the_home_folder_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "AGENTS.md").write_text("Be rude.")
    _start(tmp_path)
    assert [line for line in caplog.messages if "codex.document" in line and "AGENTS.md" in line]
