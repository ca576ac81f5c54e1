"""Hooks are asked in their order, each with a copy; what they change is told with their name."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from isthmus.bridge.parse import parse_request
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.hooks import Context, Refuse, Sending
from isthmus.hooks.bounded import Bounded
from isthmus.hooks.hooked import Hooked, Hooks, Named

SENDING = Sending("p", "m", "chat")


def hooked(*hooks: object, streamed: bool = False, **settings: Any) -> Hooked:
    named = [Named(f"hook{index}", hook) for index, hook in enumerate(hooks)]
    return Hooks(named, Bounded(60, 9), **settings).look_after(Context("resp_1", streamed=streamed))


class Adds:
    def __init__(self, word: str) -> None:
        self.word = word

    def before_send(self, body: Any, sending: Sending, context: Context) -> Any:
        context.state["seen"] = context.state.get("seen", 0) + 1
        return {**body, "said": [*body.get("said", ()), f"{self.word}{context.state['seen']}"]}


async def test_each_gets_what_the_one_before_it_left_and_its_own_notes() -> None:
    both = hooked(Adds("a"), Adds("b"))
    body, decisions = await both.before_send({}, SENDING)
    assert body == {"said": ["a1", "b1"]}
    assert [(each.path, each.metadata["hook"]) for each in decisions] == [
        ("upstream.said", "hook0"),
        ("upstream.said", "hook1"),
    ]
    body, decisions = await both.before_send({}, SENDING)
    assert (body, decisions) == ({"said": ["a2", "b2"]}, ())  # told once, however often it is asked


async def test_what_is_given_is_a_copy_and_may_be_changed_in_place() -> None:
    kept: list[Any] = []

    class InPlace:
        def before_plan(self, request: Any, context: Context) -> None:
            request["input"] = "other"
            kept.append(request)

    given = {"input": "hi"}
    body, (decision,) = await hooked(InPlace()).before_plan(given, parse_request)
    kept[0]["input"] = "later"
    assert (given, body) == ({"input": "hi"}, {"input": "other"})
    assert (decision.path, decision.action, decision.harmless) == ("input", "degraded", True)
    assert "`hook0` changed it before the plan was made" in decision.reason


async def test_nothing_is_told_of_a_hook_that_changes_nothing() -> None:
    class Looks:
        async def before_plan(self, request: Any, context: Context) -> Any:
            return dict(request)

    assert await hooked(Looks(), object()).before_plan({"input": "hi"}, parse_request) == (None, ())


@pytest.mark.parametrize("raised", [False, True])
async def test_a_refusal_is_given_back_or_raised(raised: bool) -> None:
    class Refuses:
        def before_plan(self, request: Any, context: Context) -> Refuse:
            refusal = Refuse("not here", param="input")
            if raised:
                raise refusal
            return refusal

    with pytest.raises(RequestRefused, match="not here") as told:
        await hooked(Refuses(), on_failure="skip").before_plan({"input": "hi"}, parse_request)
    assert (told.value.code, told.value.param, told.value.meaning.status) == ("refused_by_hook", "input", 400)


async def test_a_failure_names_the_hook_and_where_it_rose(caplog: pytest.LogCaptureFixture) -> None:
    class Fails:
        def before_plan(self, request: Any, context: Context) -> Any:
            raise ValueError(f"secret {request}")

    with caplog.at_level(logging.INFO), pytest.raises(IsthmusError, match="`hook0`") as told:
        await hooked(Fails()).before_plan({"input": "hi"}, parse_request)
    assert (told.value.code, told.value.meaning.status, told.value.meaning.turn) == ("hook_failed", 500, "operator")
    (line,) = [record.getMessage() for record in caplog.records]
    assert "test_hooked.py:" in line
    assert "in before_plan" in line
    assert "secret" not in line + str(told.value)
    body, (decision,) = await hooked(Fails(), on_failure="skip").before_plan({"input": "hi"}, parse_request)
    assert (body, decision.code) == (None, "bridge.hook.skipped")


def after(text: str, *, holds: bool) -> object:
    class After:
        holds_streams = holds

        def after_reply(self, response: Any, context: Context) -> Any:
            response["output"] = []
            return response

    return After()


RESPONSE: Any = {"id": "r", "output": [{"type": "reasoning", "id": "rs_1", "summary": [], "status": "completed"}]}


@pytest.mark.parametrize(
    ("streamed", "holds", "expected"),
    [(False, False, True), (False, True, True), (True, False, False), (True, True, True)],
)
def test_an_answer_is_held_unless_it_is_streamed_and_nobody_wants_it(
    streamed: bool, holds: bool, expected: bool
) -> None:
    assert hooked(after("x", holds=holds), streamed=streamed).holds is expected


def test_without_anybody_who_looks_at_answers_none_is_held() -> None:
    assert hooked(Adds("a"), streamed=True).holds is False
    assert hooked(Adds("a")).holds is False


async def test_what_was_told_stays_and_the_decision_says_so() -> None:
    late = hooked(after("x", holds=False), streamed=True)
    response, (decision,) = await late.after_reply({**RESPONSE, "status": "completed"})
    assert (response, decision.code, decision.path) == (None, "bridge.hook.late", "output")
