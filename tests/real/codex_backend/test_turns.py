"""Whole turns through the real binary: words, tools, choices, schemas, several threads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isthmus.bridge.deltas import Finished, Reasoning, Text, Usage, Used
from isthmus.bridge.dialects.codex.wire import TurnSpec, image_input
from isthmus.testing import Answer, Gate, RecordedRequest, stream
from isthmus.upstream.codex.catalog import with_plain_catalog
from real.codex_backend.rig import (
    TIME,
    WEATHER,
    Rig,
    answer,
    ask,
    calls,
    calls_of,
    closed_message,
    collect,
    completed,
    in_loop,
    next_said,
    opened_message,
    outputs_in,
    real,
    rig,
    run,
    running,
    says,
    spec,
    text_delta,
    text_of,
    tool_names,
)

pytestmark = real

USED = Used(Usage(10, 5, 15, cached_tokens=3, reasoning_tokens=2))
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@in_loop
async def test_text_arrives_token_by_token_while_the_upstream_is_still_speaking(tmp_path: Path) -> None:
    gate = Gate("second half")
    answer = [*opened_message(), text_delta("Hel"), gate, text_delta("lo"), closed_message("Hello"), completed()]
    async with rig(tmp_path, stream(answer, done=False)) as codex:
        thread = await codex.start(spec())
        leg = run(thread, ask())
        assert await next_said(leg) == Text("Hel")
        gate.open()
        assert await collect(leg) == [Text("lo"), USED, Finished("stop")]
        assert thread.rests == "idle"


@in_loop
async def test_reasoning_summaries_and_exact_usage_come_through(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Hi", thought="Hmm")) as codex:
        thread = await codex.start(spec(developer_instructions="DEV"))
        deltas = await collect(run(thread, ask(effort="low", summary="concise")))
        assert deltas == [Reasoning("Hmm", "summary"), Text("Hi"), USED, Finished("stop")]
        body = codex.bodies()[0]
        assert body["reasoning"] == {"effort": "low", "summary": "concise"}
        assert [item["content"][0]["text"] for item in body["input"]] == ["BASE", "DEV", "Hello?"]


@in_loop
async def test_one_tool_pauses_the_leg_and_its_output_continues_the_same_turn(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", '{"city" :  "Paris"}')), says("Sunny")) as codex:
        thread = await codex.start(spec(WEATHER))
        deltas = await collect(run(thread, ask()))
        assert calls_of(deltas) == [("call_a", "get_weather", '{"city" :  "Paris"}')]
        assert deltas[-2:] == [USED, Finished("tool_calls")]
        assert thread.pending == ("call_a",)
        deltas = await collect(answer(thread, {"call_a": "21 °C"}))
        assert deltas == [Text("Sunny"), USED, Finished("stop")]
        assert outputs_in(codex.bodies()[1]) == [("call_a", "21 °C")]
        assert len(codex.bodies()) == 2


@in_loop
async def test_two_parallel_tools_are_answered_in_reverse_order(tmp_path: Path) -> None:
    made = calls(("call_a", "get_weather", '{"city": "Paris"}'), ("call_b", "get_weather", '{"city": "Rome"}'))
    async with rig(tmp_path, made, says("Both")) as codex:
        thread = await codex.start(spec(WEATHER))
        deltas = await collect(run(thread, ask()))
        assert [call[0] for call in calls_of(deltas)] == ["call_a", "call_b"]
        outputs = {"call_b": "rain", "call_a": "sun"}
        assert text_of(await collect(answer(thread, outputs))) == "Both"
        assert sorted(outputs_in(codex.bodies()[1])) == [("call_a", "sun"), ("call_b", "rain")]


@in_loop
async def test_several_rounds_of_tools_stay_in_one_turn(tmp_path: Path) -> None:
    rounds = [calls((f"call_{n}", "get_weather", "{}")) for n in range(3)]
    async with rig(tmp_path, *rounds, says("Done")) as codex:
        thread = await codex.start(spec(WEATHER))
        deltas = await collect(run(thread, ask()))
        for n in range(3):
            assert thread.pending == (f"call_{n}",)
            deltas = await collect(answer(thread, {f"call_{n}": str(n)}))
        assert text_of(deltas) == "Done"
        assert outputs_in(codex.bodies()[3]) == [("call_0", "0"), ("call_1", "1"), ("call_2", "2")]


@in_loop
async def test_a_held_call_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", "{}")), says("Other"), says("Late")) as codex:
        thread = await codex.start(spec(WEATHER))
        await collect(run(thread, ask()))
        other = await codex.start(spec())
        assert text_of(await collect(run(other, ask()))) == "Other"
        assert text_of(await collect(answer(thread, {"call_a": "x"}))) == "Late"


@in_loop
async def test_a_forced_choice_offers_only_that_tool_upstream(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Hi")) as codex:
        choice = {"type": "function", "function": {"name": "get_time"}}
        thread = await codex.start(spec(WEATHER, TIME, choice=choice))
        await collect(run(thread, ask()))
        assert codex.bodies()[0]["tools"] == [
            {**TIME, "description": "", "strict": False},
        ]


@in_loop
async def test_choice_none_offers_no_tools_upstream(tmp_path: Path) -> None:
    async with rig(tmp_path, says("Hi")) as codex:
        thread = await codex.start(spec(WEATHER, TIME, choice="none"))
        await collect(run(thread, ask()))
        assert codex.bodies()[0].get("tools", []) == []
        assert b"get_weather" not in codex.upstream.requests[0].body


@in_loop
async def test_a_tool_named_like_a_built_in_is_not_shadowed(tmp_path: Path) -> None:
    patch = {"type": "function", "name": "apply_patch", "description": "mine", "parameters": {"type": "object"}}
    made = calls(("call_a", "client_apply_patch", "{}"))
    async with rig(tmp_path, made, says("Done")) as codex:
        thread = await codex.start(spec(patch, model="gpt-5.5", model_only=False))
        deltas = await collect(run(thread, ask()))
        assert calls_of(deltas) == [("call_a", "apply_patch", "{}")]
        mine = [tool for tool in codex.bodies()[0]["tools"] if tool.get("description") == "mine"]
        assert [tool["name"] for tool in mine] == ["client_apply_patch"]
        await collect(answer(thread, {"call_a": "ok"}))


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-6.1-sol"])
def test_catalog_models_see_exactly_the_clients_tools(tmp_path: Path, model: str) -> None:
    @in_loop
    async def check() -> None:
        async with rig(tmp_path, calls(("call_a", "get_weather", '{"city": "Oslo"}')), says("Snow")) as codex:
            options = await with_plain_catalog(codex.options, tmp_path / "models.json")
            async with running(options) as it:
                thread = await Rig(codex.upstream, *it).start(spec(WEATHER, model=model))
                deltas = await collect(run(thread, ask()))
                assert calls_of(deltas) == [("call_a", "get_weather", '{"city": "Oslo"}')]
                assert tool_names(codex.bodies()[0]) == ["get_weather"]
                assert text_of(await collect(answer(thread, {"call_a": "x"}))) == "Snow"

    check()


@in_loop
async def test_calls_with_broken_arguments_are_left_to_codex_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with rig(tmp_path, calls(("call_a", "get_weather", '{"city": ')), says("Sorry")) as codex:
        thread = await codex.start(spec(WEATHER))
        deltas = await collect(run(thread, ask()))
        assert calls_of(deltas) == []
        assert text_of(deltas) == "Sorry"
        assert deltas[-2] == Used(Usage(20, 10, 30, cached_tokens=6, reasoning_tokens=4))


@in_loop
async def test_an_output_schema_reaches_the_upstream_as_its_format(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    async with rig(tmp_path, says('{"a":"b"}')) as codex:
        thread = await codex.start(spec())
        assert text_of(await collect(run(thread, ask(output_schema=schema)))) == '{"a":"b"}'
        sent = codex.bodies()[0]["text"]["format"]
        assert (sent["type"], sent["schema"]) == ("json_schema", schema)


@in_loop
async def test_images_travel_as_data_urls(tmp_path: Path) -> None:
    async with rig(tmp_path, says("A pixel")) as codex:
        thread = await codex.start(spec())
        await collect(run(thread, TurnSpec(items=(image_input(PIXEL),))))
        assert PIXEL.encode() in codex.upstream.requests[0].body


@in_loop
async def test_three_threads_at_once_do_not_mix(tmp_path: Path) -> None:
    def by_question(request: RecordedRequest) -> Answer:
        body = request.json
        name = body["input"][-1]["content"][0]["text"] if not outputs_in(body) else None
        if name is not None:
            return calls((f"call_{name}", "get_weather", f'{{"city": "{name}"}}'))
        return says(f"It is {outputs_in(body)[0][1]}")

    async with rig(tmp_path, *[by_question] * 6) as codex:

        async def converse(name: str) -> str:
            thread = await codex.start(spec(WEATHER))
            deltas = await collect(run(thread, ask(name)))
            assert calls_of(deltas) == [(f"call_{name}", "get_weather", f'{{"city": "{name}"}}')]
            return text_of(await collect(answer(thread, {f"call_{name}": f"fine in {name}"})))

        names = ["Oslo", "Rome", "Lima"]
        answers = await asyncio.gather(*(converse(name) for name in names))
        assert answers == [f"It is fine in {name}" for name in names]
        assert len(codex.threads) == 3


@in_loop
async def test_turns_of_one_thread_see_each_other(tmp_path: Path) -> None:
    async with rig(tmp_path, says("First"), says("Second")) as codex:
        thread = await codex.start(spec())
        first, second = [await collect(run(thread, ask(question))) for question in ("1", "2")]
        assert (text_of(first), text_of(second)) == ("First", "Second")
        texts = [item["content"][0]["text"] for item in codex.bodies()[1]["input"]]
        assert texts == ["BASE", "1", "First", "2"]


@in_loop
async def test_leaving_early_interrupts_the_turn_and_closes_the_upstream_socket(tmp_path: Path) -> None:
    gate = Gate("never")
    async with rig(tmp_path, stream([*opened_message(), text_delta("Hel"), gate], done=False)) as codex:
        thread = await codex.start(spec())
        assert await next_said(run(thread, ask())) == Text("Hel")
        thread.close()
        await codex.upstream.requests[0].closed.waited(5)
        assert codex.upstream.requests[0].left_early
        gate.open()


@in_loop
async def test_a_turn_without_a_word_is_interrupted_too(tmp_path: Path) -> None:
    gate = Gate("never")
    async with rig(tmp_path, stream([*opened_message(), gate], done=False)) as codex:
        thread = await codex.start(spec())
        reader = asyncio.create_task(collect(run(thread, ask())))
        request = await codex.upstream.received()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        thread.close()
        await request.closed.waited(5)
        gate.open()
