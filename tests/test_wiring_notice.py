"""Servers on this machine that nobody configured: found, served, found later, gone again; and who may not look."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from isthmus import wiring_notice as module
from isthmus.cli.commands import app
from isthmus.config.load import load_config
from isthmus.testing import ScriptedUpstream, reply
from isthmus.wiring_notice import Noticing, may_look
from local_servers import at, llama_cpp, ollama
from own_time import turns
from serving import GatewayProcess, running_gateway_process
from waiting import until

PLAIN = '[store]\nurl = "memory:"\n'


def served(folder: Path, text: str = PLAIN, **environ: str) -> AbstractContextManager[GatewayProcess]:
    return running_gateway_process(text, folder, environ=environ)


def ask(gateway: GatewayProcess, **body: Any) -> tuple[int, dict[str, Any]]:
    return fetch(f"{gateway.url}/v1/responses", {"input": "hi", **body})


def fetch(url: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json", **headers})
    try:
        with urlopen(request) as answer:
            return answer.status, json.load(answer)
    except OSError as error:
        return error.status, json.load(error)  # type: ignore[attr-defined]


def names(gateway: GatewayProcess) -> list[str]:
    return [model["id"] for model in fetch(f"{gateway.url}/v1/models")[1]["data"]]


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["output"][0]["content"][0]["text"])


def test_servers_that_run_are_offered_and_asked_without_a_word_of_configuration(tmp_path: Path) -> None:
    with (
        ScriptedUpstream.running(routes=ollama("qwen3:8b", "gemma4:31b")) as first,
        ScriptedUpstream.running(routes=llama_cpp("smol")) as second,
    ):
        at(tmp_path, ollama=first.base_url, llama_cpp=second.base_url)
        with served(tmp_path) as gateway:
            assert {"ollama/qwen3:8b", "ollama/gemma4:31b", "llama-cpp/smol", "demo/demo"} <= set(names(gateway))
            assert text_of(ask(gateway)[1]) == "from llama", "the first of them answers where nobody names a model"
            assert text_of(ask(gateway, model="ollama/gemma4:31b")[1]) == "from ollama"
            told = until(lambda: "Try it" in (log := gateway.log.read_text()) and log)
    assert "provider.noticed provider=ollama" in told
    assert "default model   llama-cpp/smol" in told
    assert f"✓ found at {first.url.removeprefix('http://')}" in told


def test_a_key_in_the_environment_goes_first(tmp_path: Path) -> None:
    with ScriptedUpstream.running(routes=ollama("qwen3:8b")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        with served(tmp_path, DEEPSEEK_API_KEY="sk-not-a-real-one") as gateway:
            told = until(lambda: "Try it" in (log := gateway.log.read_text()) and log)
            assert "ollama/qwen3:8b" in names(gateway)
    assert "default model   deepseek/" in told
    assert "$DEEPSEEK_API_KEY" in told
    assert "sk-not-a-real-one" not in told


def test_one_that_starts_later_is_found_when_it_is_asked_for(tmp_path: Path) -> None:
    with ScriptedUpstream.running() as empty:
        port = empty.port
    at(tmp_path, ollama=f"http://127.0.0.1:{port}/v1")
    with served(tmp_path) as gateway:
        status, answer = ask(gateway, model="ollama/qwen3:8b")
        assert status == 400
        assert f"no server of it answers at `127.0.0.1:{port}` on this machine; start it" in answer["error"]["message"]
        with ScriptedUpstream.running(routes=ollama("qwen3:8b"), port=port):
            until(lambda: ask(gateway, model="ollama/qwen3:8b")[0] == 200)
            assert "ollama/qwen3:8b" in names(gateway)


def test_another_program_on_the_port_is_never_asked_a_question(tmp_path: Path) -> None:
    with ScriptedUpstream.running(default=reply([{"name": "a"}]), strict=False) as other:
        at(tmp_path, ollama=other.base_url, llama_cpp=other.base_url, vllm=other.base_url)
        with served(tmp_path) as gateway:
            assert [name for name in names(gateway) if not name.startswith("demo/")] == []
            assert ask(gateway, model="llama-cpp/x")[0] == 400
        assert all(request.method == "GET" for request in [*other.requests, *other.questions])


GUARDED = {
    "switched off": "[discovery]\nlocal = false\n",
    "other providers are named": "[providers.demo]\n",
    "a key is asked for": "[server]\napi_keys = ['guest-key-1234']\n",
    "an admin's key": "[server]\nadmin_key = 'admin-key-1234'\n",
    "several teams": "[teams.red]\n",
}


@pytest.mark.parametrize("text", GUARDED.values(), ids=list(GUARDED))
def test_nobody_looks_where_that_would_open_a_door(tmp_path: Path, text: str) -> None:
    with ScriptedUpstream.running(routes=ollama("qwen3:8b")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        with served(tmp_path, PLAIN + text) as gateway:
            key = "guest-key-1234" if "guest" in text else "admin-key-1234"
            until(lambda: "Try it" in gateway.log.read_text())
            status, answer = fetch(
                f"{gateway.url}/v1/responses",
                {"input": "hi", "model": "ollama/qwen3:8b"},
                authorization=f"Bearer {key}",
            )
        assert (status, answer["error"]["code"]) == (400, "unknown_provider")
        assert "no server of it answers" not in answer["error"]["message"]
        assert upstream.requests == upstream.questions == []


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("", True),
        ("[server]\nhost = '0.0.0.0'\nopen = true\n", False),
        ("[server]\nhost = '::1'\n", True),
        ("[server]\nhost = '10.0.0.1'\nunix_socket = '/run/x.sock'\n", True),
        ("[models]\ndefault = 'demo/demo'\n", True),
        ("[providers.deepseek]\n", False),
    ],
)
def test_only_a_gateway_for_this_machine_alone_looks(tmp_path: Path, text: str, allowed: bool) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(text)
    assert may_look(load_config(file, environ={"HOME": str(tmp_path), "DEEPSEEK_API_KEY": "k"})) is allowed


def read(folder: Path, noticed: dict[str, str] | None = None) -> Any:
    return load_config(environ={"HOME": str(folder)}, cwd=folder, noticed=noticed)


async def test_one_that_is_gone_is_let_go_after_a_second_look(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes=ollama("a", "b")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        noticing = Noticing(read(tmp_path))
        assert await noticing.look()
        assert noticing.found == {"ollama": "a"}
        assert not await noticing.look(), "nothing changed"
        noticing.adopt(read(tmp_path, noticing.found))
        assert noticing.config.models.default == "ollama/a"
    assert not await noticing.look(), "it may be starting anew"
    assert await noticing.look()
    assert noticing.found == {}


async def test_the_model_is_that_of_the_file_where_the_server_has_it(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes=ollama("a", "gpt-oss:20b")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        noticing = Noticing(read(tmp_path))
        await noticing.look()
    assert noticing.found == {"ollama": "gpt-oss:20b"}


async def test_keys_that_the_store_has_count_as_well(tmp_path: Path) -> None:
    async with ScriptedUpstream(routes=ollama("a")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        shared = False
        noticing = Noticing(read(tmp_path), shared=lambda: shared)
        await noticing.look()
        assert noticing.counted == {"ollama": "a"}
        shared = True
        assert noticing.counted == {}
        assert noticing.miss("llama-cpp") == ""
        assert await noticing.look()
        assert noticing.found == {}


async def test_looks_come_no_closer_than_the_pause_however_often_one_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(tmp_path)
    noticing, looks, seen = Noticing(read(tmp_path)), list[str](), asyncio.Event()

    async def look() -> bool:
        looks.append("look")
        return True

    monkeypatch.setattr(noticing, "look", look)
    monkeypatch.setattr(module, "_PAUSE", 3600.0)
    task = asyncio.create_task(noticing.keep_looking(seen.set))
    await turns()
    assert "start it" in noticing.miss("ollama")
    await asyncio.wait_for(seen.wait(), 10)
    for _ in range(100):
        noticing.miss("ollama")
    await turns()
    assert looks == ["look"]
    task.cancel()


def test_a_chat_in_the_terminal_finds_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    with ScriptedUpstream.running(routes=ollama("qwen3:8b", says="from the terminal")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        done = CliRunner().invoke(app, ["chat", "hello"])
    assert done.exit_code == 0, done.output
    assert "from the terminal" in done.output


def test_one_that_works_without_a_key_is_told_to_want_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who reads that it is ready has to set anything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    with ScriptedUpstream.running(routes=llama_cpp("smol")) as upstream:
        at(tmp_path, llama_cpp=upstream.base_url)
        done = CliRunner().invoke(app, ["providers", "test", "llama-cpp"])
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "lists 1 model" in told
    assert f"{upstream.base_url}; it wants no key" in told
    assert "for want of one" not in told
