"""Proofs for `[limits]`: what one request, one answer and the process may take."""

from __future__ import annotations

import asyncio
from typing import Any

from isthmus.server.serve import _make_app
from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, reply, stream
from isthmus.testing.replies import chat_reply
from settings.proving import Scene, ask, http_places, proves

UPSTREAM = {"providers.main.base_url": '"@UPSTREAM@"'}
HELLO = {"model": "main/some-model", "input": "hi"}
MESSAGE = {"role": "user", "content": "hi"}


async def _statuses(scene: Scene, *bodies: dict[str, Any]) -> list[int]:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            return [await server.status("POST", "/v1/responses", {**HELLO, **body}) for body in bodies]


@proves("limits.max_values", "20")
async def more_values_are_refused(scene: Scene) -> None:
    assert await _statuses(scene, {"odd": [1] * 10}, {"odd": [1] * 20}) == [200, 400]


@proves("limits.max_values", "20")
async def they_are_counted_in_answers_too(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert [place.limits.max_values for place in http_places(gateway)] == [20]


@proves("limits.max_depth", "4")
async def deeper_ones_are_refused(scene: Scene) -> None:
    assert await _statuses(scene, {"odd": [[[1]]]}, {"odd": [[[[1]]]]}) == [200, 400]


@proves("limits.max_fields", "5")
async def more_fields_are_refused(scene: Scene) -> None:
    assert await _statuses(scene, {"temperature": 1}, {f"q{n}": 1 for n in range(4)}) == [200, 400]


@proves("limits.max_items", "2")
async def more_items_are_refused(scene: Scene) -> None:
    assert await _statuses(scene, {"input": [MESSAGE] * 2}, {"input": [MESSAGE] * 3}) == [200, 400]


@proves("limits.max_parts", "2")
async def more_parts_are_refused(scene: Scene) -> None:
    text = {"type": "input_text", "text": "x"}
    asked = [{"input": [{"role": "user", "content": [text] * count}]} for count in (2, 3)]
    assert await _statuses(scene, *asked) == [200, 400]


@proves("limits.max_tools", "2")
async def more_tools_are_refused(scene: Scene) -> None:
    tools = [{"type": "function", "name": f"f{n}", "parameters": {"type": "object"}} for n in range(3)]
    assert await _statuses(scene, {"tools": tools[:2]}, {"tools": tools}) == [200, 400]


@proves("limits.max_input", "1000")
async def longer_stories_are_refused(scene: Scene) -> None:
    with ScriptedUpstream.running(default=chat("ok")) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            async with server.session.post(server.url + "/v1/responses", json={**HELLO, "input": "x" * 900}) as answer:
                first = (await answer.json())["id"]
            assert await server.status("POST", "/v1/responses", {**HELLO, "previous_response_id": first}) == 400


@proves("limits.max_wide_text", "1000")
async def longer_texts_with_an_emoji_are_refused(scene: Scene) -> None:
    bodies = ({"input": "x" * 999 + "😀"}, {"input": "é" * 5000}, {"input": "x" * 1000 + "😀"})
    assert await _statuses(scene, *bodies) == [200, 200, 400]


@proves("limits.max_answer", "10_000")
async def a_longer_answer_is_cut(scene: Scene) -> None:
    # Much longer: what comes in one read is looked at as one.
    for step in (reply(chat_reply("x" * 20_000)), stream(chat_chunks("x" * 200_000, pieces=200))):
        with ScriptedUpstream.running([step]) as upstream:
            async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
                assert (await ask(gateway))["status"] == "incomplete"


@proves("limits.max_chunks", "10")
async def an_answer_of_more_chunks_is_cut(scene: Scene) -> None:
    with ScriptedUpstream.running([stream(chat_chunks("x" * 1000, pieces=1000))]) as upstream:
        async with scene.gateway(UPSTREAM, UPSTREAM=upstream.base_url) as gateway:
            assert (await ask(gateway, stream=True))["status"] == "incomplete"


async def _embedded(scene: Scene, *inputs: Any, answer: Any = None) -> list[int]:
    vector = {"data": [{"index": 0, "embedding": [0.5, 1.0]}], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    with ScriptedUpstream.running(default=reply(answer or vector)) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            asked = ({"model": "main/some-model", "input": each} for each in inputs)
            return [await server.status("POST", "/v1/embeddings", body) for body in asked]


@proves("limits.max_inputs", "2")
async def more_texts_are_refused(scene: Scene) -> None:
    assert await _embedded(scene, ["a"], ["a"] * 3) == [200, 400]


@proves(
    "limits.max_input_tokens", "3", beside={"providers.main.models": '{ "*" = { embeddings = { tokens = true } } }'}
)
async def more_tokens_are_refused(scene: Scene) -> None:
    assert await _embedded(scene, [1, 2, 3], [1, 2, 3, 4]) == [200, 400]


@proves("limits.max_vectors", "1000")
async def longer_vectors_are_a_failure(scene: Scene) -> None:
    assert await _embedded(scene, "a", answer={"data": [{"index": 0, "embedding": [0.25] * 500}]}) == [502]


@proves("limits.max_told", "1000")
async def so_much_of_a_background_run_is_in_memory(scene: Scene) -> None:
    async with scene.gateway() as gateway:
        assert gateway.runs._limits.told == 1000


async def _second_status(scene: Scene) -> int:
    """How a request fares while another one is served."""
    gate = Gate()
    with ScriptedUpstream.running([reply(chat_reply("held"), after=gate), chat("ok")], strict=False) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            first = asyncio.create_task(server.status("POST", "/v1/responses", {**HELLO, "input": "x" * 2000}))
            await upstream.received(1)
            try:
                async with server.session.post(server.url + "/v1/responses", json=HELLO) as answer:
                    assert answer.status == 200 or answer.headers["retry-after"] == "1"
                    return answer.status
            finally:
                gate.open()
                assert await first == 200, "what is served goes on"


@proves("limits.max_serving", "1000")
async def one_more_is_refused_while_so_much_is_served(scene: Scene) -> None:
    assert await _second_status(scene) == 503


@proves("limits.max_serving", "20_000")
async def what_a_request_leads_to_is_counted_too(scene: Scene) -> None:
    """Two small requests that each lead to a long story: there is room for one of them at a time."""
    gate = Gate()
    steps = [chat("noted"), reply(chat_reply("held"), after=gate), chat("ok")]
    with ScriptedUpstream.running(steps, strict=False) as upstream:
        async with scene.served(UPSTREAM, UPSTREAM=upstream.base_url) as server:
            async with server.session.post(server.url + "/v1/responses", json={**HELLO, "input": "x" * 4000}) as answer:
                further = {**HELLO, "previous_response_id": (await answer.json())["id"]}
            first = asyncio.create_task(server.status("POST", "/v1/responses", further))
            await upstream.received(2)
            async with server.session.post(server.url + "/v1/responses", json=further) as answer:
                assert answer.status == 503
                assert "`limits.max_serving`" in (await answer.json())["error"]["message"]
                assert answer.headers["retry-after"] == "1"
            gate.open()
            assert await first == 200, "what is served goes on"
            assert await server.status("POST", "/v1/responses", further) == 200
            assert len(upstream.requests) == 3, "what is refused is not sent"


@proves("limits.max_memory", "1000")
async def one_more_is_refused_by_a_process_of_so_much(scene: Scene) -> None:
    assert await _second_status(scene) == 503


async def _vitals(scene: Scene) -> Any:
    """Of the server that really runs."""
    seen: list[Any] = []

    def spy(*given: Any) -> Any:
        seen.append(given[2].vitals)
        return _make_app(*given)

    scene.monkeypatch.setattr("isthmus.server.serve._make_app", spy)
    async with scene.served() as server, server.session.get(server.url + "/ready") as answer:
        assert (await answer.json())["loop_lag_ms"]["worst_of_a_minute"] >= 0
    return seen[0]


@proves("limits.slow_loop", "7")
async def a_delay_of_so_long_is_told(scene: Scene) -> None:
    assert (await _vitals(scene))._slow == 7.0


@proves("limits.stuck_loop", "7")
async def after_so_long_it_is_stuck(scene: Scene) -> None:
    assert (await _vitals(scene))._stuck == 7.0
