"""The cache doctor by itself: it names what changed, blames nobody for what did not, and adds the money up right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.capabilities import Cost
from isthmus.observe.cache_doctor import Prompt, examine, prompt_of
from isthmus.observe.diagnosis import Examined
from isthmus.observe.prefix import read_prompt
from isthmus.ports.traced import Trace, TracedBody, TracedCall, TracedError, TraceSummary
from pieces import pieces_of

PRICES = Cost(input=1.0, cached=0.1, output=2.0)
BODY: dict[str, Any] = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": name}} for name in ("read", "write", "run")],
    "messages": [{"role": "system", "content": "You are an agent. It is 09:41."}, {"role": "user", "content": "Go"}],
}


def asking(index: int, body: dict[str, Any], **more: Any) -> Prompt:
    facts: dict[str, Any] = {"at": index * 10.0, "provider": "p", "model": body.get("model", "m"), "cost": PRICES}
    return Prompt(parts=read_prompt(pieces_of(body)), **{"id": f"t{index}", **facts, **more})


def session(change: Callable[[dict[str, Any]], None] | None = None, at: int = 6, turns: int = 10) -> Examined:
    """An agent's session in which one turn, and all behind it, are changed; 1,000 more tokens in every turn."""
    body = copy.deepcopy(BODY)
    askings = []
    for index in range(1, turns + 1):
        if index > 1:
            body["messages"] += [
                {"role": "assistant", "content": f"step {index}"},
                {"role": "tool", "content": f"result {index}"},
            ]
        if change is not None and index == at:
            change(body)
        cached = 0 if index == 1 or (change is not None and index == at) else (index + 1) * 1000
        askings.append(asking(index, copy.deepcopy(body), input_tokens=(index + 2) * 1000, cached_tokens=cached))
    return examine(askings)


def add_tool(body: dict[str, Any]) -> None:
    body["tools"].append({"type": "function", "function": {"name": "search"}})


def add_tool_in_front(body: dict[str, Any]) -> None:
    body["tools"].insert(0, {"type": "function", "function": {"name": "search"}})


def drop_tool(body: dict[str, Any]) -> None:
    del body["tools"][1]


def swap_tools(body: dict[str, Any]) -> None:
    body["tools"].reverse()


def tell_the_time(body: dict[str, Any]) -> None:
    body["messages"][0] = {"role": "system", "content": "You are an agent. It is 09:42."}


def swap_items(body: dict[str, Any]) -> None:
    body["messages"][3], body["messages"][4] = body["messages"][4], body["messages"][3]


def shorten(body: dict[str, Any]) -> None:
    del body["messages"][2:6]


def want_json(body: dict[str, Any]) -> None:
    body["response_format"] = {"type": "json_object"}


def other_model(body: dict[str, Any]) -> None:
    body["model"] = "n"


CHANGES = [
    (add_tool, "tools[3]", "tools", "added", "search"),
    (add_tool_in_front, "tools[0]", "tools", "added", "search"),
    (drop_tool, "tools[1]", "tools", "removed", "write"),
    (swap_tools, "tools[0]", "tools", "reordered", "run"),
    (tell_the_time, "messages[0]", "system", "changed", "system"),
    (swap_items, "messages[3]", "messages", "reordered", "assistant"),
    (shorten, "messages[2]", "messages", "removed", "assistant"),
    (want_json, "response_format", "format", "added", ""),
    (other_model, "model", "model", "changed", "n"),
]


@pytest.mark.parametrize(
    ("change", "path", "section", "kind", "what"), CHANGES, ids=lambda each: getattr(each, "__name__", "")
)
def test_what_turn_six_changed_is_named(
    change: Callable[[dict[str, Any]], None], path: str, section: str, kind: str, what: str
) -> None:
    found = session(change)
    assert [turn.id for turn in found.breaks] == ["t6"]
    broken = found.breaks[0].broken
    assert broken is not None
    assert (broken.path, broken.section, broken.change, broken.what) == (path, section, kind, what)
    assert broken.why
    assert found.turns[5].verdict == "broken"
    assert {turn.verdict for turn in found.turns[6:]} == {"hit"}


def test_a_session_that_only_grows_is_whole_and_every_turn_hits() -> None:
    found = session()
    assert [turn.verdict for turn in found.turns] == ["first", *["hit"] * 9]
    assert {turn.kept for turn in found.turns[1:]} == {1.0}
    assert found.breaks == ()
    assert found.lost == 0.0


