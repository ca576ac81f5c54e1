"""Errors, breaks and waits that a client can order, over a socket."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp
import openai
import pytest

from demo_requests import request
from demo_running import posted, run, user
from isthmus.demo import DemoServer
from own_time import clock, turns


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (429, openai.RateLimitError, "rate_limit_exceeded"),
        (500, openai.InternalServerError, "server_error"),
        (503, openai.InternalServerError, "server_is_overloaded"),
        (401, openai.AuthenticationError, "invalid_api_key"),
        (418, openai.APIStatusError, "invalid_request_error"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_on_order(status: int, kind: type[openai.APIStatusError], code: str, stream: bool) -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        with pytest.raises(kind) as caught:
            await client.chat.completions.create(
                model="demo", messages=user(f"[[demo: error {status}]]"), stream=stream
            )
        assert caught.value.status_code == status
        assert caught.value.code == code
        assert caught.value.response.headers.get("retry-after") == ("1" if status in (429, 503) else None)

    run(test)


def test_unknown_models_and_broken_bodies_are_refused() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="gpt-9", messages=user("x"))
        async with aiohttp.ClientSession() as session:
            for body in (b"{", b"[]", b"\xff"):
                async with session.post(f"{demo.base_url}/chat/completions", data=body) as reply:
                    assert reply.status == 400
                    assert (await reply.json())["error"]["type"] == "invalid_request_error"

    run(test)


def test_cut_breaks_off_a_stream_after_some_text() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        async with posted(demo, request("[[demo: cut]] count to 50", stream=True)) as reply:
            received = b""
            with pytest.raises(aiohttp.ClientPayloadError):
                async for data in reply.content.iter_any():
                    received += data
        assert b'"content":"1"' in received
        assert b'" 40"' not in received
        assert b"[DONE]" not in received

    run(test)


def test_cut_breaks_off_a_whole_answer() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.APIConnectionError):
            await client.chat.completions.create(model="demo", messages=user("[[demo: cut]]"))
        assert (await client.chat.completions.create(model="demo", messages=user("say hi"))).choices

    run(test)


def test_fail_sends_an_error_in_the_stream() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(
            model="demo", messages=user("[[demo: fail]] count to 9"), stream=True
        )
        seen = ""
        with pytest.raises(openai.APIError, match="asked to fail"):
            async for chunk in stream:
                seen += chunk.choices[0].delta.content or ""
        assert seen.startswith("1, 2")
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="demo", messages=user("[[demo: fail]]"))

    run(test)


@pytest.mark.parametrize("stream", [False, True])
def test_garble_sends_what_is_no_json(stream: bool) -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        async with posted(demo, request("[[demo: garble]] count to 9", stream=stream)) as reply:
            body = await reply.text()
        events = [line.removeprefix("data: ") for line in body.split("\n\n")[:-2]] if stream else [body]
        with pytest.raises(json.JSONDecodeError):
            json.loads(events[-1])
        for event in events[:-1]:
            assert json.loads(event)["choices"]

    run(test)


def test_slow_says_at_once_that_it_heard_and_then_waits() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        clock().stop_clock()
        stream = await client.chat.completions.create(
            model="demo", messages=user("[[demo: slow 0.5]] say hi"), stream=True
        )
        chunks = aiter(stream)
        assert (await anext(chunks)).choices[0].delta.role == "assistant"
        said = asyncio.ensure_future(anext(chunks))
        await turns()
        clock().skip(0.25)
        await turns()
        assert not said.done()
        clock().skip(0.25)
        assert (await said).choices[0].delta.content == "hi"
        await stream.close()

    run(test)


def test_the_paced_model_takes_its_time() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        async def count(model: str) -> None:
            stream = await client.chat.completions.create(model=model, messages=user("count to 8"), stream=True)
            assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]).endswith("8.")

        begun = time.monotonic()
        await count("demo-paced")
        assert time.monotonic() - begun >= 16 / 40
        clock().stop_clock()
        await count("demo")  # needs no time at all

    run(test)


def test_a_client_that_leaves_ends_its_answer() -> None:
    async def test(demo: DemoServer, client: openai.AsyncOpenAI) -> None:
        before = asyncio.all_tasks()
        async with posted(demo, request("[[demo: slow 600]]", stream=True)) as reply:
            await reply.content.readany()
            serving = asyncio.all_tasks() - before
            reply.close()
        assert serving
        _, running = await asyncio.wait(serving, timeout=60)
        assert not running

    run(test)


def test_stopping_ends_running_answers_soon() -> None:
    async def live() -> None:
        async with aiohttp.ClientSession() as session:
            async with DemoServer() as demo:
                body = request("[[demo: slow 600]]", stream=True)
                reply = await session.post(f"{demo.base_url}/chat/completions", json=body)
                await reply.content.readany()
                begun = time.monotonic()
            assert time.monotonic() - begun < 60
            with pytest.raises(aiohttp.ClientError):
                await reply.content.read()
            reply.close()

    asyncio.run(asyncio.wait_for(live(), 100))
