"""Messages events and replies → deltas: order, bounds, signatures, and the ways of vendors that copy the protocol."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge import deltas
from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta, Finished, ItemBegan, ItemEnded, PartBegan, Reasoning, Text, VendorExtra
from isthmus.bridge.dialects.messages.decode import MessagesDecoder
from isthmus.testing.fold import plan_for, stream
from speaking_messages import block_events, called, events, hidden, message, said, sign, thought

Json = dict[str, Any]
START: Json = {"type": "message_start", "message": {"usage": {"input_tokens": 4, "output_tokens": 1}}}
STOP: Json = {"type": "message_stop"}


def end(reason: str | None = "end_turn", **rest: Any) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **rest}, "usage": {"output_tokens": 9}}


def told(*given: Json, rules: ReplyRules | None = None) -> list[Delta]:
    decoder = MessagesDecoder(rules or ReplyRules(), "claude")
    found = [delta for event in given for delta in decoder.chunk(msgspec.json.encode(event))]
    return [*found, *decoder.end()]


def spoken(*given: Json, **options: Any) -> list[Delta]:
    return [delta for delta in told(*given, **options) if not isinstance(delta, deltas.Used)]


def delta(index: Any, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def opened(index: Any, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def test_blocks_keep_their_order_and_their_bounds() -> None:
    content = [thought("a"), said("b"), called("toolu_1", "f", n=1), thought("c"), called("toolu_2", "g"), said("d")]
    found = spoken(*events(content, pieces=1))
    assert found == [
        ItemBegan("reasoning"),
        Reasoning("a"),
        VendorExtra("thinking_blocks", [thought("a")]),
        VendorExtra("thinking_model", "claude"),
        ItemEnded(),
        Text("b"),
        deltas.CallOpened(0, "toolu_1", "f"),
        deltas.CallArguments(0, '{"n":1}'),
        ItemBegan("reasoning"),
        Reasoning("c"),
        VendorExtra("thinking_blocks", [thought("c")]),
        VendorExtra("thinking_model", "claude"),
        ItemEnded(),
        deltas.CallOpened(1, "toolu_2", "g"),
        deltas.CallArguments(1, "{}", whole=True),
        Text("d"),
        Finished("tool_use"),
    ]


def test_usage_is_the_sum_of_three_and_grows() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 5}}}
    used = [one.usage for one in told(start, end(), STOP) if isinstance(one, deltas.Used)]
    assert [(one.input_tokens, one.output_tokens, one.cached_tokens) for one in used] == [(9, 0, 5), (9, 9, 5)]


def test_signed_thinking_without_a_word_and_hidden_thinking_are_kept() -> None:
    found = spoken(*events([thought(""), hidden()]))
    assert [one.value for one in found if isinstance(one, VendorExtra) and one.key == "thinking_blocks"] == [
        [thought("")],
        [hidden()],
    ]


def test_of_several_signatures_the_last_counts() -> None:
    found = spoken(
        opened(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="x"),
        delta(0, type="signature_delta", signature="one"),
        delta(0, type="signature_delta", signature="two"),
        {"type": "content_block_stop", "index": 0},
    )
    assert found[2] == VendorExtra("thinking_blocks", [{"type": "thinking", "thinking": "x", "signature": "two"}])


def test_thinking_of_a_model_that_summarises_it_is_a_summary() -> None:
    assert Reasoning("x", "summary") in spoken(*events([thought("x")], pieces=1), rules=ReplyRules(summarised=True))


def test_two_texts_in_a_row_are_two_parts_of_one_message() -> None:
    found = spoken(*events([said("a"), said("b")], pieces=1))
    assert found == [Text("a"), PartBegan("output_text"), Text("b"), Finished("end_turn")]


def test_arguments_that_are_there_from_the_beginning_count() -> None:
    """litellm#25321: the first piece is told with the block itself."""
    found = spoken(
        START,
        opened(0, type="tool_use", id="a", name="f", input={"x": 1}),
        {"type": "content_block_stop", "index": 0},
        end("tool_use"),
        STOP,
    )
    assert deltas.CallArguments(0, '{"x":1}', whole=True) in found


