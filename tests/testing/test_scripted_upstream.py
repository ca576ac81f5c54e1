from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import openai
import pytest

import isthmus.testing as testing
from isthmus.testing import CUT, DONE, HANG, KEEPALIVE, RESET, Gate, ScriptedUpstream
from isthmus.testing.requests import RecordedRequest

Served = tuple[ScriptedUpstream, aiohttp.ClientSession]
CHUNKS = testing.chat_chunks("Hello there")


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 90))


@asynccontextmanager
async def served(
    *script: testing.Step, **options: Any
) -> AsyncIterator[tuple[ScriptedUpstream, aiohttp.ClientSession]]:
    async with ScriptedUpstream(script, **options) as upstream, aiohttp.ClientSession(upstream.url) as session:
        yield upstream, session


def test_a_request_is_recorded_as_it_came() -> None:
    async def test() -> None:
        async with served({"ok": True}) as (upstream, session):
            headers = {"X-Some-Thing": "Value", "Authorization": "Bearer k"}
            async with session.post(
                "/v1/chat/completions?a=1&b=", json={"stream": False, "ü": "é"}, headers=headers
            ) as reply:
                assert await reply.json() == {"ok": True}
        (request,) = upstream.requests
        assert (request.method, request.path, request.query) == (
            "POST",
            "/v1/chat/completions",
            {"a": ["1"], "b": [""]},
        )
        assert request.json == {"stream": False, "ü": "é"}
        assert request.headers["authorization"] == "Bearer k"
        assert ("X-Some-Thing", "Value") in request.raw_headers
        assert request.answered_at is not None
        assert request.answered_at >= request.arrived_at

    run(test)


@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
def test_a_stream_arrives_byte_for_byte_however_it_is_sliced(size: int | None, framing: Any) -> None:
    async def test() -> None:
        parts: list[Any] = [KEEPALIVE, *CHUNKS, b"data: {broken\n\n"]
        async with (
            served(testing.stream(parts, slice=size, framing=framing)) as (_, session),
            session.post("/", json={}) as reply,
        ):
            assert reply.headers["Content-Type"] == "text/event-stream"
            assert await reply.read() == testing.sse(parts)

    run(test)


def test_slices_of_one_byte_really_arrive_as_single_bytes() -> None:
    async def test() -> None:
        async with (
            served(testing.stream([b"abc"], done=False, slice=1)) as (_, session),
            session.post("/") as reply,
        ):
            assert [data async for data, _ in reply.content.iter_chunks() if data] == [b"a", b"b", b"c"]

    run(test)


def test_a_gate_holds_the_stream_until_it_is_opened() -> None:
    async def test() -> None:
        gate = Gate()
        async with (
            served(testing.stream([b"one", gate, b"two"], done=False)) as (upstream, session),
            session.post("/") as reply,
        ):
            assert await reply.content.readexactly(3) == b"one"
            await gate.reached.waited()
            assert not upstream.requests[0].answered.is_set()
            gate.open()
            assert await reply.content.read() == b"two"

    run(test)


def test_an_event_of_the_loop_and_seconds_hold_it_too() -> None:
    async def test() -> None:
        event = asyncio.Event()
        async with (
            served(testing.stream([b"one", event, 0.0, b"two"], done=False)) as (_, session),
            session.post("/") as reply,
        ):
            assert await reply.content.readexactly(3) == b"one"
            event.set()
            assert await reply.content.read() == b"two"

    run(test)


def test_an_answer_can_wait_before_its_status_line() -> None:
    async def test() -> None:
        gate = Gate()
        async with served(testing.reply({"late": True}, after=gate)) as (upstream, session):
            asking = asyncio.create_task(session.post("/"))
            await gate.reached.waited()
            assert upstream.requests[0].answered_at is None
            gate.open()
            assert await (await asking).json() == {"late": True}

    run(test)


