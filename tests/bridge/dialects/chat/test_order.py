"""Who may speak after whom: each rule kept with the smallest change."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.messages import build_messages
from isthmus.bridge.dialects.chat.order import BRIDGE, CONTINUE, MessageOrder
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.types.tools import ToolIdentityMap

Json = dict[str, Any]

TOOL = {"role": "tool", "tool_call_id": "1", "content": "ok"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def ordered(rules: MessageRules, *messages: Json) -> tuple[list[Json], list[CompatibilityDecision]]:
    order = MessageOrder(rules)
    for index, message in enumerate(messages):
        order.add(message, f"input[{index}]")
    return order.messages, order.decisions


@pytest.mark.parametrize(
    "rules", [{"after_tool": "assistant"}, {"turns": "alternating"}], ids=["mistral", "alternating"]
)
def test_the_assistant_speaks_between_a_result_and_the_user(rules: Json) -> None:
    messages, decisions = ordered(MessageRules(**rules), TOOL, user("hm"))
    assert messages == [TOOL, {"role": "assistant", "content": BRIDGE}, user("hm")]
    assert [(d.path, d.action, d.code) for d in decisions] == [("input[1]", "degraded", "bridge.history.repaired")]


def test_nothing_changes_where_anybody_may_speak() -> None:
    given = [TOOL, user("a"), user("b")]
    assert ordered(MessageRules(), *given) == (given, [])


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        pytest.param("a", "b", "a\n\nb", id="texts"),
        pytest.param("a", [IMAGE], [{"type": "text", "text": "a"}, IMAGE], id="text and parts"),
        pytest.param([IMAGE], "b", [IMAGE, {"type": "text", "text": "b"}], id="parts and text"),
    ],
)
@pytest.mark.parametrize("turns", ["merged", "alternating"])
def test_two_messages_of_one_speaker_are_one(turns: Any, first: Any, second: Any, joined: Any) -> None:
    messages, decisions = ordered(MessageRules(turns=turns), user(first), user(second))
    assert messages == [user(joined)]
    assert [(d.path, d.action) for d in decisions] == [("input[1]", "supported")]


def test_results_and_calls_are_never_joined() -> None:
    calls = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}, {"id": "2"}]}
    given = [calls, TOOL, {**TOOL, "tool_call_id": "2"}]
    assert ordered(MessageRules(turns="alternating"), *given) == (given, [])


def test_the_user_begins_where_roles_alternate() -> None:
    history = normalise_history([{"type": "message", "role": "assistant", "content": "Hello."}])
    plan = build_messages(
        history, rules=MessageRules(turns="alternating"), identities=ToolIdentityMap(), instructions="I"
    )
    assert [message["content"] for message in plan.messages] == ["I", CONTINUE, "Hello."]
    assert [d.path for d in plan.decisions] == ["input"]