def test_two_calls_may_be_open_at_the_same_time() -> None:
    found = spoken(
        opened(0, type="tool_use", id="a", name="f", input={}),
        opened(1, type="tool_use", id="b", name="g", input={}),
        delta(0, type="input_json_delta", partial_json='{"x":'),
        delta(1, type="input_json_delta", partial_json="{}"),
        delta(0, type="input_json_delta", partial_json="1}"),
        end("tool_use"),
        STOP,
    )
    pieces = [(one.slot, one.text) for one in found if isinstance(one, deltas.CallArguments)]
    assert pieces == [(0, '{"x":'), (1, "{}"), (0, "1}")]


def test_an_index_that_is_used_again_is_another_block() -> None:
    """CLIProxyAPI#539, #3720: all blocks are number 0."""
    found = spoken(
        *(event for one in (thought("a"), said("b"), called("x", "f", n=1), called("y", "f")) for event in _open(one)),
        end("tool_use"),
    )
    assert [one.id for one in found if isinstance(one, deltas.CallOpened)] == ["x", "y"]
    assert [one.text for one in found if isinstance(one, deltas.CallArguments)] == ['{"n":1}', "{}"]
    assert sum(isinstance(one, ItemEnded) for one in found) == 1


def _open(block: Json) -> list[Json]:
    """A block at index 0 whose end is never told."""
    return list(block_events(0, block, 1))[:-1]


def test_a_second_start_and_thinking_inside_a_text_do_no_harm() -> None:
    """litellm#32357, #33224."""
    found = spoken(
        START,
        START,
        opened(0, type="text", text=""),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="text_delta", text="hi"),
        end(),
        STOP,
    )
    assert found == [Reasoning("hm"), Text("hi"), Finished("end_turn")]


def test_what_nobody_knows_is_passed_over_and_a_block_is_told_of_once() -> None:
    found = spoken(
        {"type": "ping"},
        {"type": "novelty"},
        opened(0, type="container_upload"),
        opened(1, type="container_upload"),
        delta(1, type="novel_delta"),
        delta(9, type="text_delta", text="hi"),
        end(),
    )
    assert [type(one) for one in found] == [deltas.Markup, Text, Finished]


@pytest.mark.parametrize(("content", "reason"), [([said("a")], "end_turn"), ([called("x", "f")], "tool_use")])
def test_an_end_without_a_reason_is_an_end(content: list[Json], reason: str) -> None:
    given = [event for event in events(content) if event["type"] != "message_delta"]
    assert spoken(*given)[-1] == Finished(reason)


def test_a_stream_that_just_ends_has_no_reason() -> None:
    assert not [one for one in spoken(*events([said("a")])[:-2]) if isinstance(one, Finished)]


def test_nothing_behind_an_error_is_read() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = spoken(START, error, opened(0, type="text", text="x"))
    assert found == [deltas.Failed("Overloaded", "server_is_overloaded")]


def test_errors_without_a_type_or_in_place_of_a_reply_are_failures() -> None:
    decoder = MessagesDecoder(ReplyRules())
    assert decoder.chunk(b'{"error": {"type": "rate_limit_error", "message": "slow"}}') == [
        deltas.Failed("slow", "rate_limit_exceeded")
    ]
    whole = MessagesDecoder(ReplyRules())
    assert whole.reply(b'{"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}') == [
        deltas.Failed("no", "invalid_prompt")
    ]
    assert isinstance(MessagesDecoder(ReplyRules()).reply(b"{}")[0], deltas.Failed)


def test_a_paused_turn_is_handed_back_whole_only_where_tools_run_there() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    body = msgspec.json.encode(message([thought("a"), said("b"), search], stop="pause_turn"))
    paused = [
        one for one in MessagesDecoder(ReplyRules(), hosts=True).reply(body) if isinstance(one, deltas.TurnPaused)
    ]
    assert paused == [deltas.TurnPaused([thought("a"), said("b"), search])]
    assert not [one for one in MessagesDecoder(ReplyRules()).reply(body) if isinstance(one, deltas.TurnPaused)]


def test_a_thought_and_its_envelope_are_one_item() -> None:
    plan = plan_for({}, dialect="messages")
    _, response = stream([told(*events([thought("a"), said("b"), thought("c")]))], plan=plan)
    assert [item["type"] for item in response["output"]] == ["reasoning", "message", "reasoning"]
    assert sign("a").startswith("sig.")
