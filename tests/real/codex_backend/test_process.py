"""The process itself: handshake, environment, questions, shutdown."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.upstream.codex.failures import CodexGone, RpcRefused
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.process import CodexProcess, start_process
from isthmus.upstream.codex.threads import Threads
from real.codex_backend.rig import (
    ask,
    calls,
    codex_options,
    collect,
    in_loop,
    outputs_in,
    real,
    rig,
    run,
    says,
    spec,
    text_of,
)

pytestmark = real

NOWHERE = "http://127.0.0.1:9/v1"


def _script(folder: Path, text: str, patience: float = 60) -> CodexOptions:
    program = folder / "codex"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return CodexOptions(binary=program, home=folder, handshake_timeout=patience, shutdown_grace=0.5)


async def _start(options: CodexOptions) -> CodexProcess:
    return await start_process(options, Threads(options))


@in_loop
async def test_the_handshake_starts_with_id_zero_and_names_us(tmp_path: Path) -> None:
    process = await _start(codex_options(tmp_path, NOWHERE))
    try:
        assert process.user_agent.startswith("isthmus/")
        assert process.malformed == 0
        assert (await process.request("model/list", {}))["data"]
    finally:
        await process.close()
    assert process.exit_code == 0


@in_loop
async def test_the_end_of_input_ends_the_process_in_good_order(tmp_path: Path) -> None:
    process = await _start(codex_options(tmp_path, NOWHERE))
    await process.close()
    assert process.exit_code == 0
    with pytest.raises(CodexGone, match="shut down"):
        await process.request("model/list", {})


@in_loop
async def test_no_secret_of_ours_reaches_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-pass-this-on")
    monkeypatch.setenv("ISTHMUS_KEY", "never-this-either")
    options = codex_options(tmp_path, NOWHERE, environment={"GIVEN_BY_NAME": "yes"})
    process = await _start(options)
    try:
        environment = await asyncio.to_thread(Path(f"/proc/{process.pid}/environ").read_bytes)
        names = {entry.split(b"=")[0].decode() for entry in environment.split(b"\0") if entry}
        assert b"never" not in environment
        assert {"CODEX_HOME", "GIVEN_BY_NAME"} <= names
        assert not {name for name in names if "KEY" in name or "TOKEN" in name}
    finally:
        await process.close()


@in_loop
async def test_an_unknown_method_is_told_apart_from_other_refusals(tmp_path: Path) -> None:
    process = await _start(codex_options(tmp_path, NOWHERE))
    try:
        with pytest.raises(RpcRefused) as unknown:
            await process.request("newConversation", {})
        assert unknown.value.unknown_method
        with pytest.raises(RpcRefused) as refused:
            await process.request("turn/interrupt", {"threadId": "x", "turnId": "y"})
        assert not refused.value.unknown_method
    finally:
        await process.close()


@in_loop
async def test_nothing_is_written_to_stderr_about_malformed_input_of_ours(tmp_path: Path) -> None:
    async with rig(tmp_path) as codex:
        await codex.start(spec())
        assert "ailed to deserialize" not in (await codex.supervisor.process()).stderr


@pytest.mark.parametrize(
    ("text", "patience", "words"),
    [
        ("sleep 600", 0.5, "did not answer `initialize` within 0.5 s"),
        ("echo 'token=sk-abcdefgh12345678' >&2; exit 3", 60, r"ended \(exit code 3\) while `initialize` was waiting"),
    ],
    ids=["silent", "crashes"],
)
def test_a_handshake_that_fails_says_how(tmp_path: Path, text: str, patience: float, words: str) -> None:
    @in_loop
    async def check() -> None:
        with pytest.raises(UpstreamFailed, match=words) as failed:
            await _start(_script(tmp_path, text, patience))
        assert "sk-abc" not in str(failed.value.metadata)

    check()


@in_loop
async def test_a_process_that_ignores_us_is_killed(tmp_path: Path) -> None:
    answer = '{"id":0,"result":{"userAgent":"stubborn"}}'
    options = _script(tmp_path, f"trap '' TERM; read line; echo '{answer}'; while true; do sleep 1; done")
    process = await _start(options)
    await process.close()
    assert process.ended.is_set()


@in_loop
async def test_a_missing_binary_is_the_operators_to_fix(tmp_path: Path) -> None:
    options = replace(codex_options(tmp_path, NOWHERE), binary=tmp_path / "nothing")
    with pytest.raises(ConfigError, match="set `binary`"):
        await _start(options)


@pytest.mark.parametrize("policy", ["decline", "accept"])
def test_codexs_own_tools_ask_and_the_policy_answers(tmp_path: Path, policy: Literal["decline", "accept"]) -> None:
    @in_loop
    async def check() -> None:
        marker = tmp_path / "work" / "marker"
        touch = calls(("call_a", "exec_command", f'{{"cmd": "touch {marker}"}}'))
        async with rig(tmp_path, touch, says("Went on"), approvals=policy) as codex:
            own = spec(model_only=False, approval_policy="untrusted", sandbox="danger-full-access")
            thread = await codex.start(own)
            assert text_of(await collect(run(thread, ask()))) == "Went on"
            assert await asyncio.to_thread(marker.exists) == (policy == "accept")
            ((_, output),) = outputs_in(codex.bodies()[1])
            assert ("rejected" in str(output)) == (policy == "decline")

    check()
