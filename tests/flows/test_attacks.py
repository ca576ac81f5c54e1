"""Schemas, patterns and grammars made to cost much: whoever sends them waits, or is refused; nobody else notices.

What can be counted is refused at once, by the name of the limit. What cannot runs in a process that is killed at its
deadline, while the streams and the health checks of others go on.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream
from isthmus.testing.replies import event
from serving import running_gateway_server
from talking import Reply, Talk
from waiting import until

Json = dict[str, Any]
LONG = 90.0
DEADLINE = "[checks]\ndeadline = 3\nquick = 0.2"
WORDS = ["One ", "word ", "after ", "another."]


def doubling(levels: int, keyword: str = "allOf") -> Json:
    made: Json = {"d0": {"type": "object"}}
    for level in range(1, levels + 1):
        made[f"d{level}"] = {keyword: [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"$ref": f"#/$defs/d{levels}", "$defs": made}


def letters(count: int, length: int) -> Json:
    """Patterns that are short to write and long to compile."""
    return {"anyOf": [{"pattern": f"^\\pL{{{length}}}{at}$"} for at in range(count)]}


def nested(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


BRANCHING: Json = {
    "type": "object",
    "anyOf": [{"properties": {"a": {"$ref": "#"}}, "minProperties": at} for at in range(2)],
}
"""Small and finite; an answer that is nested n deep and wrong at the bottom takes 2^n steps to refuse."""
TOWER = '{"a":' * 60 + "1" + "}" * 60


def asked(schema: Any, model: str = DEEPSEEK, **fields: Any) -> Json:
    format = {"type": "json_schema", "name": "s", "schema": schema, "strict": True}
    return {"model": model, "input": "Go", "text": {"format": format}, **fields}


REFUSED: dict[str, tuple[Json, str]] = {
    "28 levels of doubling": (doubling(28), "max_expanded"),
    "40 levels of doubling": (doubling(40), "max_expanded"),
    "40 levels of choices": (doubling(40, "anyOf"), "max_expanded"),
    "2,000 levels of doubling": (doubling(2000, "oneOf"), "max_expanded"),
    "a pattern of 10 MB": ({"pattern": "a" * 10_000_000}, "max_pattern"),
    "10,000 patterns": (letters(10_000, 1), "max_patterns"),
    "patterns of 10,000 characters": (
        {"anyOf": [{"pattern": "a" * 9_000 + str(at)} for at in range(20)]},
        "max_pattern_total",
    ),
    "nested 45 deep": (nested(45), "max_depth"),
    "40,000 lists": ({"enum": [[at] for at in range(40_000)]}, "max_nodes"),
    "2 MB": ({"description": "x" * 2_000_000}, "max_schema"),
    "300 patterns that compile into much": (letters(300, 100), "max_regex"),
}


@pytest.mark.parametrize("model", [DEEPSEEK, FULL], ids=["in words", "native"])
@pytest.mark.parametrize("attack", REFUSED)
def test_what_can_be_counted_is_refused_by_the_name_of_its_limit(flow: Flow, attack: str, model: str) -> None:
    schema, setting = REFUSED[attack]
    for fields in ({}, {"stream": True}, {"background": True}):
        reply = flow.post("/v1/responses", asked(schema, model, **fields))
        assert reply.status == 400
        assert reply.error["param"] == "text.format.schema"
        assert f"`checks.{setting}`" in reply.error["message"]
    assert flow.sent == []


def test_the_chat_door_refuses_it_too(flow: Flow) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": doubling(40)}}
    body = {"model": PLAIN, "messages": [{"role": "user", "content": "Go"}], "response_format": wanted}
    reply = flow.post("/v1/chat/completions", body)
    assert reply.status == 400
    assert "`checks.max_expanded`" in reply.error["message"]


def test_patterns_that_take_too_long_to_compile_stop_nobody_else(special: Any) -> None:
    flow = special(extra=DEADLINE)
    reply = others_go_on(flow, lambda talk: talk.post("/v1/responses", asked(letters(400, 45), DEEPSEEK)))
    assert reply.status == 400
    assert reply.error["code"] == "schema_too_large"
    assert _names_a_limit(reply.error["message"])
    assert _works(flow)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_takes_too_long_to_check_stops_nobody_else(special: Any, streamed: bool) -> None:
    flow = special(extra=DEADLINE)
    attack = asked(BRANCHING, FULL, stream=streamed)
    reply = others_go_on(flow, lambda talk: talk.post("/v1/responses", attack), chat(TOWER))
    if streamed:
        last = json.loads(reply.body.split(b"data: ")[-2 if b"[DONE]" in reply.body else -1])
        assert last["type"] == "response.failed"
        response = last["response"]
    else:
        response = reply.json
    assert response["status"] == "failed"
    assert response["error"]["code"] == "bridge.response.output_unchecked"
    assert _names_a_limit(response["error"]["message"])
    assert _works(flow)


def test_a_loose_format_that_cannot_be_checked_is_passed_on_with_a_diagnostic(special: Any) -> None:
    flow = special(extra="[checks]\ndeadline = 0.5\nquick = 0.1")
    flow.script(chat(TOWER))
    attack = asked(BRANCHING, FULL)
    attack["text"]["format"]["strict"] = False
    response = flow.create(attack)
    assert response["status"] == "completed"
    [said] = [said for said in response["isthmus"]["diagnostics"] if said["code"] == "bridge.response.output_unchecked"]
    assert _names_a_limit(said["message"])


def test_many_equal_looking_items_stop_nobody_else(special: Any) -> None:
    flow = special(extra=DEADLINE)
    items = [{"a": [0] * 50, "b": at} for at in range(20_000)]
    flow.script(chat(json.dumps(items)))
    schema = {"type": "array", "uniqueItems": True}
    reply = Talk(flow.server.url, timeout=LONG).post("/v1/responses", asked(schema, FULL))
    error = reply.json["error"]
    assert error is None or _names_a_limit(error["message"])
    assert _works(flow)


def test_a_pattern_that_looks_catastrophic_is_matched_in_linear_time(flow: Flow) -> None:
    flow.script(chat(json.dumps("a" * 50_000 + "b")))
    schema = {"type": "string", "pattern": "^(a+)+$"}
    response = flow.create(asked(schema, FULL))
    assert response["error"]["code"] == "bridge.response.invalid_output_format"


HEAVY: dict[str, Callable[[int], Json]] = {
    "a long regex": lambda at: {"syntax": "regex", "definition": "(?:a|b)?" * 11_000 + str(at)},
    "many parentheses": lambda at: {"syntax": "regex", "definition": "(" * 7_000 + str(at) + ")" * 7_000},
    "a large grammar": lambda at: {"syntax": "lark", "definition": _optional_rules(900, at)},
}


@pytest.mark.parametrize("attack", HEAVY)
def test_grammars_that_take_long_to_read_stop_nobody_else(special: Any, attack: str) -> None:
    flow = special(extra=DEADLINE)
    tools = [
        {"type": "custom", "name": f"t{at}", "format": {"type": "grammar", **HEAVY[attack](at)}} for at in range(8)
    ]
    calls = [(f"call_{at}", f"t{at}", {"input": "aab"}) for at in range(8)]
    body = {"model": PLAIN, "input": "Go", "tools": tools}
    reply = others_go_on(flow, lambda talk: talk.post("/v1/responses", body), chat(calls=calls))
    assert reply.status == 200
    assert [item["input"] for item in reply.json["output"]] == ["aab"] * 8
    assert _works(flow)


def test_a_grammar_that_takes_too_long_leaves_the_call_unchecked_with_a_diagnostic(special: Any) -> None:
    flow = special(extra="[checks]\ndeadline = 0.05\nquick = 0.01")
    definition = "(?:a|b)?" * 11_000
    tool = {"type": "custom", "name": "t", "format": {"type": "grammar", "syntax": "regex", "definition": definition}}
    flow.script(*[chat(calls=[("call_1", "t", {"input": "aab"})])] * 2)
    whole, _ = flow.both({"model": PLAIN, "input": "Go", "tools": [tool]})
    assert whole["output"][0]["input"] == "aab"
    codes = {said["code"]: said["message"] for said in whole["isthmus"]["diagnostics"]}
    assert "`checks.deadline`" in codes["bridge.tool.grammar_unchecked"]


def test_when_too_much_is_waiting_the_next_is_told_to_come_back(special: Any) -> None:
    flow = special(extra="[checks]\nworkers = 1\nslow_workers = 1\nquick = 60\ndeadline = 60\nqueue = 1\nwait = 60")
    flow.script(chat(TOWER))
    threads = [_Attack(flow, lambda talk: talk.post("/v1/responses", asked(BRANCHING, FULL)))]
    until(lambda: _busy(flow) and flow.sent)
    until(lambda: _busy(flow))
    threads.append(_Attack(flow, lambda talk: talk.post("/v1/responses", asked({"maximum": 1}))))
    until(lambda: _pool(flow)._waiting == 1)
    reply = flow.post("/v1/responses", asked({"maximum": 2}))
    assert reply.status == 503
    assert reply.error["code"] == "workers_busy"
    assert "`checks.queue`" in reply.error["message"]
    assert reply.headers["retry-after"] == "1"
    flow.script(chat("1"))
    _kill(flow)
    assert threads[0].end().json["error"]["code"] == "bridge.response.output_unchecked"
    assert threads[1].end().status == 200


def test_the_demo_model_refuses_what_can_be_counted_in_tools_and_formats(tmp_path: Any) -> None:
    with running_gateway_server(DEMO) as gateway:
        talk = Talk(gateway.url)
        tool = {"type": "function", "name": "f", "parameters": {"type": "object", **doubling(40)}}
        for body in (asked(doubling(40), "demo"), {"model": "demo", "input": "Call f", "tools": [tool]}):
            reply = talk.post("/v1/responses", body)
            assert reply.status == 400
            assert "`checks.max_expanded`" in reply.error["message"]
        assert gateway.gateway._checker._workers.started == 0  # type: ignore[attr-defined]


def test_a_schema_that_keeps_the_demo_model_busy_stops_nobody_else() -> None:
    with running_gateway_server(DEMO) as gateway:
        talk = Talk(gateway.url)
        tool = {"type": "function", "name": "f", "parameters": {"type": "object", **letters(400, 45)}}
        body = {"model": "demo", "input": "Call f", "tools": [tool], "tool_choice": "required"}
        attack = _Attack(gateway, lambda talk: talk.post("/v1/responses", body))
        until(lambda: gateway.gateway._checker._workers._busy)  # type: ignore[attr-defined]
        for _ in range(3):
            assert talk.create({"model": "demo", "input": "hello"})["status"] == "completed"
            assert attack.pending
        reply = attack.end()
        assert reply.status == 400
        assert _names_a_limit(reply.error["message"])
        called = talk.create({**body, "tools": [{**tool, "parameters": {"type": "object"}}]})
        assert called["output"][-1]["type"] == "function_call"


DEMO = f'[server]\nport = 0\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n{DEADLINE}\n'


class _Attack:
    """A request on its way, in a thread of its own."""

    def __init__(self, served: Any, send: Callable[[Talk], Reply]) -> None:
        url = served.server.url if isinstance(served, Flow) else served.url
        self._reply: list[Reply] = []
        self._thread = threading.Thread(
            target=lambda: self._reply.append(send(Talk(url, timeout=LONG))), name="attack", daemon=True
        )
        self._thread.start()

    @property
    def pending(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> Reply:
        self._thread.join(LONG)
        assert self._reply, "the attack was not answered"
        return self._reply[0]


def others_go_on(flow: Flow, attack: Callable[[Talk], Reply], *steps: Any) -> Reply:
    """Start a stream, then the attack; read on and ask for the health while a worker is busy with the attack."""
    gates = [Gate(word) for word in WORDS]
    first, *words, last, usage = chat_chunks("".join(WORDS), pieces=len(WORDS))
    parts: list[Any] = [event(first)]
    for gate, word in zip(gates, words, strict=True):
        parts += [gate, event(word)]
    flow.script(stream([*parts, event(last), event(usage), b"data: [DONE]\n\n"]), *steps)
    with flow.streaming("/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}) as events:
        events.until("response.created")
        flow.wait_sent()
        attacking = _Attack(flow, attack)
        until(lambda: _busy(flow) and len(flow.sent) == 1 + len(steps))
        for gate in gates:
            assert flow.get("/health").status == 200
            gate.open()
            events.until("response.output_text.delta")
            assert attacking.pending, "the attack was over before the others were served"
        events.until("response.completed")
    return attacking.end()


def _optional_rules(count: int, at: int) -> str:
    rules = "".join(f'\nr{number}: "{at}"' for number in range(count))
    return "start: " + " ".join(f"r{number}?" for number in range(count)) + rules


def _works(flow: Flow) -> bool:
    """A well-meant schema right after it."""
    flow.script(chat('{"n": 1}'))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return bool(flow.create(asked(schema))["status"] == "completed")


def _names_a_limit(message: str) -> bool:
    """The time or the memory: which comes first depends on the machine."""
    return "`checks.deadline`" in message or "`checks.memory`" in message


def _pool(flow: Flow) -> Any:
    return flow.server.gateway._checker._workers  # type: ignore[attr-defined]


def _busy(flow: Flow) -> bool:
    return bool(_pool(flow)._busy)


def _kill(flow: Flow) -> None:
    for worker in list(_pool(flow)._busy):
        os.kill(worker.pid, signal.SIGKILL)
