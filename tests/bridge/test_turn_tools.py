"""A turn whose calls run here: items and events in order, what the model is asked with next, and every way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from isthmus.bridge.at_once import end_here, feed_here
from isthmus.bridge.commands import Done, RunTool, Send
from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    ItemBegan,
    ItemEnded,
    Reasoning,
    Text,
    Usage,
    Used,
    VendorExtra,
)
from isthmus.bridge.envelope import seal
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.managed import Listing, Managed, Ran, ToolLimits
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import UpstreamFailed
from isthmus.providers import load_provider

KEY = b"k" * 32
SEARCH: dict[str, Any] = {"type": "web_search"}
DOCS: dict[str, Any] = {"type": "mcp", "server_label": "docs", "server_url": "https://docs.example/mcp"}
PAINT: dict[str, Any] = {"type": "image_generation"}
MINE: dict[str, Any] = {"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}}
ASK: dict[str, Any] = {"name": "ask", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}
MANAGED = Managed("scripted", images="scripted", mcp={"docs": Listing((ASK,), known=True)})
TOOLS = [SEARCH, DOCS, PAINT, MINE]
SPENT = Usage(10, 5, 15)


def plan_for(
    body: dict[str, Any] | None = None, managed: Managed = MANAGED, limits: ToolLimits | None = None, **more: Any
) -> Plan:
    provider, model = more.pop("provider", "openai-compatible"), more.pop("model", "m")
    target = Target("one", model, load_provider(provider).capabilities(model))
    request = parse_request({"model": "one/m", "input": "hi", "tools": TOOLS, **(body or {})})
    host = Host(managed=managed, limits=limits or ToolLimits(), **more.pop("host", {}))
    return plan_request(request, target, host, envelope_key=KEY, **more)


def turn_of(plan: Plan | None = None, id: str = "resp_1") -> Turn:
    def sealer(sealed: Any, kind: Any = "reasoning") -> str:
        return seal(sealed, KEY, kind=kind)

    return Turn(plan or plan_for(), response_id=id, now=1, seal=sealer)


def call(slot: int, name: str, arguments: str) -> list[Delta]:
    return [CallOpened(slot, f"up_{slot}", name), CallArguments(slot, arguments)]


def finish(reason: str = "tool_calls") -> list[Delta]:
    return [Used(SPENT), Finished(reason)]


def search(slot: int, query: str) -> list[Delta]:
    return call(slot, "web_search", f'{{"query": "{query}"}}')


def types(events: list[Any]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def reply(turn: Turn, *parts: list[Delta], reason: str = "tool_calls") -> tuple[list[Any], Any]:
    """One upstream answer, up to the command that follows it."""
    events = [*turn.accepted(), *feed_here(turn, [delta for part in [*parts, finish(reason)] for delta in part])]
    command = end_here(turn, 2)
    if not isinstance(command, Done):
        events += turn.feed(())
    return events, command


def carry_out(turn: Turn, command: Any, ran: Ran | None = None) -> tuple[list[Any], Any]:
    events: list[Any] = []
    for each in command.calls:
        events += turn.began(each.id)
    for each in command.calls:
        events += turn.ran(each.id, ran or Ran(f"found for {each.name}", **_fields(each.kind)))
    return events, end_here(turn, 2)


def _fields(kind: str) -> dict[str, Any]:
    made = {"mcp": {"output": "found for ask"}, "image_generation": {"result": "aGk="}}
    return {"fields": made.get(kind, {})}


def test_a_search_is_told_step_by_step_and_its_result_goes_back_to_the_model() -> None:
    turn = turn_of()
    events, command = reply(turn, search(0, "otters"))
    assert types(events) == ["created", "in_progress", "output_item.added", "web_search_call.in_progress"]
    assert isinstance(command, RunTool)
    (asked,) = command.calls
    assert (asked.kind, asked.arguments, asked.tool) == ("web_search", {"query": "otters"}, SEARCH)
    told, command = carry_out(turn, command, Ran("Otters are nice."))
    assert types(told) == ["web_search_call.searching", "web_search_call.completed", "output_item.done"]
    assert isinstance(command, Send)
    *_, made, result = command.body["messages"]
    assert made["tool_calls"][0]["function"] == {"name": "web_search", "arguments": '{"query":"otters"}'}
    assert (result["tool_call_id"], result["content"]) == (made["tool_calls"][0]["id"], "Otters are nice.")
    events, done = reply(turn, [Text("Nice ones.")], reason="stop")
    assert isinstance(done, Done)
    assert [item["type"] for item in done.response["output"]] == ["web_search_call", "message"]
    assert done.response["status"] == "completed"
    assert done.response["usage"] == {**done.response["usage"], "input_tokens": 20, "output_tokens": 10}
    assert done.response["tool_usage"]["web_search"] == {"num_requests": 1}
    assert done.response["tool_usage"]["image_gen"]["total_tokens"] == 0


def test_calls_of_every_kind_are_told_in_their_order_with_their_own_events() -> None:
    turn = turn_of()
    parts = [search(0, "a"), call(1, "docs__ask", '{"q": "b"}'), call(2, "image_generation", '{"prompt": "c"}')]
    events, command = reply(turn, *parts)
    assert types(events)[2:] == [
        *("output_item.added", "web_search_call.in_progress"),
        *("output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done"),
        *("output_item.added", "image_generation_call.in_progress"),
    ]
    assert [event["output_index"] for event in events[2:]] == [0, 0, 1, 1, 1, 1, 2, 2]
    assert [(one.kind, one.name) for one in command.calls] == [
        ("web_search", "web_search"),
        ("mcp", "ask"),
        ("image_generation", "image_generation"),
    ]
    one, two, three = command.calls
    turn.began(one.id), turn.began(two.id)
    assert types(turn.began(three.id)) == ["image_generation_call.generating"]
    partial = turn.progress(three.id, "partial_image", {"partial_image_b64": "aGk=", "partial_image_index": 0})
    assert types(partial) == ["image_generation_call.partial_image"]
    assert partial[0]["partial_image_index"] == 0  # type: ignore[typeddict-item]
    assert types(turn.ran(three.id, Ran("made", {"result": "aGk="}))) == [
        "image_generation_call.completed",
        "output_item.done",
    ]
    assert types(turn.ran(two.id, Ran("no", {"error": {"type": "http_error"}}, failed=True))) == [
        "mcp_call.failed",
        "output_item.done",
    ]
    assert types(turn.ran(one.id, Ran("no", failed=True))) == ["output_item.done"]
    assert isinstance(end_here(turn, 2), Send)
    _, done = reply(turn, [Text("so")], reason="stop")
    output = done.response["output"]
    assert [(item["type"], item["status"]) for item in output] == [
        ("web_search_call", "failed"),
        ("mcp_call", "failed"),
        ("image_generation_call", "completed"),
        ("message", "completed"),
    ]
    assert (output[1]["error"], output[2]["result"]) == ({"type": "http_error"}, "aGk=")


def test_a_clients_call_in_the_same_reply_waits_for_the_client_and_the_others_run() -> None:
    turn = turn_of()
    _, command = reply(turn, search(0, "a"), call(1, "mine", "{}"))
    assert [one.kind for one in command.calls] == ["web_search"]
    _, done = carry_out(turn, command, Ran("found a"))
    assert isinstance(done, Done)
    assert [(item["type"], item["status"]) for item in done.response["output"]] == [
        ("web_search_call", "completed"),
        ("function_call", "completed"),
    ]
    # The next request has both results, of calls that were made side by side.
    output = {"type": "function_call_output", "call_id": done.response["output"][1]["call_id"], "output": "mine too"}
    following = plan_for({"input": [{"role": "user", "content": "hi"}, *done.response["output"], output]})
    _, made, first, second = following.body["messages"]
    assert [one["function"]["name"] for one in made["tool_calls"]] == ["web_search", "mine"]
    assert (first["content"], second["content"]) == ("found a", "mine too")


def test_the_next_request_begins_with_the_very_messages_that_this_response_sent() -> None:
    """Side by side in the first reply, then one after the other: prompt caches go by bytes."""
    turn = turn_of()
    _, command = reply(turn, [Text("Let me look.")], search(0, "a"), search(1, "b"))
    _, first = carry_out(turn, command)
    _, command = reply(turn, search(0, "c"), call(1, "docs__ask", '{"q": 1}'))
    _, second = carry_out(turn, command)
    _, done = reply(turn, [Text("There.")], reason="stop")
    again = [{"role": "user", "content": "more"}]
    later = plan_for({"input": [{"role": "user", "content": "hi"}, *done.response["output"], *again]}).body["messages"]
    assert [message["role"] for message in later] == [
        *("user", "assistant", "tool", "tool", "assistant", "tool", "tool", "assistant", "user"),
    ]
    assert second.body["messages"][: len(first.body["messages"])] == first.body["messages"]
    assert later[: len(second.body["messages"])] == second.body["messages"]


BLOCK = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
SIGNED = {"google": {"thought_signature": "s1"}}
THINKERS: list[tuple[str, str, list[Delta], list[Delta], Any]] = [
    (
        *("deepseek", "deepseek-v4-pro"),
        [Reasoning("Hm.")],
        [],
        lambda message: message["reasoning_content"] == "Hm.",
    ),
    (
        *("anthropic", "claude-opus-5-5"),
        [
            *(ItemBegan("reasoning"), Reasoning("Hm."), VendorExtra("thinking_blocks", [BLOCK])),
            *(VendorExtra("thinking_model", "claude-opus-5-5"), ItemEnded()),
        ],
        [],
        lambda message: message["content"][0] == BLOCK,
    ),
    (
        *("gemini", "gemini-3.5-pro"),
        [],
        [VendorExtra("extra_content", SIGNED, 0)],
        lambda message: message["tool_calls"][0]["extra_content"] == SIGNED,
    ),
]


@pytest.mark.parametrize(("provider", "model", "before", "beside", "kept"), THINKERS, ids=[row[0] for row in THINKERS])
def test_what_a_vendor_wants_back_of_its_thinking_goes_back_with_the_results(
    provider: str, model: str, before: list[Delta], beside: list[Delta], kept: Any
) -> None:
    """Also of calls made side by side, and also to a client that keeps nothing here."""
    managed = replace(MANAGED, prefers=frozenset({"web_search"}))
    body = {"reasoning": {"effort": "high"}, "tools": [SEARCH], "store": False}
    asked = {"managed": managed, "provider": provider, "model": model}
    turn = turn_of(plan_for(body, **asked))
    _, command = reply(turn, before, search(0, "a"), beside, search(1, "b"))
    _, command = carry_out(turn, command, Ran("found"))
    (acted,) = [message for message in command.body["messages"] if message["role"] == "assistant"]
    assert kept(acted)
    calls = acted.get("tool_calls") or [block for block in acted["content"] if block["type"] == "tool_use"]
    assert len(calls) == 2
    _, done = reply(turn, [Text("There.")], reason="stop")
    items = [{"role": "user", "content": "hi"}, *done.response["output"], {"role": "user", "content": "more"}]
    later = plan_for({**body, "input": items}, **asked).body["messages"]
    assert unmarked(later)[: len(command.body["messages"])] == unmarked(command.body["messages"])


def unmarked(value: Any) -> Any:
    """Without the marks of a prompt cache, which move along."""
    if isinstance(value, dict):
        return {name: unmarked(inner) for name, inner in value.items() if name != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def test_a_forced_search_is_not_forced_again() -> None:
    choice = {"type": "web_search"}
    turn = turn_of(plan_for({"tool_choice": choice}))
    assert turn.plan.body["tool_choice"] != "auto"
    _, command = reply(turn, search(0, "a"))
    _, command = carry_out(turn, command)
    assert command.body["tool_choice"] == "auto"


def test_tools_are_listed_first_unless_they_are_known() -> None:
    managed = Managed(mcp={"docs": Listing((ASK,)), "gone": Listing(error={"type": "http_error", "message": "no"})})
    gone = {**DOCS, "server_label": "gone"}
    turn = turn_of(plan_for({"tools": [DOCS, gone]}, managed))
    turn.begin(1)
    events: list[Any] = turn.accepted()
    assert types(events) == [
        *("created", "in_progress"),
        *("output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done"),
        *("output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.failed", "output_item.done"),
    ]
    assert events[5]["item"]["tools"] == [ASK]
    assert events[9]["item"]["error"] == "no"
    assert types(turn_of().accepted()) == ["created", "in_progress"]


# Approvals

ASKS = Managed("scripted", mcp={"docs": Listing((ASK,), known=True, asks=frozenset({"ask"}))})


def asked() -> list[Any]:
    """The items of a response that ended with a question to the user."""
    turn = turn_of(plan_for(managed=ASKS), id="resp_0")
    _, done = reply(turn, [Text("May I?")], call(0, "docs__ask", '{"q": "b"}'))
    assert isinstance(done, Done)
    assert types(done.events) == ["output_item.added", "output_item.done", "completed"]
    request = done.response["output"][-1]
    told = {"server_label": "docs", "name": "ask", "arguments": '{"q": "b"}', "status": "completed"}
    assert request == {"type": "mcp_approval_request", "id": request["id"], **told}
    return [{"role": "user", "content": "hi"}, *done.response["output"]]


def answered(approve: bool, **more: Any) -> list[Any]:
    items = asked()
    answer = {"type": "mcp_approval_response", "approval_request_id": items[-1]["id"], "approve": approve, **more}
    return [*items, answer]


def test_an_approved_call_is_carried_out_before_the_model_is_asked() -> None:
    items = answered(True)
    turn = turn_of(plan_for({"input": items}, ASKS))
    command: Any = turn.begin(1)
    assert isinstance(command, RunTool)
    begun: Any = turn.feed(())
    assert types(begun)[:4] == ["created", "in_progress", "output_item.added", "mcp_call.in_progress"]
    assert begun[2]["item"]["approval_request_id"] == items[-2]["id"]
    assert [(one.name, one.arguments) for one in command.calls] == [("ask", {"q": "b"})]
    _, command = carry_out(turn, command)
    made, result = command.body["messages"][1:]
    assert made["content"] == "May I?"
    assert (made["tool_calls"][0]["id"], result["content"]) == (result["tool_call_id"], "found for ask")
    _, done = reply(turn, [Text("Done.")], reason="stop")
    assert [item["type"] for item in done.response["output"]] == ["mcp_call", "message"]
    # And so it is told ever after, and carried out once.
    later = plan_for({"input": [*items, *done.response["output"], {"role": "user", "content": "more"}]}, ASKS)
    assert later.approved == ()
    assert later.body["messages"][:3] == command.body["messages"]


def test_a_denied_call_is_told_to_the_model() -> None:
    plan = plan_for({"input": answered(False, reason="too dear")}, ASKS)
    assert plan.approved == ()
    assert "too dear" in plan.body["messages"][-1]["content"]
    assert isinstance(turn_of(plan).begin(1), Send)


def test_a_question_that_nobody_answered_is_told_as_such() -> None:
    plan = plan_for({"input": [*asked(), {"role": "user", "content": "something else"}]}, ASKS)
    assert [message["role"] for message in plan.body["messages"]] == ["user", "assistant", "tool", "user"]
    assert "not approved" in plan.body["messages"][2]["content"]


# Budgets


def test_no_more_calls_are_carried_out_than_the_client_allows() -> None:
    turn = turn_of(plan_for({"max_tool_calls": 1}))
    _, command = reply(turn, search(0, "a"), search(1, "b"))
    assert [one.arguments for one in command.calls] == [{"query": "a"}]
    _, command = carry_out(turn, command, Ran("found a"))
    messages = command.body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[2]["content"] == "found a"
    assert "not carried out" in messages[3]["content"]
    names = [tool["function"]["name"] for tool in command.body.get("tools", ())]
    assert names == ["mine"]
    _, done = reply(turn, [Text("so")], reason="stop")
    assert [item["type"] for item in done.response["output"]] == ["web_search_call", "message"]
    assert done.response["max_tool_calls"] == 1


def test_after_the_last_round_the_model_has_to_answer() -> None:
    turn = turn_of(plan_for(limits=ToolLimits(rounds=2)))
    _, command = reply(turn, search(0, "a"))
    _, command = carry_out(turn, command)
    assert "web_search" in str(command.body["tools"])
    _, command = reply(turn, search(0, "b"))
    _, command = carry_out(turn, command)
    assert "web_search" not in str(command.body["tools"])
    # One that calls all the same is not asked for ever, and nothing runs for it.
    _, done = reply(turn, search(0, "c"))
    assert isinstance(done, Done)
    assert [item["type"] for item in done.response["output"]] == ["web_search_call", "web_search_call"]
    assert [said["code"] for said in done.response["isthmus"]["diagnostics"]] == ["bridge.tool.call_suppressed"]


def test_a_call_beyond_the_budget_beside_one_of_the_clients_is_not_left_out_in_silence() -> None:
    turn = turn_of(plan_for({"max_tool_calls": 0}))
    _, done = reply(turn, search(0, "a"), call(1, "mine", "{}"))
    assert isinstance(done, Done)
    assert [item["type"] for item in done.response["output"]] == ["function_call"]
    assert [said["code"] for said in done.response["isthmus"]["diagnostics"]] == ["bridge.tool.call_suppressed"]


def test_tokens_that_were_written_are_not_there_any_more() -> None:
    turn = turn_of(plan_for({"max_output_tokens": 100}))
    _, command = reply(turn, search(0, "a"))
    _, command = carry_out(turn, command)
    assert command.body["max_tokens"] == 95
    turn = turn_of(plan_for({"max_output_tokens": 20}))
    _, command = reply(turn, search(0, "a"))
    _, done = carry_out(turn, command)
    assert (done.response["status"], done.response["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )
    assert done.response["max_output_tokens"] == 20


def test_a_long_result_is_cut() -> None:
    turn = turn_of(plan_for(limits=ToolLimits(result=10)))
    _, command = reply(turn, search(0, "a"))
    _, command = carry_out(turn, command, Ran("x" * 100))
    assert command.body["messages"][-1]["content"] == "x" * 10 + "\n[cut: 90 characters more]"


# Ways out

WAYS = {
    "cancel": lambda turn: turn.cancel(3),
    "fail": lambda turn: turn.fail(UpstreamFailed("gone"), 3),
    "steer": lambda turn: turn.steer_out(3),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_still_runs_when_the_response_ends_has_failed(way: Any) -> None:
    turn = turn_of()
    _, command = reply(turn, search(0, "a"), call(1, "docs__ask", "{}"))
    turn.began(command.calls[0].id)
    turn.ran(command.calls[0].id, Ran("found"))
    done = way(turn)
    assert [(item["type"], item["status"]) for item in done.response["output"]] == [
        ("web_search_call", "completed"),
        ("mcp_call", "failed"),
    ]
    assert types(done.events)[:-1] == ["mcp_call.failed", "output_item.done"]
    assert "message" in done.response["output"][1]["error"]


def test_arguments_that_are_none_fail_the_call_and_not_the_response() -> None:
    turn = turn_of()
    _, command = reply(turn, call(0, "docs__ask", '{"q": '))
    assert isinstance(command, Send)
    assert "not a JSON object" in command.body["messages"][-1]["content"]


def test_a_reply_that_was_cut_runs_nothing() -> None:
    turn = turn_of()
    _, done = reply(turn, search(0, "a"), reason="length")
    assert isinstance(done, Done)
    assert [(item["type"], item["status"]) for item in done.response["output"]] == [("web_search_call", "failed")]


def test_steering_stops_tools_at_once() -> None:
    turn = turn_of()
    reply(turn, search(0, "a"))
    assert turn.steer() is False
    # One that was asked to end while it spoke does not begin to run them.
    turn = turn_of()
    turn.accepted()
    feed_here(turn, search(0, "a"))
    turn.steer()
    feed_here(turn, finish())
    done = end_here(turn, 2)
    assert isinstance(done, Done)
    assert done.response["output"][0]["status"] == "failed"  # type: ignore[typeddict-item]
    assert done.response["incomplete_details"] == {"reason": "steered"}


# Every mix of calls, results and cuts

parts = st.sampled_from(["search", "mcp", "image", "mine", "text"])
replies = st.lists(st.lists(parts, min_size=1, max_size=4), min_size=1, max_size=4)
ends = st.sampled_from(["through", "cancel", "fail", "steer", "broken", "length"])


def deltas_of(slot: int, part: str) -> list[Delta]:
    match part:
        case "search":
            return search(slot, f"q{slot}")
        case "mcp":
            return call(slot, "docs__ask", '{"q": "b"}')
        case "image":
            return call(slot, "image_generation", '{"prompt": "c"}')
        case "mine":
            return call(slot, "mine", "{}")
    return [Text(f"words {slot}")]


@given(replies, ends, st.integers(0, 12), st.booleans(), st.one_of(st.none(), st.integers(0, 3)))
def test_every_call_has_one_end_and_the_response_one_terminal_event(
    script: list[list[str]], end: str, stop_at: int, failing: bool, most: int | None
) -> None:
    body = {} if most is None else {"max_tool_calls": most}
    turn = turn_of(plan_for(body, limits=ToolLimits(rounds=3)))
    events: list[Any] = []
    ran: list[str] = []
    done: Done | None = None
    steps = 0
    for said in [*script, ["text"], ["text"], ["text"], ["text"]]:
        last = said is script[-1]
        events += turn.accepted()
        for slot, part in enumerate(said):
            events += feed_here(turn, deltas_of(slot, part))
        if last and end == "broken":
            events += feed_here(turn, [Failed("it broke")])
        calls = any(part != "text" for part in said)
        events += feed_here(turn, finish("length" if last and end == "length" else "tool_calls" if calls else "stop"))
        command = end_here(turn, 2)
        while isinstance(command, RunTool):
            events += turn.feed(())
            for one in command.calls:
                steps += 1
                if steps > stop_at and end in WAYS:
                    break
                events += turn.began(one.id)
                events += turn.ran(one.id, Ran("found", failed=failing))
                ran.append(one.id)
            else:
                command = end_here(turn, 2)
                continue
            command = WAYS[end](turn)
        if isinstance(command, Done):
            done = command
            break
        events += turn.feed(())
    assert done is not None
    events += done.events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    terminal = [
        event for event in events if event["type"] in ("response.completed", "response.incomplete", "response.failed")
    ]
    assert terminal == [events[-1]]
    added = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
    ended = [event["output_index"] for event in events if event["type"] == "response.output_item.done"]
    assert added == sorted(added)
    assert sorted(ended) == added
    output: list[Any] = done.response["output"]
    assert len(output) == len(added)
    here = [item for item in output if item["type"] in ("web_search_call", "mcp_call", "image_generation_call")]
    assert len({item["id"] for item in here}) == len(here)
    assert {item["id"] for item in here if item["status"] == "completed"} == (set() if failing else set(ran))
    assert all(item["status"] in ("completed", "failed") for item in here)
    if most is not None:
        assert len(here) <= most
