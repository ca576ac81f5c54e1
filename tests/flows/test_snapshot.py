"""A provider that nobody keeps a file for, from a key in the environment to the bytes that reach it."""

from __future__ import annotations

from pathlib import Path

from isthmus.bridge.parse import parse_request
from isthmus.config import load_config
from isthmus.config.schema import ProviderConfig
from isthmus.gateway.caller import LOCAL
from isthmus.providers import load_provider
from isthmus.testing import ScriptedUpstream, chat
from isthmus.wiring import http_endpoint, running_gateway
from isthmus.wiring_bridge import Bridge
from serving import running_gateway_process, running_gateway_server
from speaking_messages import claude, said
from speaking_responses import native
from talking import Talk

KEY = "sk-nebius-51c0de"
GLM = "nebius/zai-org/GLM-5.2"


async def test_a_key_alone_serves_it_at_its_own_address_with_that_key(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "NEBIUS_API_KEY": KEY}
    config = load_config(None, overrides={"store.url": "memory:"}, environ=environ, cwd=tmp_path).config
    async with running_gateway(config) as gateway:
        candidate = gateway.directory.find(GLM)
        assert candidate.target.capabilities.limits.context == 432_000
        served = candidate.served
        endpoint = http_endpoint("nebius", served.provider, config.providers["nebius"], "")
        assert endpoint.url == "https://api.tokenfactory.nebius.com/v1/chat/completions"
        assert endpoint.headers["authorization"] == f"Bearer {KEY}"


def test_a_process_with_the_key_in_its_environment_plans_with_the_models_own_facts(tmp_path: Path) -> None:
    settings = '[store]\nurl = "memory:"\n[providers.nebius]\napi_key = "${NEBIUS_API_KEY}"\n'
    with (
        ScriptedUpstream.running([chat("hello")]) as upstream,
        running_gateway_process(
            f'{settings}base_url = "{upstream.base_url}"\n', tmp_path, environ={"NEBIUS_API_KEY": KEY}
        ) as gateway,
    ):
        talk = Talk(gateway.url)
        asked = {"model": GLM, "input": "hi", "max_output_tokens": 999_999, "reasoning": {"effort": "xhigh"}}
        answer = talk.post("/v1/responses", asked)
        assert answer.status == 200, answer.json
        sent = upstream.requests[0]
        assert sent.headers["authorization"] == f"Bearer {KEY}"
        assert sent.json["model"] == "zai-org/GLM-5.2"
        assert sent.json["max_tokens"] == 432_000
        assert sent.json["reasoning_effort"] == "high"
        listed = [model["id"] for model in talk.get("/v1/models").json["data"]]
        assert GLM in listed
        assert len([id for id in listed if id.startswith("nebius/")]) == 10


def test_a_process_with_nothing_but_the_key_offers_its_models_and_keeps_other_tokens_to_itself(tmp_path: Path) -> None:
    environ = {"NEBIUS_API_KEY": KEY, "GITHUB_TOKEN": "ghp-1", "HF_TOKEN": "hf-1"}
    with running_gateway_process('[store]\nurl = "memory:"\n', tmp_path, environ=environ) as gateway:
        talk = Talk(gateway.url)
        body = talk.get("/v1/models")
        owners = {model["owned_by"] for model in body.json["data"]}
        assert owners == {"nebius", "demo"}
        refused = talk.post("/v1/responses", {"model": "github-models/openai/gpt-4.1", "input": "hi"})
        assert refused.status == 400
        assert "add `[providers.github-models]` to the configuration" in refused.json["error"]["message"]
        missing = talk.post("/v1/responses", {"model": "novita-ai/some-model", "input": "hi"})
        assert "set `NOVITA_API_KEY` in the environment of the gateway" in missing.json["error"]["message"]


async def test_the_library_takes_it_by_its_name(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "GITHUB_TOKEN": "ghp-1"}
    async with Bridge(environ=environ) as bridge:
        line = (await bridge._connect.find("github-models/openai/gpt-4.1")).line
        assert line._backend.wire.endpoint.url == "https://models.github.ai/inference/chat/completions"
        assert line._backend.wire.endpoint.headers["authorization"] == "Bearer ghp-1"


