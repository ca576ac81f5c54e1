"""Who listens is known by the shape of the answer: the servers are, other programs on the same port are not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.providers import load_provider
from isthmus.providers.schema import NoticeFacts
from isthmus.testing import Answer, ScriptedUpstream, drop, error, html_error, malformed_json, reply, silence
from isthmus.upstream.notice import recognise, shows

TAGS = {
    "models": [
        {
            "name": "qwen3:8b",
            "model": "qwen3:8b",
            "modified_at": "2026-11-01T10:00:00.000000000+01:00",
            "size": 5225388164,
            "digest": "500a1f067a9f782620b40bee6f7b0c89e17ae61f686b92c24933e4ca4b2b8b41",
            "details": {"format": "gguf", "family": "qwen3", "parameter_size": "8.2B"},
        }
    ]
}
LLAMA = {
    "models": [],
    "object": "list",
    "data": [{"id": "smol", "object": "model", "owned_by": "llamacpp", "meta": {}}],
}
STUDIO = {
    "object": "list",
    "data": [
        {
            "id": "qwen2-vl-7b-instruct",
            "object": "model",
            "type": "vlm",
            "publisher": "mlx-community",
            "arch": "qwen2_vl",
            "compatibility_type": "mlx",
            "state": "not-loaded",
            "max_context_length": 32768,
        }
    ],
}
VLLM = {
    "object": "list",
    "data": [{"id": "Qwen/Qwen3-8B", "object": "model", "owned_by": "vllm", "max_model_len": 4096}],
}
SGLANG = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "sglang", "max_model_len": 4096}]}
SERVERS: dict[str, tuple[str, Any]] = {
    "ollama": ("/api/tags", TAGS),
    "llama-cpp": ("/v1/models", LLAMA),
    "lmstudio": ("/api/v0/models", STUDIO),
    "vllm": ("/v1/models", VLLM),
    "sglang": ("/v1/models", SGLANG),
}


async def look(name: str, upstream: ScriptedUpstream, within: float = 10.0) -> tuple[str, ...]:
    return await recognise(name, upstream.base_url, load_provider(name).notice, within=within)


@pytest.mark.parametrize("name", SERVERS)
async def test_each_server_is_known_by_its_own_answer_and_takes_no_other_for_one(name: str) -> None:
    path, body = SERVERS[name]
    async with ScriptedUpstream(routes={path: reply(body)}) as upstream:
        assert len(await look(name, upstream)) == 1
        (asked,) = upstream.requests
        assert (asked.method, asked.body) == ("GET", b"")
        assert "authorization" not in asked.headers
        for other in SERVERS.keys() - {name}:
            assert await look(other, upstream) == (), other


OTHERS: dict[str, Answer] = {
    "a page": reply(b"<html>Jenkins</html>"),
    "a list of other things": reply([{"name": "x"}, {"id": "y"}]),
    "a list that looks like models": reply({"data": [{"id": "gpt", "owned_by": "openai"}]}),
    "an empty list": reply({"object": "list", "data": [], "models": []}),
    "numbers": reply({"data": [{"id": 1, "owned_by": 2}], "models": [{"digest": 3}]}),
    "text": reply(b'"hello"'),
    "broken JSON": malformed_json(),
    "a login": error(401),
    "nothing": error(404),
    "trouble": error(500),
    "a proxy": html_error(),
    "a hang-up": drop(),
}


@pytest.mark.parametrize("answer", OTHERS.values(), ids=list(OTHERS))
@pytest.mark.parametrize("name", SERVERS)
async def test_another_program_on_the_port_is_nobody(name: str, answer: Answer) -> None:
    async with ScriptedUpstream(default=answer, strict=False) as upstream:
        upstream._routes[SERVERS[name][0]] = answer
        assert await look(name, upstream) == ()


async def test_silence_is_waited_for_no_longer_than_said() -> None:
    async with ScriptedUpstream(routes={"/api/tags": silence()}) as upstream:
        began = asyncio.get_running_loop().time()
        assert await look("ollama", upstream, within=0.1) == ()
        await upstream.requests[0].closed.waited(10)
    assert asyncio.get_running_loop().time() - began < 9


@pytest.mark.parametrize(
    "address", ["http://192.0.2.1:11434/v1", "http://ollama.example/v1", "http://0.0.0.0:1/v1", ""]
)
async def test_only_the_loopback_is_looked_at(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.upstream.notice.Wire", None)  # whoever asks fails
    assert await recognise("ollama", address, load_provider("ollama").notice, within=1.0) == ()


async def test_no_proxy_of_the_environment_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with ScriptedUpstream(routes={"/api/tags": reply(TAGS)}) as upstream:
        assert await look("ollama", upstream) == ("qwen3:8b",)


def test_a_place_is_a_path_of_names_and_numbers() -> None:
    body = {"a": [{"b": "c"}], "n": None}
    assert shows(body, {"a.0.b": "c"})
    assert shows(body, {"a.0.b": "*"})
    for wrong in ({"a.0.b": "d"}, {"a.1.b": "*"}, {"a.b": "*"}, {"a.0": "*"}, {"n": "*"}, {"a.0.b.0": "c"}):
        assert not shows(body, wrong), wrong


async def test_a_file_that_says_nothing_is_not_looked_for() -> None:
    assert await recognise("x", "http://127.0.0.1:1/v1", NoticeFacts(), within=1.0) == ()
