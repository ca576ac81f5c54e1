"""Turns → messages: who speaks after whom, calls with their results, and thinking that goes back or not at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.providers import load_provider
from speaking_messages import hidden, thought
from strict_anthropic import refused_by_anthropic

Json = dict[str, Any]
KEY = b"k" * 32
MODELS = ["claude-opus-5-5", "claude-haiku-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5"]
LOOK: Json = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def planned(items: list[Json], model: str = "claude-opus-5-5", **body: Any) -> Plan:
    facts = load_provider("anthropic").capabilities(model)
    request = parse_request({"model": "m", "input": items, **body})
    return plan_request(request, Target("anthropic", model, facts), Host(), envelope_key=KEY)


def told(items: list[Json], model: str = "claude-opus-5-5", **body: Any) -> list[Json]:
    """The messages without the marks of the prompt cache."""
    messages: list[Json] = planned(items, model, **body).body["messages"]
    return [{**message, "content": [unmarked(block) for block in message["content"]]} for message in messages]


def unmarked(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}


def roles(items: list[Json], model: str = "claude-opus-5-5") -> list[str]:
    return [message["role"] for message in told(items, model)]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def call(id: str, arguments: str = "{}") -> Json:
    return {"type": "function_call", "call_id": id, "name": "look", "arguments": arguments}


def output(id: str, text: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": id, "output": text}


def reasoning(*blocks: Json, model: str = "claude-opus-5-5", provider: str = "anthropic") -> Json:
    extras = {"thinking_blocks": list(blocks), "thinking_model": model}
    return {"type": "reasoning", "summary": [], "encrypted_content": seal(Sealed(provider, "", extras), KEY)}


def test_neighbours_of_one_role_are_one_message() -> None:
    said = {"role": "assistant", "content": "Hm."}
    assert roles([user("a"), user("b"), said, said, user("c")]) == ["user", "assistant", "user"]


def test_the_user_begins_and_ends() -> None:
    plan = planned([{"role": "assistant", "content": "Hello."}])
    assert [message["role"] for message in plan.body["messages"]] == ["user", "assistant", "user"]
    assert [one.code for one in plan.decisions if one.path == "input" and one.action == "degraded"] == [
        "bridge.history.repaired"
    ] * 2


def test_results_come_first_in_the_order_of_the_calls() -> None:
    items = [user("go"), call("a"), call("b"), output("b", "two"), output("a", "one"), user("and?")]
    last = told(items)[-1]["content"]
    assert [block.get("content") for block in last[:2]] == ["one", "two"]
    assert last[2] == {"type": "text", "text": "and?"}


def test_a_missing_result_is_an_error_and_an_odd_argument_an_object() -> None:
    items = [user("go"), call("a|1", "[1]"), user("well?")]
    _, acted, answered = told(items)
    assert acted["content"][0]["input"] == {"_raw": "[1]"}
    assert acted["content"][0]["id"].startswith("toolu_")
    assert answered["content"][0]["is_error"] is True
    assert answered["content"][0]["tool_use_id"] == acted["content"][0]["id"]


def test_a_result_says_itself_that_its_tool_failed() -> None:
    items = [user("a"), call("c1"), {**output("c1", "no"), "is_error": True}]
    result = told(items, tools=[LOOK])[2]["content"][0]
    assert (result["content"], result["is_error"]) == ("no", True)
    assert not [one for one in planned(items, tools=[LOOK]).diagnostics if "is_error" in one.path]


def test_what_the_assistant_said_can_be_marked() -> None:
    marked = {"type": "output_text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit"}}
    spoken = {"role": "assistant", "content": [{"type": "output_text", "text": "a"}, marked]}
    content = planned([user("a"), spoken, user("c")]).body["messages"][1]["content"]
    assert ["cache_control" in block for block in content] == [False, True]


def test_a_number_beyond_all_numbers_becomes_text() -> None:
    plan = planned([user("go"), call("a", '{"n": 1e999}'), output("a")])
    given = plan.body["messages"][1]["content"][0]["input"]
    assert given in ({"_raw": '{"n": 1e999}'}, {"n": float("inf")})
    msgspec.json.decode(msgspec.json.encode(plan.body))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-5-5", ["user", "system", "assistant", "user"]),
        ("claude-haiku-4-5", ["user", "assistant", "user"]),
    ],
)
def test_a_later_instruction_stays_in_its_place(model: str, expected: list[str]) -> None:
    rule = {"role": "developer", "content": "Be brief."}
    items = [rule, user("a"), rule, {"role": "assistant", "content": "b"}, user("c")]
    assert roles(items, model) == expected
    assert planned(items, model).body["system"][0]["text"] == "Be brief."


def test_an_instruction_after_the_assistant_is_a_marked_user_message() -> None:
    items = [user("a"), {"role": "assistant", "content": "b"}, {"role": "system", "content": "Be brief."}, user("c")]
    plan = planned(items)
    assert plan.body["messages"][-1]["content"][0]["text"] == "[system instruction]\nBe brief."
    assert [one.action for one in plan.decisions if one.path == "input[2]"] == ["degraded"]


def test_thinking_goes_back_as_it_came_and_where_it_stood() -> None:
    items = [
        user("go"),
        reasoning(thought("a"), hidden()),
        call("1"),
        reasoning(thought("")),
        call("2"),
        output("1"),
        output("2"),
    ]
    content = told(items)[1]["content"]
    assert content[:2] == [thought("a"), hidden()]
    assert [block["type"] for block in content[2:]] == ["tool_use", "thinking", "tool_use"]


@pytest.mark.parametrize(
    ("item", "action"),
    [
        (reasoning(thought("a"), model="claude-opus-4-8"), "ignored"),
        (reasoning(thought("a"), provider="deepseek"), "ignored"),
        (reasoning({"type": "thinking", "thinking": "a", "signature": ""}), "supported"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]}, "supported"),
    ],
    ids=["another model's", "another provider's", "unsigned", "only its words"],
)
def test_thinking_that_is_not_its_own_is_left_out_and_never_made_up(item: Json, action: str) -> None:
    plan = planned([user("go"), item, call("1"), output("1")])
    assert [block["type"] for block in plan.body["messages"][1]["content"]] == ["tool_use"]
    assert action in [one.action for one in plan.decisions if one.path.startswith("input[1]")]


def test_a_vendor_without_signatures_gets_its_blocks_back_unsigned() -> None:
    from isthmus.providers.dialects import capabilities_for

    facts = capabilities_for(load_provider("minimax"), "MiniMax-M3", "messages")
    block = {"type": "thinking", "thinking": "a", "signature": ""}
    item = reasoning(block, model="MiniMax-M3", provider="minimax")
    request = parse_request({"model": "m", "input": [user("go"), item, call("1"), output("1")]})
    plan = plan_request(request, Target("minimax", "MiniMax-M3", facts), Host(), envelope_key=KEY)
    assert plan.body["messages"][1]["content"][0] == block


def test_a_turn_that_ends_in_thinking_loses_it() -> None:
    items = [user("go"), {"role": "assistant", "content": "Hm."}, reasoning(thought("a")), user("and?")]
    assert [block["type"] for block in told(items)[1]["content"]] == ["text"]


def test_a_longer_conversation_begins_with_the_shorter_one() -> None:
    items: list[Json] = [user("go")]
    before: list[Json] = []
    for turn in range(6):
        items += [reasoning(thought(str(turn))), call(f"c{turn}"), output(f"c{turn}")]
        now = told(items, tools=[LOOK])
        assert now[: len(before)] == before
        before = now


speakers = st.sampled_from(["user", "assistant", "system", "developer"])
texts = st.sampled_from(["a", "b\nc", " ", ""])
anything = st.one_of(
    st.builds(lambda role, text: {"role": role, "content": text}, speakers, texts),
    st.builds(call, st.sampled_from("abc"), st.sampled_from(["{}", '{"n":1}', "x", ""])),
    st.builds(output, st.sampled_from("abcd")),
    st.sampled_from([reasoning(thought("t")), reasoning(hidden()), reasoning(thought("t"), model="claude-haiku-4-5")]),
    st.just({"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]}),
)


@given(
    st.lists(anything, max_size=9),
    st.sampled_from(MODELS),
    st.fixed_dictionaries(
        {},
        optional={
            "tools": st.just([LOOK]),
            "tool_choice": st.sampled_from(["none", "auto"]),
            "reasoning": st.sampled_from(
                [{"effort": "none"}, {"effort": "high", "summary": "auto"}, {"effort": "max"}]
            ),
            "max_output_tokens": st.sampled_from([1, 1100, 20_000, 10**7]),
            "temperature": st.sampled_from([0, 1.7]),
            "top_p": st.just(0.5),
            "parallel_tool_calls": st.booleans(),
            "stop": st.sampled_from([["x"], [" "], "END"]),
            "prompt_cache_retention": st.just("24h"),
            "service_tier": st.sampled_from(["auto", "default", "flex"]),
        },
    ),
)
@settings(max_examples=300, deadline=None)
def test_no_history_and_no_parameter_makes_what_the_vendor_refuses(items: list[Json], model: str, body: Json) -> None:
    plan = planned([user("go"), *items], model, **body)
    assert refused_by_anthropic(plan.body) is None, plan.body


def test_what_a_rule_says_is_the_rule_of_the_file() -> None:
    assert load_provider("anthropic").capabilities("claude-opus-5-5").messages.signed
    assert not MessageRules().signed