async def test_its_key_goes_to_no_other_host(tmp_path: Path) -> None:
    with ScriptedUpstream.running([chat("hello")]) as upstream:
        file = tmp_path / "isthmus.toml"
        file.write_text(f'[store]\nurl = "memory:"\n[providers.nebius]\nbase_url = "{upstream.base_url}"\n')
        config = load_config(file, environ={"HOME": str(tmp_path), "NEBIUS_API_KEY": KEY}).config
        async with running_gateway(config) as gateway:
            run = await gateway.create(LOCAL, parse_request({"model": GLM, "input": "hi"}))
            async for _ in run.events():
                pass
        assert "authorization" not in upstream.requests[0].headers


ZEN = {
    "opencode/gpt-5.5": ("/v1/responses", "authorization", native("hello")),
    "opencode/claude-sonnet-5": ("/v1/messages", "x-api-key", claude(said("hello"))),
    "opencode/glm-5.2": ("/v1/chat/completions", "authorization", chat("hello")),
    "opencode/brand-new": ("/v1/chat/completions", "authorization", chat("hello")),
}


def test_each_model_of_a_house_is_spoken_to_in_its_own_protocol(tmp_path: Path) -> None:
    with ScriptedUpstream.running(answer for _, _, answer in ZEN.values() for _ in range(2)) as upstream:
        toml = (
            '[store]\nurl = "memory:"\n[server]\nport = 0\n[log]\nlevel = "error"\n'
            f'[providers.opencode]\nbase_url = "{upstream.base_url}"\napi_key = "{KEY}"\nask = false\n'
        )
        with running_gateway_server(toml) as gateway:
            talk = Talk(gateway.url)
            for model in ZEN:
                assert talk.create({"model": model, "input": "hi"})["output_text"] == "hello"
                assert talk.stream({"model": model, "input": "hi"})[1]["output"][-1]["content"][0]["text"] == "hello"
            listed = {model["id"] for model in talk.get("/v1/models").json["data"]}
    for (path, header, _), sent in zip((way for way in ZEN.values() for _ in range(2)), upstream.requests, strict=True):
        assert sent.path == path
        shown = {name for name in ("authorization", "x-api-key") if name in sent.headers}
        assert shown == {header}, "one house, and in each protocol one way to show the key"
        assert sent.headers[header].removeprefix("Bearer ") == KEY
        assert ("anthropic-version" in sent.headers) is (path == "/v1/messages")
    assert any(name.startswith(("opencode/gpt-", "opencode/claude-")) for name in listed)


def test_a_dialect_that_the_user_names_is_the_only_one(tmp_path: Path) -> None:
    with ScriptedUpstream.running([chat("hello")]) as upstream:
        toml = (
            '[store]\nurl = "memory:"\n[server]\nport = 0\n[log]\nlevel = "error"\n[providers.opencode]\n'
            f'base_url = "{upstream.base_url}"\napi_key = "{KEY}"\nask = false\ndialect = "chat"\n'
        )
        with running_gateway_server(toml) as gateway:
            assert Talk(gateway.url).create({"model": "opencode/gpt-5.5", "input": "hi"})["output_text"] == "hello"
        assert [request.path for request in upstream.requests] == ["/v1/chat/completions"]


def test_a_protocol_may_have_an_address_of_its_own() -> None:
    settings = ProviderConfig(api_key=KEY)
    zenmux = http_endpoint("zenmux", load_provider("zenmux"), settings, "")
    assert zenmux.url == "https://zenmux.ai/api/v1/chat/completions"
    assert {name: other.url for name, other in zenmux.others.items()} == {
        "embeddings": "https://zenmux.ai/api/v1/embeddings",
        "images": "https://zenmux.ai/api/v1/images/generations",
        "image edits": "https://zenmux.ai/api/v1/images/edits",
        "responses": "https://zenmux.ai/api/v1/responses",
        "messages": "https://zenmux.ai/api/anthropic/v1/messages",
    }
    free = http_endpoint("freemodel", load_provider("freemodel"), settings, "", "messages")
    assert free.url == "https://cc.freemodel.dev/v1/messages"
    assert free.others["chat"].url == "https://api.freemodel.dev/v1/chat/completions"
    assert KEY in [secret.value for secret in http_endpoint("x", load_provider("freemodel"), settings, "").secrets()]
