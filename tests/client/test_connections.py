"""From a name to a model: spellings, profiles, the environment, a gateway."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus import (
    Bridge,
)
from isthmus.client.names import ModelName, split_model
from isthmus.config.schema import Config, Models, ProviderConfig
from isthmus.errors import ConfigError, RequestRefused
from isthmus.testing import ScriptedUpstream, chat
from reaching import reach


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai/gpt-5", ModelName("openai", "gpt-5")),
        ("openai:gpt-5", ModelName("openai", "gpt-5")),
        ("openai@prod:gpt-5", ModelName("openai", "gpt-5", "prod")),
        ("openai@prod/gpt-5", ModelName("openai", "gpt-5", "prod")),
        ("openai:ft:gpt-4o:acme", ModelName("openai", "ft:gpt-4o:acme")),
        ("openrouter/meta-llama/llama-3:free", ModelName("openrouter", "meta-llama/llama-3:free")),
        ("openrouter:meta-llama/llama-3", ModelName("openrouter", "meta-llama/llama-3")),
        ("llama3:8b", None),
        ("gpt-5", None),
        ("/x", None),
    ],
)
def test_model_names(text: str, expected: ModelName | None) -> None:
    assert split_model(text, ["openai", "openrouter"]) == expected


class TestConnections:
    def _ask(self, name: str | None, **options: Any) -> str:
        """The model that the upstream was asked for."""

        async def main() -> str:
            with ScriptedUpstream.running([chat("ok")]) as upstream:
                place = {"base_url": upstream.base_url, "api_key": "k"}
                async with Bridge({"deepseek": {"default": place}}, **options) as bridge:
                    await bridge.chat(name, "hi")
                return str(upstream.requests[0].json["model"])

        return asyncio.run(main())

    def test_every_spelling_leads_to_the_model(self) -> None:
        for name in ("deepseek/m", "deepseek:m", "m"):
            assert self._ask(name) == "m"

    def test_aliases_of_the_configuration_count(self) -> None:
        config = Config(models=Models(aliases={"fast": "deepseek/deepseek-flash"}))
        assert self._ask("fast", config=config) == "deepseek-flash"

    def test_no_name_means_the_default(self) -> None:
        assert self._ask(None, default="deepseek/d") == "d"

    def test_an_unknown_provider_is_refused_with_a_suggestion(self) -> None:
        with pytest.raises(RequestRefused, match="deepseek"):
            self._ask("deepsek/m")

    def test_an_unknown_profile_is_refused_with_a_suggestion(self) -> None:
        async def main() -> None:
            async with Bridge({"openai": {"prod": {"api_key": "k"}}}) as bridge:
                await bridge.chat("openai@prd/gpt-5", "hi")

        with pytest.raises(ConfigError, match="did you mean `prod`"):
            asyncio.run(main())

    def test_a_missing_key_is_named(self) -> None:
        async def main() -> None:
            async with Bridge() as bridge:
                await bridge.chat("groq/llama", "hi")

        with pytest.raises(ConfigError, match="GROQ_API_KEY"):
            asyncio.run(main())

    def test_an_unknown_setting_of_a_profile_is_named(self) -> None:
        with pytest.raises(ConfigError, match="api_kye"):
            Bridge({"openai": {"prod": {"api_kye": "k"}}})

    def test_from_env_uses_the_keys_of_the_environment(self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

        async def main() -> None:
            with ScriptedUpstream.running([chat("ok")]) as upstream:
                environ = {
                    "GROQ_API_KEY": "key-g",
                    "HOME": str(tmp_path),
                    "ISTHMUS_PROVIDERS_OPENAI_COMPATIBLE_BASE_URL": upstream.base_url,
                }
                async with Bridge.from_env(environ=environ) as bridge:
                    assert "groq" in {model.provider for model in await bridge.models()}
                    await bridge.chat("openai-compatible/any", "hi")

        asyncio.run(main())

    def test_from_env_with_a_base_url_talks_to_that_gateway(self) -> None:
        async def main() -> None:
            with ScriptedUpstream.running([{"status": "completed", "id": "r", "output": [], "model": "m"}]) as upstream:
                environ = {"ISTHMUS_BASE_URL": upstream.url, "ISTHMUS_API_KEY": "k", "ISTHMUS_MODEL": "fast"}
                async with Bridge.from_env(environ=environ) as bridge:
                    await bridge.chat(None, "hi", stream=False)
                (request,) = upstream.requests
                assert (request.path, request.headers["authorization"]) == ("/v1/responses", "Bearer k")
                assert request.json["model"] == "fast"

        asyncio.run(main())

    def test_the_demo_needs_no_key_and_no_server(self) -> None:
        async def main() -> None:
            async with Bridge({"demo": {"default": ProviderConfig()}}) as bridge:
                reply = await bridge.chat("demo/demo", "Say hello")
                assert reply.text

        asyncio.run(main())

    def test_models_are_listed_with_what_they_can_do_and_unknown_ones_are_allowed(self) -> None:
        async def main() -> None:
            async with Bridge({"deepseek": {"default": {"api_key": "k"}}}) as bridge:
                known = {model.name: model for model in await bridge.models()}
                pro = known["deepseek/deepseek-v4-pro"]
                assert pro.context_window == 1_000_000
                assert pro.cost is not None
                assert (await bridge.model("deepseek/deepseek-v4-pro")).known
                assert not (await bridge.model("deepseek/never-heard-of")).known

        asyncio.run(main())

    def test_a_gateway_lists_its_models(self) -> None:
        async def main() -> None:
            async with reach("gateway") as (bridge, _):
                listed = {model.name: model for model in await bridge.models()}
                assert listed["openai/gpt-5"].context_window == 400_000
                assert listed["openai/gpt-5"].provider == "openai"

        asyncio.run(main())

    def test_a_gateways_refusal_names_the_field(self) -> None:
        async def main() -> None:
            async with reach("gateway") as (bridge, _):
                await bridge.chat("nobody/model", "hi")

        with pytest.raises(RequestRefused) as caught:
            asyncio.run(main())
        assert caught.value.param == "model"


def test_diagnostics_survive_a_gateway() -> None:
    async def ask(wire: str) -> Any:
        async with reach(wire, [lambda wire: chat("ok")]) as (bridge, _):
            reply = await bridge.chat("openai/gpt-4o", "hi", extra={"truncation": "auto", "max_tool_calls": 3})
            return [(one["code"], one["path"]) for one in reply.diagnostics]

    direct, remote = asyncio.run(ask("chat")), asyncio.run(ask("gateway"))
    assert direct == remote
    assert direct