def test_the_same_size_points_to_a_clock() -> None:
    before, after = (
        {"system": f"It is {time}.", "messages": [{"role": "user", "content": "Hi"}]} for time in ("9", "8")
    )
    for found in (examine([asking(1, before), asking(2, after)]), session(tell_the_time)):
        broken = found.breaks[0].broken
        assert broken is not None
        assert "a time, a date or an id" in broken.why


def test_what_a_break_costs_is_the_difference_to_a_whole_hit() -> None:
    found = session(add_tool)
    sixth = found.turns[5]
    assert (sixth.input_tokens, sixth.cached_tokens, sixth.could_be_cached) == (8000, 0, 7000)
    assert sixth.cost == pytest.approx(0.008)
    assert sixth.cost_with_hit == pytest.approx(0.001 + 0.0007)
    assert found.lost == pytest.approx(0.0063)
    assert found.to_json()["lost"] == pytest.approx(0.0063)


def test_a_miss_that_is_not_ours_is_said_to_be_none_of_ours() -> None:
    def pair(tokens: int, seconds: float, cached: int | None = 0) -> Any:
        first = asking(1, BODY, input_tokens=tokens, cached_tokens=0, at=0.0)
        return examine([first, asking(2, BODY, input_tokens=tokens, cached_tokens=cached, at=seconds)]).turns[1]

    assert (pair(5000, 10).verdict, "nothing changed on our side" in pair(5000, 10).note) == ("missed", True)
    assert "10 minutes after" in pair(5000, 600).note
    assert "1,024 tokens" in pair(500, 10).note
    assert pair(5000, 10, 4096).verdict == "hit"
    assert pair(5000, 10, 1024).verdict == "missed"
    assert pair(5000, 10, None).verdict == "untold"


def test_without_prices_or_figures_nothing_is_made_up() -> None:
    found = examine([asking(1, BODY, cost=Cost(), input_tokens=10), asking(2, BODY, cost=Cost(), input_tokens=10)])
    assert (found.cost, found.lost, found.turns[1].cost_with_hit) == (None, None, None)
    found = examine([asking(1, BODY), asking(2, BODY)])
    assert (found.turns[1].cost, found.turns[1].could_be_cached) == (None, None)


def test_an_agents_helper_in_the_same_session_is_no_break() -> None:
    helper = {
        "model": "m",
        "messages": [{"role": "system", "content": "Write a title."}, {"role": "user", "content": "x"}],
    }
    grown = {**BODY, "messages": [*BODY["messages"], {"role": "assistant", "content": "Done"}]}
    found = examine([asking(1, BODY), asking(2, helper), asking(3, grown)])
    assert [(turn.verdict, turn.against) for turn in found.turns] == [
        ("first", None),
        ("first", None),
        ("untold", "t1"),
    ]


def test_a_helper_that_has_the_same_tools_is_none_either() -> None:
    helper = {**BODY, "messages": [{"role": "system", "content": "Look around."}, {"role": "user", "content": "x"}]}
    assert [turn.verdict for turn in examine([asking(1, BODY), asking(2, helper)]).turns] == ["first", "first"]


def test_a_conversation_that_was_replaced_by_its_summary_is_a_break() -> None:
    compacted = {**BODY, "messages": [BODY["messages"][0], {"role": "user", "content": "What happened so far: …"}]}
    broken = examine([asking(1, BODY), asking(2, compacted)]).turns[1].broken
    assert broken is not None
    assert (broken.path, broken.change) == ("messages[1]", "changed")


def test_another_provider_has_another_cache_also_for_the_same_bytes() -> None:
    broken = examine([asking(1, BODY), asking(2, BODY, provider="q")]).turns[1].broken
    assert broken is not None
    assert (broken.path, broken.what) == ("provider", "q")


def test_the_turn_that_the_client_names_is_the_one_before() -> None:
    left = {**BODY, "messages": [*BODY["messages"], {"role": "user", "content": "left"}]}
    right = {**BODY, "messages": [*BODY["messages"], {"role": "user", "content": "right"}]}
    found = examine(
        [asking(1, BODY), asking(2, left), asking(3, right, previous="t1"), asking(4, right, previous="t2")]
    )
    assert [turn.against for turn in found.turns] == [None, "t1", "t1", "t2"]
    assert [turn.broken is None for turn in found.turns] == [True, True, True, False]


