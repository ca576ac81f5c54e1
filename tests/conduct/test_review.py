"""A run that hooks look at: held until it was seen, changed or refused before it is kept, and ended like any other."""

from __future__ import annotations

from typing import Any

import pytest

from conduct.stage import Noted, Stage
from isthmus.bridge.deltas import Text
from isthmus.bridge.limits import DEFAULT_LIMITS
from isthmus.bridge.parse import parse_request
from isthmus.conduct.review import Review, before_plan, with_decisions
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.hooks import Context, Refuse, Sending
from isthmus.hooks.bounded import Bounded
from isthmus.hooks.hooked import Hooks, Named
from wire.oracle import check_stream


class Upper:
    """Sees everything, and answers in capitals."""

    holds_streams = True

    def __init__(self) -> None:
        self.bodies: list[Any] = []

    async def before_send(self, body: Any, sending: Sending, context: Context) -> Any:
        self.bodies.append((sending.provider, sending.why, sending.attempt))
        return {**body, "user": "marked"}

    async def after_reply(self, response: Any, context: Context) -> Any:
        for item in response["output"]:
            for part in item["content"]:
                if "BAD" in part["text"].upper():
                    return Refuse("no")
                part["text"] = part["text"].upper()
        return response


class Looks:
    async def after_reply(self, response: Any, context: Context) -> Any:
        return Refuse("no") if "bad" in response["output_text"] else None


def reviewed(stage: Stage, hook: object, *names: str, **body: Any) -> Any:
    run = stage.run_of(*names, **body)
    context = Context("resp_1", streamed=body.get("stream", True))
    run._review = Review(Hooks([Named("mine", hook)], Bounded(60, 9)).look_after(context))
    return run


def test_nothing_of_an_answer_is_told_before_it_was_seen(stage: Stage) -> None:
    run, notes = reviewed(stage, Upper()), Noted()
    run.recorder = notes
    stage.read(run)
    stage.quiet()
    stage.asked.accept()
    stage.asked.say(Text("hel"))
    stage.quiet()
    assert [event["type"] for event in stage.events] == ["response.created", "response.in_progress"]
    beat = run.heartbeat()
    assert (beat["type"], beat["sequence_number"]) == ("response.in_progress", 2)
    stage.events.append(beat)
    stage.asked.end("lo")
    stage.quiet()
    check_stream(stage.events)
    assert stage.saved[0].response["output_text"] == "HELLO"
    assert stage.terminal[0]["response"]["output_text"] == "HELLO"
    assert "".join(e["delta"] for e in stage.events if e["type"] == "response.output_text.delta") == "HELLO"
    assert notes.events == stage.events
    assert run.told == len(stage.events)
    (sent,) = stage.upstream.asked
    assert sent.body["user"] == "marked"
    told = stage.terminal[0]["response"]["isthmus"]["diagnostics"]
    assert [(each["code"], each["path"]) for each in told] == [
        ("bridge.hook.changed", "upstream.user"),
        ("bridge.hook.changed", "output[0].content[0].text"),
    ]
    assert [each.path for each in run.plan.diagnostics] == ["upstream.user", "output[0].content[0].text"]


def test_what_is_refused_is_neither_told_nor_kept(stage: Stage) -> None:
    run = reviewed(stage, Upper())
    stage.read(run)
    stage.quiet()
    stage.asked.accept()
    stage.asked.end("bad")
    stage.quiet()
    check_stream(stage.events)
    assert [event["type"] for event in stage.events] == ["response.created", "response.in_progress", "response.failed"]
    assert stage.saved[0].response["output"] == []
    assert run.failure.code == "refused_by_hook"
    assert stage.end.outcome == "failed"


def test_what_was_told_can_still_end_as_refused(stage: Stage) -> None:
    run = reviewed(stage, Looks())
    stage.read(run)
    stage.quiet()
    stage.asked.accept()
    stage.asked.say(Text("ba"))
    stage.quiet()
    assert stage.events[-1]["delta"] == "ba"
    stage.asked.end("d")
    stage.quiet()
    check_stream(stage.events)
    assert stage.terminal[0]["type"] == "response.failed"
    assert stage.saved[0].response["error"]["code"] == "refused_by_hook"


@pytest.mark.parametrize("stop", ["cancelled", "shutdown"])
def test_what_was_written_when_it_was_stopped_is_looked_at_too(stage: Stage, stop: Any) -> None:
    run = reviewed(stage, Upper())
    stage.read(run)
    stage.quiet()
    stage.asked.accept()
    stage.asked.say(Text("bad, and more"))
    stage.quiet()
    run.stop(stop)
    stage.quiet()
    assert stage.saved[0].response["output"] == []
    assert "bad" not in str(stage.events)


def test_each_way_is_looked_at(stage: Stage) -> None:
    hook = Upper()
    run = reviewed(stage, hook, "one", "two")
    stage.read(run)
    stage.quiet()
    stage.asked.fail(UpstreamFailed("down", code="server_error"))
    stage.quiet()
    stage.asked.accept()
    stage.asked.end("ok")
    stage.quiet()
    assert hook.bodies == [("one", "first", 1), ("two", "first", 2)]
    codes = [each["code"] for each in stage.terminal[0]["response"]["isthmus"]["diagnostics"]]
    assert codes == ["bridge.attempt.failed", "bridge.hook.changed", "bridge.hook.changed"]


def test_what_a_hook_refuses_no_fallback_is_asked(stage: Stage) -> None:
    class Refuses:
        async def before_send(self, body: Any, sending: Sending, context: Context) -> Any:
            raise Refuse("not there")

    reading = stage.read(reviewed(stage, Refuses(), "one", "two"))
    stage.quiet()
    assert isinstance(reading.exception(), RequestRefused)
    assert stage.upstream.asked == []


async def test_a_request_that_was_changed_is_read_like_any_other() -> None:
    class Changes:
        async def before_plan(self, request: Any, context: Context) -> Any:
            return {**request, "input": [*request["input"], {"role": "user", "content": "more"}]}

    hooks = Hooks([Named("mine", Changes())], Bounded(60, 9))
    asked = parse_request(b'{"input": "hi"}')
    _, request, decisions = await before_plan(hooks, Context("r"), asked, (), DEFAULT_LIMITS)
    assert [item["content"] for item in request.items] == ["hi", "more"]
    assert [item["type"] for item in request.items] == ["message", "message"]
    assert request.size == asked.size
    assert [each.path for each in decisions] == ["input"]


def test_a_plan_takes_what_was_decided_since(stage: Stage) -> None:
    plan = stage.attempt("one", {}).plan
    assert with_decisions(plan, (), {"a": 1}).body == {"a": 1}
    assert with_decisions(plan, plan.decisions[:1]).decisions == (*plan.decisions, *plan.decisions[:1])
