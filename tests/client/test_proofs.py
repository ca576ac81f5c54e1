"""Promises kept, from the public API to the bytes on a socket and back: turns, transcripts, trouble."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus import Limits, TextDelta, ToolContext, partial_result, tool
from isthmus.client.repair import find_problems
from isthmus.testing import Gate, stream
from isthmus.testing.replies import chat_chunks, event
from isthmus.testing.replies import sse as sse_bytes
from reaching import MODEL, THREE_TURNS, WIRES, double, reach, results_sent, same, scene, shout

# ── 1 and 2 ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
def test_1_three_turns_with_parallel_calls_send_both_results_bound_to_their_ids(wire: str, streamed: bool) -> None:
    async def main() -> None:
        async with reach(wire, THREE_TURNS) as (bridge, upstream):
            run = await bridge.run(MODEL, "Go.", tools=[double, shout], stream=streamed)
            first, second, third = (request.json for request in upstream.requests)
            assert results_sent(first) == {}
            assert results_sent(second) == {"call_a": "42", "call_b": "HI"}
            assert results_sent(third) == {"call_a": "42", "call_b": "HI", "call_c": "8"}
            assert bool(first.get("stream")) is streamed
            assert (run.output, run.stop_reason, run.turns) == ("42, HI and 8.", "completed", 3)
            assert [result.value for result in run.tool_results] == [42, "HI", 8]
            assert find_problems(run.messages) == []

    asyncio.run(main())


def test_1_the_transcript_is_identical_on_every_wire_and_in_both_modes() -> None:
    async def transcript(wire: str, streamed: bool) -> Any:
        async with reach(wire, THREE_TURNS) as (bridge, _):
            return (await bridge.run(MODEL, "Go.", tools=[double, shout], stream=streamed)).messages

    found = [asyncio.run(transcript(wire, streamed)) for wire in WIRES for streamed in (True, False)]
    assert all(one == found[0] for one in found)


def test_1_run_is_run_stream_drained() -> None:
    async def main() -> None:
        async with reach("chat", [*THREE_TURNS, *THREE_TURNS]) as (bridge, _):
            run = await bridge.run(MODEL, "Go.", tools=[double, shout])
            async with bridge.run_stream(MODEL, "Go.", tools=[double, shout]) as events:
                told = [one async for one in events]
            assert events.result.messages == run.messages
            assert events.result.usage == run.usage
            assert "".join(one.text for one in told if isinstance(one, TextDelta)) == "Let me see.42, HI and 8."

    asyncio.run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_2_text_and_calls_in_one_reply_both_count(wire: str) -> None:
    async def main() -> None:
        async with reach(wire, [scene("First this.", calls=[("c", "double", {"number": 1})]), scene("Done.")]) as (
            bridge,
            _,
        ):
            run = await bridge.run(MODEL, "Go.", tools=[double])
            said = run.new_messages[0]
            assert (said.text, [call.name for call in said.tool_calls]) == ("First this.", ["double"])
            assert run.tool_results[0].value == 2

    asyncio.run(main())


# ── 3 ──────────────────────────────────────────────────────────────────────────────────────────────


ANSWER: dict[str, Any] = {
    "reasoning": "Ich überlege… 🤔",
    "calls": [("a", "double", '{"number": 2}'), ("b", "shout", {"text": "çà 🌍"})],
}
BYTES = sse_bytes(chat_chunks("Grüße, 世界!", pieces=4, **ANSWER))


def _message(step: Any) -> Any:
    async def main() -> Any:
        async with reach("chat", [same(step)]) as (bridge, _):
            return (await bridge.chat(MODEL, "Go.", tools=[double, shout])).message

    return asyncio.run(main())


@pytest.fixture(scope="module")
def expected() -> Any:
    return _message(stream(chat_chunks("Grüße, 世界!", pieces=4, **ANSWER)))


@pytest.mark.parametrize("size", [1, 7, len(BYTES)])
def test_3_pieces_of_any_size_give_the_same_message(size: int, expected: Any) -> None:
    pieces = [BYTES[start : start + size] for start in range(0, len(BYTES), size)]
    assert _message(stream(pieces, done=False)) == expected
    assert [call.name for call in expected.tool_calls] == ["double", "shout"]


@settings(max_examples=25, deadline=None)
@given(cuts=st.sets(st.integers(1, len(BYTES) - 1), max_size=12))
def test_3_any_split_of_the_byte_stream_gives_the_same_message(cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(BYTES)]
    pieces = [BYTES[start:end] for start, end in pairwise(edges)]
    # One write each: a pause in between keeps the kernel from joining them.
    slow = [part for piece in pieces for part in (piece, 0.0)]
    message = _message(stream(slow, done=False))
    assert (message.text, len(message.tool_calls)) == ("Grüße, 世界!", 2)
    assert [call.arguments for call in message.tool_calls] == [{"number": 2}, {"text": "çà 🌍"}]


@pytest.mark.parametrize("wire", WIRES)
def test_4_a_call_id_that_comes_twice_is_made_unique_and_both_calls_run(wire: str) -> None:
    async def main() -> None:
        script = [scene(calls=[("x", "double", {"number": 1}), ("x", "double", {"number": 2})]), scene("ok")]
        async with reach(wire, script) as (bridge, upstream):
            run = await bridge.run(MODEL, "Go.", tools=[double])
            assert [one.value for one in run.tool_results] == [2, 4]
            assert len({one.call_id for one in run.tool_results}) == 2
            assert sorted(results_sent(upstream.requests[1].json).values()) == ["2", "4"]
            assert find_problems(run.messages) == []

    asyncio.run(main())


# ── 4 ──────────────────────────────────────────────────────────────────────────────────────────────


@tool
def explode() -> str:
    """Fail."""
    raise LookupError("no such row")


@tool(timeout=0.05)
async def sleepy() -> str:
    """Take too long."""
    await asyncio.Event().wait()
    return "never"


@tool
async def give_up() -> str:
    """Cancel itself."""
    raise asyncio.CancelledError


TROUBLE = {
    "unknown tool": (("c", "dubble", {"number": 1}), "not_found", "did you mean `double`?"),
    "bad JSON": (("c", "double", '{"number": '), "invalid_arguments", "not valid JSON"),
    "no object": (("c", "double", "[1]"), "invalid_arguments", "a list, not an object"),
    "schema error": (("c", "double", {"number": "many"}), "invalid_arguments", "`number`"),
    "missing field": (("c", "double", {}), "invalid_arguments", "`number`: Field required"),
    "exception": (("c", "explode", {}), "error", "LookupError: no such row"),
    "timeout": (("c", "sleepy", {}), "timeout", "within 0.05 s"),
    "cancelled": (("c", "give_up", {}), "cancelled", "was cancelled"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("trouble", TROUBLE)
def test_4_trouble_with_a_call_is_a_typed_result_and_the_run_goes_on(wire: str, trouble: str) -> None:
    call, status, words = TROUBLE[trouble]

    async def main() -> None:
        script = [scene(calls=[call, ("good", "double", {"number": 3})]), scene("I see."), scene("And on.")]
        async with reach(wire, script) as (bridge, upstream):
            tools = [double, explode, sleepy, give_up]
            run = await bridge.run(MODEL, "Go.", tools=tools)
            assert [(one.call_id, one.status) for one in run.tool_results] == [("c", status), ("good", "ok")]
            assert words in results_sent(upstream.requests[1].json)["c"]
            assert "Traceback" not in results_sent(upstream.requests[1].json)["c"]
            assert run.output == "I see."
            assert find_problems(run.messages) == []
            again = await bridge.run(MODEL, [*run.messages, {"role": "user", "content": "Go on."}], tools=tools)
            assert again.output == "And on."

    asyncio.run(main())


def test_4_a_cancelled_run_leaves_a_valid_history_that_can_be_continued() -> None:
    async def main() -> None:
        started = asyncio.Event()

        @tool
        async def wait_for_ever(ctx: ToolContext[None]) -> str:
            """Wait."""
            started.set()
            await asyncio.Event().wait()
            return "never"

        script = [scene(calls=[("quick", "double", {"number": 2}), ("slow", "wait_for_ever", {})]), scene("Fine.")]
        async with reach("chat", script) as (bridge, upstream):
            task = asyncio.create_task(bridge.run(MODEL, "Go.", tools=[double, wait_for_ever]))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            run = partial_result(caught.value)
            assert run is not None
            assert run.stop_reason == "cancelled"
            assert [(one.call_id, one.status) for one in run.tool_results] == [("quick", "ok"), ("slow", "cancelled")]
            assert find_problems(run.messages) == []
            again = await bridge.run(MODEL, [*run.messages, {"role": "user", "content": "Never mind."}], tools=[double])
            assert again.output == "Fine."
            assert set(results_sent(upstream.requests[1].json)) == {"quick", "slow"}

    asyncio.run(main())


# ── 10 ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES)
def test_10_max_turns_with_finalize_gives_an_answer_and_keeps_every_result(wire: str) -> None:
    async def main() -> None:
        script = [
            scene(calls=[("a", "double", {"number": 1})]),
            scene(calls=[("b", "double", {"number": 2})]),
            scene("So far: 2 and 4."),
        ]
        async with reach(wire, script) as (bridge, upstream):
            run = await bridge.run(MODEL, "Go.", tools=[double], limits=Limits(max_turns=2), on_limit="finalize")
            assert (run.output, run.stop_reason, run.turns) == ("So far: 2 and 4.", "max_turns", 3)
            assert [one.value for one in run.tool_results] == [2, 4]
            assert "tools" not in upstream.requests[2].json
            assert set(results_sent(upstream.requests[2].json)) == {"a", "b"}

    asyncio.run(main())


def test_the_gate_proves_that_text_arrives_as_it_is_written() -> None:
    async def main() -> None:
        gate = Gate()
        chunks = chat_chunks("one two", pieces=2)
        held = stream([event(chunks[0]), event(chunks[1]), gate, *map(event, chunks[2:])])
        async with reach("chat", [same(held)]) as (bridge, _), bridge.run_stream(MODEL, "Go.") as events:
            async for one in events:
                if isinstance(one, TextDelta) and not gate.opened.is_set():
                    gate.open()
            assert events.result.output == "one two"

    asyncio.run(main())