@pytest.mark.parametrize(
    ("parts", "failure"),
    [([b"one", CUT, b"two"], aiohttp.ClientPayloadError), ([b"one", RESET, b"two"], aiohttp.ClientError)],
    ids=["cut", "reset"],
)
def test_a_stream_can_break_off_in_the_middle(parts: list[Any], failure: type[Exception]) -> None:
    async def test() -> None:
        async with served(testing.stream(parts)) as (upstream, session), session.post("/") as reply:
            assert await reply.content.readexactly(3) == b"one"
            with pytest.raises(failure):
                await reply.content.read()
        assert upstream.requests[0].closed_at is None
        assert not upstream.requests[0].left_early

    run(test)


def test_a_reset_is_a_reset_and_a_cut_is_not() -> None:
    async def ending(step: testing.Answer) -> bytes | type[Exception]:
        async with ScriptedUpstream([step]) as upstream:
            reader, writer = await asyncio.open_connection("127.0.0.1", upstream.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                return await reader.read()
            except ConnectionResetError as error:
                return type(error)
            finally:
                writer.close()

    assert asyncio.run(ending(testing.drop())) == b""
    assert asyncio.run(ending(testing.drop(reset=True))) is ConnectionResetError


def test_a_body_can_be_shorter_than_its_length_says() -> None:
    async def test() -> None:
        async with served(testing.Answer((b"abc", CUT, b"def"))) as (_, session), session.post("/") as reply:
            assert reply.headers["Content-Length"] == "6"
            with pytest.raises(aiohttp.ClientPayloadError):
                await reply.read()

    run(test)


@pytest.mark.parametrize("step", [testing.silence(), testing.stream([b"x", HANG])], ids=["silent", "hangs midway"])
def test_a_client_that_leaves_is_noticed_at_once(step: testing.Answer) -> None:
    async def test() -> None:
        async with served(step) as (upstream, session):

            async def ask() -> None:
                async with session.post("/") as reply:
                    await reply.read()

            asking = asyncio.create_task(ask())
            request = await upstream.received()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await session.close()
            await request.closed.waited()
            assert request.left_early
            assert request.closed_at is not None

    run(test)


def test_a_client_that_leaves_frees_an_answer_that_waits_at_a_gate() -> None:
    async def test() -> None:
        gate = Gate()
        async with ScriptedUpstream([testing.stream([gate])]) as upstream:
            _, writer = await asyncio.open_connection("127.0.0.1", upstream.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await gate.reached.waited()
            writer.close()
            await upstream.requests[0].closed.waited()
        assert not gate.opened.is_set()

    run(test)


def test_a_client_that_does_not_read_stops_the_writer() -> None:
    async def test() -> None:
        block, midway = b"x" * 1_000_000, Gate()
        answer = testing.stream([block] * 100 + [midway], done=False)
        async with ScriptedUpstream([answer]) as upstream:
            reader, writer = await asyncio.open_connection("127.0.0.1", upstream.port, limit=1024)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            request = upstream.requests[0]
            writer.transport.abort()
            await request.closed.waited()
            assert request.left_early
            assert not midway.reached.is_set()

    run(test)


@pytest.mark.parametrize(
    ("step", "status", "kind", "body"),
    [
        (testing.html_error(503, "Busy"), 503, "text/html", b"<h1>Busy</h1>"),
        (testing.malformed_json(), 200, "application/json", b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess'),
        (testing.error(429, "slow down", code="rate_limit_exceeded", retry_after=7), 429, "application/json", b"slow"),
        (testing.reply("plain", status=599), 599, "text/plain", b"plain"),
    ],
    ids=["html", "malformed", "rate limit", "unknown status"],
)
def test_bad_answers_are_sent_as_they_are(step: testing.Answer, status: int, kind: str, body: bytes) -> None:
    async def test() -> None:
        async with served(step) as (_, session), session.post("/") as reply:
            assert (reply.status, reply.content_type) == (status, kind)
            assert body in await reply.read()
            assert reply.headers.get("Retry-After") == ("7" if status == 429 else None)

    run(test)


def test_connections_are_kept_alive_and_counted() -> None:
    async def test() -> None:
        async with served({"n": 1}, CHUNKS, {"n": 3}) as (upstream, session):
            for _ in range(3):
                async with session.post("/", json={}) as reply:
                    await reply.read()
            assert [request.connection for request in upstream.requests] == [1, 1, 1]
            assert upstream.connections == 1

    run(test)


def test_a_step_may_be_a_function_of_the_request() -> None:
    def sync(request: RecordedRequest) -> testing.Step:
        return {"saw": request.json["x"]}

    async def later(request: RecordedRequest) -> testing.Step:
        return sync

    async def test() -> None:
        async with served(sync, later, default=sync) as (upstream, session):
            answers = [await (await session.post("/", json={"x": x})).json() for x in (1, 2, 3)]
            assert answers == [{"saw": 1}, {"saw": 2}, {"saw": 3}]
            assert upstream.remaining == 0

    run(test)


def test_routes_answer_beside_the_script() -> None:
    async def test() -> None:
        async with served({"scripted": True}, routes={"/v1/models": {"data": []}}) as (upstream, session):
            assert await (await session.get("/v1/models?x=1")).json() == {"data": []}
            assert await (await session.get("/other")).json() == {"scripted": True}
            assert len(upstream.requests) == 2

    run(test)


def test_steps_can_be_pushed_while_it_runs() -> None:
    async def test() -> None:
        async with served() as (upstream, session):
            upstream.push({"n": 1}, {"n": 2})
            assert await (await session.get("/")).json() == {"n": 1}
            assert await (await session.get("/")).json() == {"n": 2}

    run(test)


def test_steps_nobody_asked_for_fail_the_test_when_strict() -> None:
    unasked = pytest.raises(AssertionError, match=r"1 step\(s\) of the script were never asked for")
    with unasked, ScriptedUpstream.running([{}]):
        pass
    with ScriptedUpstream.running([{}], strict=False) as upstream:
        pass
    assert upstream.remaining == 1


def test_requests_without_a_step_fail_the_test_when_strict() -> None:
    async def ask(strict: bool) -> None:
        async with served(strict=strict) as (_, session), session.post("/v1/x") as reply:
            assert reply.status == 500
            assert "no step left for POST /v1/x" in (await reply.json())["error"]["message"]

    with pytest.raises(AssertionError, match="no step left for 1 request"):
        asyncio.run(ask(strict=True))
    asyncio.run(ask(strict=False))


def test_a_handler_that_fails_fails_the_test_strict_or_not() -> None:
    def broken(request: RecordedRequest) -> testing.Step:
        raise ValueError("wrong model asked for")

    async def test() -> None:
        async with served(broken, strict=False) as (_, session), session.post("/") as reply:
            assert reply.status == 500

    with pytest.raises(AssertionError, match="wrong model asked for"):
        run(test)


def test_an_error_of_the_test_itself_is_not_hidden_by_strictness() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedUpstream.running([{}]):
        raise ZeroDivisionError


def test_it_can_stop_and_come_back_on_the_same_port() -> None:
    async def test() -> None:
        async with ScriptedUpstream([{"n": 1}]) as upstream:
            port = upstream.port
            await upstream.stop()
            await upstream.stop()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
            await upstream.start()
            assert upstream.port == port
            async with aiohttp.ClientSession(upstream.url) as session:
                assert await (await session.get("/")).json() == {"n": 1}

    run(test)


def test_stopping_tears_open_connections_down() -> None:
    async def test() -> None:
        async with ScriptedUpstream([testing.silence()]) as upstream:
            reader, writer = await asyncio.open_connection("127.0.0.1", upstream.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            request = await upstream.received()
            await upstream.stop()
            assert await reader.read() == b""
            writer.close()
            assert request.closed_at is None

    run(test)


def test_a_port_in_use_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError), ScriptedUpstream.running(port=taken.getsockname()[1]):
            pass


def test_expect_continue_head_and_chunked_requests_are_understood() -> None:
    async def test() -> None:
        async with ScriptedUpstream([{"n": 1}, {"n": 2}]) as upstream:
            reader, writer = await asyncio.open_connection("127.0.0.1", upstream.port)
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b'2\r\n{"\r\n5\r\na":1}\r\n0\r\n\r\n')
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(7) == b'{"n":1}'
            writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            head = await reader.read()
            assert b"Content-Length: 7" in head
            assert head.endswith(b"\r\n\r\n")
            writer.close()
            assert upstream.requests[0].json == {"a": 1}

    run(test)


def test_a_body_that_is_no_json_object_is_said_plainly() -> None:
    async def test() -> None:
        async with served({}) as (upstream, session):
            async with session.post("/", data=b"[1]"):
                pass
            with pytest.raises(AssertionError, match="no JSON object"):
                _ = upstream.requests[0].json

    run(test)


def test_garbage_on_the_socket_ends_the_connection_and_records_nothing() -> None:
    async def test() -> None:
        async with ScriptedUpstream() as upstream:
            reader, writer = await asyncio.open_connection("127.0.0.1", upstream.port)
            writer.write(b"\x16\x03\x01 not http\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
            assert upstream.requests == []

    run(test)


@pytest.mark.parametrize("turns", range(8))
def test_who_was_accepted_while_it_stops_is_closed_too(turns: int) -> None:
    async def test() -> None:
        upstream = ScriptedUpstream()
        await upstream.start()
        clients = [socket.create_connection(("127.0.0.1", upstream.port)) for _ in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await upstream.stop()
        for client in clients:
            client.close()

    gc.collect()  # what others have left is theirs
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        run(test)
        gc.collect()
    assert [str(warning.message) for warning in left] == []


def test_the_sync_server_serves_other_threads_and_processes() -> None:
    program = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
    with ScriptedUpstream.running([{"from": "afar"}]) as upstream:
        done = subprocess.run([sys.executable, "-c", program, upstream.url], capture_output=True, text=True, check=True)
        assert done.stdout == '{"from":"afar"}\n'
        assert upstream.wait_received().method == "GET"


def test_a_gate_works_from_the_test_thread() -> None:
    gate = Gate()
    with (
        ScriptedUpstream.running([testing.stream([b"one", gate, b"two"], done=False)]) as upstream,
        socket.create_connection(("127.0.0.1", upstream.port)) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        gate.reached.wait()
        gate.open()
        upstream.wait_received().answered.wait()
        received = b"".join(iter(lambda: client.recv(4096), b""))
    assert received.endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


def test_the_official_sdk_reads_it_in_both_modes() -> None:
    script = [testing.chat("Hi", reasoning="hm", calls=[("c1", "f", {"a": 1})]) for _ in range(2)]
    with (
        ScriptedUpstream.running(script) as upstream,
        openai.OpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        whole = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as events:
            folded = events.get_final_completion()
    for completion in (whole, folded):
        message = completion.choices[0].message
        assert message.content == "Hi"
        assert message.tool_calls is not None
        assert message.tool_calls[0].to_dict()["function"] == {"name": "f", "arguments": '{"a":1}'} | (
            {} if completion is whole else {"parsed_arguments": None}
        )
    assert [request.json.get("stream", False) for request in upstream.requests] == [False, True]


def test_importing_the_package_does_not_load_the_fakes() -> None:
    program = "import sys, isthmus; sys.exit('isthmus.testing' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_done_is_left_out_on_request() -> None:
    assert DONE not in testing.stream(CHUNKS, done=False).parts
    assert testing.stream(CHUNKS).parts[-1] == DONE


async def test_questions_about_models_stand_apart_from_the_script() -> None:
    async with ScriptedUpstream([{"id": "1"}], routes={"/props": {"n_ctx": 5}}) as upstream:
        async with aiohttp.ClientSession(upstream.url, headers={"user-agent": "isthmus (models)"}) as asking:
            assert (await asking.get("/v1/models")).status == 404
            assert (await asking.post("/api/show", json={"model": "m"})).status == 404
            assert (await (await asking.get("/props")).json()) == {"n_ctx": 5}
        assert upstream.connections == 0
        async with aiohttp.ClientSession(upstream.url) as session:
            assert (await session.post("/v1/chat/completions", json={})).status == 200
        assert [question.path for question in upstream.questions] == ["/v1/models", "/api/show"]
        assert [request.path for request in upstream.requests] == ["/props", "/v1/chat/completions"]
        assert upstream.connections == 1