MESSAGES = st.lists(st.sampled_from("abcdef"), max_size=8).map(
    lambda texts: [{"role": "user", "content": f"{index}{text}"} for index, text in enumerate(texts)]
)


@given(st.lists(st.tuples(MESSAGES, st.integers(0, 5000), st.integers(0, 5000)), max_size=6))
def test_whatever_was_sent_the_figures_hold_together(turns: list[tuple[list[Any], int, int]]) -> None:
    askings = [
        asking(index, {"model": "m", "messages": messages}, input_tokens=max(spent, cached), cached_tokens=cached)
        for index, (messages, spent, cached) in enumerate(turns)
    ]
    found = examine(askings)
    for turn, sent in zip(found.turns, askings, strict=True):
        assert 0 <= turn.same_bytes <= min(turn.bytes, turn.earlier_bytes or turn.bytes)
        assert (turn.broken is None) == (turn.against is None or turn.same_bytes == turn.earlier_bytes)
        assert turn.lost is None or turn.lost >= 0
        assert turn.could_be_cached is None or turn.could_be_cached <= (sent.input_tokens or 0)
        if turn.broken is not None:
            assert turn.kept is not None
            assert turn.kept < 1


@given(MESSAGES, MESSAGES)
def test_adding_to_the_end_never_breaks_anything(before: list[Any], more: list[Any]) -> None:
    bodies = [{"model": "m", "messages": messages} for messages in (before, [*before, *more])]
    assert examine([asking(index, body) for index, body in enumerate(bodies)]).breaks == ()


# ── from traces ──────────────────────────────────────────────────────────────────────────────────────────────────────


def trace(calls: list[TracedCall], **facts: Any) -> Trace:
    told = {"id": "req_1", "at": 5.0, "ended_at": 6.0, "response": "resp_1", "input_tokens": 70, "cached_tokens": 30}
    usage = facts.pop("usage", {})
    return Trace(summary=TraceSummary(**{**told, **facts}), calls=tuple(calls), usage=usage)


def call(body: dict[str, Any], **facts: Any) -> TracedCall:
    made: dict[str, Any] = {"provider": "p", "model": "m", "attempt": 1, "why": "first", "at": 0.0, **facts}
    return TracedCall(body=TracedBody(pieces=pieces_of(body)), **made)


def test_a_trace_without_content_is_all_that_the_doctor_needs() -> None:
    prompt = prompt_of(trace([call(BODY)], previous="resp_0"), PRICES)
    assert prompt == asking(1, BODY, id="resp_1", at=5.0, input_tokens=70, cached_tokens=30, previous="resp_0")


def test_what_failed_before_another_answered_is_not_the_prompt() -> None:
    failed = call({"model": "x", "messages": []}, provider="q", error=TracedError("server_error", "no"))
    prompt = prompt_of(trace([failed, call(BODY, why="anew")]))
    assert prompt is not None
    assert (prompt.provider, prompt.parts, prompt.grown) == ("p", read_prompt(pieces_of(BODY)), None)
    alone = prompt_of(trace([failed], usage=None))
    assert alone is not None
    assert (alone.provider, alone.input_tokens) == ("q", None)


def test_nothing_sent_is_no_prompt() -> None:
    assert prompt_of(trace([])) is None
    assert prompt_of(trace([call(BODY, why="compaction")])) is None


def test_a_turn_that_asked_several_times_is_continued_from_its_last_asking() -> None:
    grown = {**BODY, "messages": [*BODY["messages"], {"role": "assistant", "content": "looked"}]}
    after = {**BODY, "messages": [*grown["messages"], {"role": "user", "content": "and?"}]}
    first = prompt_of(trace([call(BODY), call(grown, why="tool")]))
    then = prompt_of(trace([call(after)], id="req_2", response="resp_2", previous="resp_1"))
    assert first is not None
    assert then is not None
    turn = examine([first, then]).turns[1]
    assert (turn.broken, turn.kept, turn.could_be_cached) == (None, 1.0, None)
    assert "asked several times" in turn.note


def test_a_turn_that_failed_has_no_price_and_hides_none() -> None:
    failed = asking(2, BODY)
    found = examine([asking(1, BODY, input_tokens=2000, cached_tokens=0), failed])
    assert (found.cost, found.lost) == (pytest.approx(0.002), 0)
