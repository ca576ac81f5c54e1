"""The smaller rooms of the client: names, limits on rates, retries, repairs, prices, saved messages, models, imports."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus import (
    Bridge,
    CodePart,
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    RateLimit,
    RefusalPart,
    Retry,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    Usage,
    assistant,
    dump_messages,
    load_messages,
    user,
)
from isthmus.bridge.capabilities import Cost
from isthmus.client.calls import CallError, make_call
from isthmus.client.items import read_output, write_items
from isthmus.client.limiter import Limiter
from isthmus.client.names import ModelName, split_model
from isthmus.client.repair import find_problems, repair
from isthmus.client.usage import price
from isthmus.config.schema import Config, Models, ProviderConfig
from isthmus.errors import ConfigError, RateLimited, RequestRefused, UpstreamFailed, UpstreamTimedOut, specify
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


def test_usage_and_cost_are_summed_and_listed() -> None:
    total = Usage().plus(Usage(10, 5, 15, cost=0.25, requests=1)).plus(Usage(20, 5, 25, cost=0.5, requests=2))
    assert (total.input_tokens, total.total_tokens, total.cost, total.requests) == (30, 40, 0.75, 3)
    assert [turn.cost for turn in total.turns] == [0.25, 0.5]
    assert Usage().plus(Usage(cost=1.0)).plus(Usage(cost=None)).cost is None


def test_cached_input_has_its_own_price() -> None:
    assert price(1_000_000, 0, 500_000, Cost(input=2.0, cached=0.2, output=10.0)) == pytest.approx(1.1)
    assert price(1_000_000, 100_000, 0, Cost(input=2.0, output=10.0)) == pytest.approx(3.0)
    assert price(1, 1, 0, Cost()) is None


def test_one_who_gives_up_waiting_takes_nothing_along() -> None:
    async def main() -> None:
        limiter = Limiter(RateLimit(20.0))
        await limiter.take()
        waiting = asyncio.create_task(limiter.take())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        began = asyncio.get_running_loop().time()
        await limiter.take()
        assert asyncio.get_running_loop().time() - began < 0.08

    asyncio.run(main())


@pytest.mark.parametrize(
    ("failure", "attempt", "left", "expected"),
    [
        (RateLimited("", retry_after=3), 1, None, 3),
        (RateLimited("", retry_after=3), 1, 2.0, None),
        (RateLimited("", retry_after=3), 3, None, None),
        (RateLimited("", retry_after=1_000), 1, None, None),
        (UpstreamTimedOut(""), 1, None, 0.5),
        (UpstreamTimedOut(""), 2, None, 1.0),
        (specify(UpstreamFailed("", status=401)), 1, None, None),
    ],
    ids=["told", "too late", "used up", "too long", "first", "doubled", "final"],
)
def test_when_to_try_again(failure: UpstreamFailed, attempt: int, left: float | None, expected: float | None) -> None:
    assert Retry(attempts=3, base=0.5, chance=lambda: 1.0).wait(failure, attempt, left) == expected


TEXT = st.text(max_size=8)
EXTRA = st.dictionaries(TEXT, st.integers() | TEXT, max_size=2)
CALL = st.builds(
    lambda id, name, arguments, bad, extra: make_call(id, name, bad if bad else arguments, provider="p", extra=extra),
    TEXT,
    TEXT,
    EXTRA,
    st.sampled_from(["", "{oops", "[1]"]),
    EXTRA,
)
SIMPLE = st.one_of(
    st.builds(TextPart, TEXT),
    st.builds(ImagePart, TEXT, TEXT),
    st.builds(DocumentPart, TEXT, TEXT, TEXT),
    st.builds(CodePart, TEXT, TEXT),
    st.builds(ThinkingPart, TEXT, EXTRA),
    st.builds(RefusalPart, TEXT),
    st.builds(OpaquePart, EXTRA),
)
PART = st.one_of(
    SIMPLE,
    st.builds(ToolCallPart, CALL),
    st.builds(ToolResultPart, TEXT, TEXT, st.lists(SIMPLE, max_size=2).map(tuple), st.sampled_from(["ok", "error"])),
)
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant", "tool"]), st.lists(PART, max_size=4).map(tuple), EXTRA),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_law_saved_messages_come_back_the_same(messages: list[Message]) -> None:
    assert load_messages(json.loads(json.dumps(dump_messages(messages)))) == messages


@settings(max_examples=200, deadline=None)
@given(MESSAGES)
def test_law_a_repaired_history_is_valid_and_repairing_it_again_changes_nothing(messages: list[Message]) -> None:
    once = repair(messages)
    assert find_problems(once.messages) == []
    again = repair(once.messages)
    assert again.messages == once.messages
    assert again.notes == ()


def test_a_valid_history_keeps_its_very_objects() -> None:
    call = ToolCall("c", "t", {})
    given = [
        user("a"),
        assistant(calls=[call]),
        Message("tool", (ToolResultPart("c", "t", (TextPart("1"),)),)),
        user("b"),
    ]
    assert all(one is other for one, other in zip(repair(given).messages, given, strict=True))


PLAIN_CALLS = st.lists(st.dictionaries(TEXT, st.integers(), max_size=2), max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1), PLAIN_CALLS)
def test_law_the_responses_wire_carries_an_assistant_message_whole(text: str, arguments: list[dict[str, int]]) -> None:
    message = assistant(text, calls=[ToolCall(f"c{at}", "t", one) for at, one in enumerate(arguments)])
    assert read_output(write_items([message])) == message


def test_a_cut_off_call_is_marked_so() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}", "status": "incomplete"}
    (call,) = read_output([item]).tool_calls
    assert (call.arguments, call.error) == (
        None,
        CallError("incomplete", "the call was cut off before its arguments were whole"),
    )


def test_an_item_that_nobody_knows_goes_back_as_it_came() -> None:
    item = {"type": "future_call", "id": "x", "data": {"a": 1}}
    assert write_items([read_output([item])]) == [item]


IMPORT = """
import resource, sys
import isthmus
used = resource.getrusage(resource.RUSAGE_SELF)
heavy = [name for name in ("aiohttp", "pydantic", "mcp", "starlette", "uvicorn", "asyncio") if name in sys.modules]
print(used.ru_utime + used.ru_stime, heavy)
"""


def test_importing_the_package_is_quick_and_pulls_in_nothing_heavy() -> None:
    out = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout
    seconds, _, heavy = out.partition(" ")
    assert heavy.strip() == "[]"
    assert float(seconds) < 0.3


def test_the_client_itself_loads_neither_pydantic_nor_mcp_before_they_are_needed() -> None:
    names = "isthmus.Bridge, isthmus.tool, isthmus.Limits"
    code = f"import sys, isthmus; {names}; print([one for one in ('pydantic', 'mcp') if one in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    import isthmus

    for name in isthmus.__all__:
        assert getattr(isthmus, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_sort"):
        _ = isthmus.nothing_of_the_sort
