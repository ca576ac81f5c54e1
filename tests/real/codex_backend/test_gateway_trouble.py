"""What goes wrong behind the gateway, and how its clients hear of it: refusals, lost processes, clients that leave."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from isthmus.bridge.dialects.codex.errors import LOGIN_MESSAGE
from isthmus.testing import HANG, Gate, ScriptedUpstream, error, stream
from real.codex_backend.house import (
    CHAT_WEATHER,
    House,
    answers,
    calls_in,
    codex_house,
    gateway_toml,
    make_home,
)
from real.codex_backend.rig import WEATHER, calls, opened_message, outputs_in, real, says, text_delta, tool_names
from serving import running_gateway_server
from talking import TERMINAL, message_text

pytestmark = real

T = TypeVar("T")

PARIS = ("call_paris", "get_weather", '{"city":"Paris"}')
HANGING = stream([*opened_message(), text_delta("Hel"), HANG], done=False)


@pytest.mark.parametrize(
    ("upstream", "status", "code", "words"),
    [
        (400, 400, "invalid_prompt", "the real reason"),
        (401, 403, "upstream_unauthorized", LOGIN_MESSAGE),
        (429, 429, "rate_limit_exceeded", "429"),
        (500, 502, "server_error", ""),
        (503, 503, "server_is_overloaded", ""),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"], ids=["responses", "chat"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_an_upstreams_refusal_is_an_http_error(
    house: House, upstream: int, status: int, code: str, words: str, path: str, streamed: bool
) -> None:
    house.script(error(upstream, "the real reason"))
    body = house.ask() if path == "/v1/responses" else house.say()
    reply = house.post(path, {**body, "stream": streamed})
    assert reply.status == status, reply.body
    assert reply.error["code"] == code
    assert words in reply.error["message"]


def test_a_failure_in_mid_stream_is_one_terminal_event(house: House) -> None:
    failed = {
        "type": "response.failed",
        "response": {"id": "r", "error": {"code": "context_length_exceeded", "message": "too long"}},
    }
    house.script(stream([*opened_message(), text_delta("Hel"), failed], done=False))
    with house.streaming("/v1/responses", house.ask(stream=True)) as stream_:
        events = list(stream_)
    assert [event["type"] for event in events if event["type"] in TERMINAL] == ["response.failed"]
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"
    assert message_text(events[-1]["response"]) == "Hel"


def test_an_answer_cut_short_is_incomplete(house: House) -> None:
    cut = {
        "type": "response.incomplete",
        "response": {"id": "r", "incomplete_details": {"reason": "max_output_tokens"}},
    }
    house.script(stream([*opened_message(), text_delta("Half"), cut], done=False))
    response = house.create(house.ask())
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"], ids=["responses", "chat"])
def test_a_client_that_leaves_a_stream_closes_the_upstream(house: House, path: str) -> None:
    gate = Gate("never")
    house.script(stream([*opened_message(), text_delta("Hel"), gate], done=False))
    body = house.ask() if path == "/v1/responses" else house.say()
    with house.streaming(path, {**body, "stream": True}) as events:
        events.next()
        gate.reached.wait()
    request = house.wait_sent()
    request.closed.wait()
    assert request.left_early
    gate.open()


def test_a_client_that_leaves_a_whole_answer_closes_the_upstream(house: House) -> None:
    gate = Gate("never")
    house.script(stream([*opened_message(), text_delta("Hel"), gate], done=False))
    connection = http.client.HTTPConnection(house.server.url.removeprefix("http://"))
    connection.request("POST", "/v1/responses", json.dumps(house.ask()))
    gate.reached.wait()
    connection.close()
    house.wait_sent().closed.wait()
    gate.open()


def test_a_stream_whose_model_is_silent_begins_all_the_same(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.upstream.codex.backend.QUICK", 0.1)
    gate = Gate("the refusal")
    house.script(replace(error(429, "slow down"), before=(gate,)))
    with house.streaming("/v1/responses", house.ask(stream=True)) as stream_:
        stream_.until("response.created")
        gate.open()
        events = list(stream_)
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


def test_a_model_that_stays_silent_is_given_up_and_its_upstream_closed(tmp_path: Path) -> None:
    timeouts = '[providers.codex.timeouts]\nfirst_byte = "200s"\nidle = "200s"\n'
    with codex_house(tmp_path, extra=timeouts) as house, ThreadPoolExecutor(1) as pool:
        house.script(says("Hi"), HANGING, stream([HANG], done=False))
        house.create(house.ask())
        with house.streaming("/v1/responses", house.ask(stream=True)) as events:
            events.until("response.output_text.delta")
            last = _skipping(house, pool.submit(events.until, "response.failed"))
        response = last["response"]
        assert response["error"]["code"] == "upstream_timeout"
        assert message_text(response) == "Hel"
        asked = pool.submit(house.post, "/v1/responses", house.ask())
        house.wait_sent(3)
        reply = _skipping(house, asked)
        assert (reply.status, reply.error["code"]) == (504, "upstream_timeout")
        for request in house.upstream.requests[1:]:
            request.closed.wait()


def test_a_tool_may_answer_half_a_minute_later(house: House) -> None:
    house.script(calls(PARIS), says("Other"), says("Late"))
    first = house.create(house.ask("Weather?", tools=[WEATHER]))
    house.let_pass(30)
    house.create(house.ask("Something else"))
    given = answers(first, call_paris="21")
    last = house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "Late"
    threads = house.threads
    assert threads[0] == threads[2] != threads[1]


def test_a_tool_that_answers_too_late_still_gets_its_answer(house: House) -> None:
    house.script(calls(PARIS), says("Sunny"))
    first = house.create(house.ask("Weather?", tools=[WEATHER]))
    house.let_pass(601)
    given = answers(first, call_paris="21")
    last = house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "Sunny"
    assert outputs_in(house.sent[1]) == [("call_paris", "21")]
    assert len(set(house.threads)) == 2


@pytest.mark.parametrize("form", ["previous_response_id", "full history", "chat"])
def test_a_process_lost_between_call_and_answer_goes_unnoticed(house: House, form: str) -> None:
    house.script(calls(PARIS), says("Sunny"))
    question = {"type": "message", "role": "user", "content": "Weather?"}
    if form == "chat":
        made = house.chat(house.say("Weather?", tools=[CHAT_WEATHER]))["choices"][0]["message"]
        house.kill_codex()
        output = {"role": "tool", "tool_call_id": "call_paris", "content": "21"}
        messages = [{"role": "user", "content": "Weather?"}, made, output]
        completion = house.chat({**house.say(tools=[CHAT_WEATHER]), "messages": messages})
        assert completion["choices"][0]["message"]["content"] == "Sunny"
    else:
        first = house.create(house.ask([question], tools=[WEATHER]))
        house.kill_codex()
        given = answers(first, call_paris="21")
        linked = form == "previous_response_id"
        items = given if linked else [question, *first["output"], *given]
        link = {"previous_response_id": first["id"]} if linked else {}
        assert message_text(house.create(house.ask(items, tools=[WEATHER], **link))) == "Sunny"
    before, after = house.sent
    kinds = [item.get("role", item["type"]) for item in after["input"]]
    assert kinds == ["user", "function_call", "function_call_output"]
    assert outputs_in(after) == [("call_paris", "21")]
    assert after["input"][1]["arguments"] == PARIS[2]
    assert tool_names(before) == tool_names(after)


def test_a_gateway_that_was_restarted_goes_on_from_its_store(tmp_path: Path) -> None:
    with ScriptedUpstream.running() as upstream:
        upstream.push(calls(PARIS), says("Sunny"))
        home = make_home(tmp_path, upstream.base_url)
        toml = gateway_toml(home, extra=f'[store]\nurl = "sqlite:{tmp_path}/house.db"\n')
        with running_gateway_server(toml) as gateway:
            first = House(gateway, upstream).create({"model": "codex/gpt-5.5", "input": "Weather?", "tools": [WEATHER]})
        with running_gateway_server(toml) as gateway:
            house = House(gateway, upstream)
            given = answers(first, call_paris="21")
            last = house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"]))
            assert message_text(last) == "Sunny"
            assert outputs_in(house.sent[0]) == [("call_paris", "21")]


def test_a_process_lost_in_mid_turn_is_one_terminal_event_and_the_next_request_is_served(house: House) -> None:
    house.script(HANGING, says("Back"))
    with house.streaming("/v1/responses", house.ask(stream=True)) as stream_:
        stream_.until("response.output_text.delta")
        house.kill_codex()
        events = list(stream_)
    assert [event["type"] for event in events if event["type"] in TERMINAL] == ["response.failed"]
    assert message_text(house.create(house.ask())) == "Back"


def test_a_process_lost_before_a_word_was_said_is_asked_again(house: House) -> None:
    def die(request: Any) -> Any:
        house.kill_codex()
        return says("never heard")

    house.script(die, says("Second try"))
    assert message_text(house.create(house.ask())) == "Second try"


def test_only_some_of_the_calls_answered_goes_on_from_history(house: House) -> None:
    oslo = ("call_oslo", "get_weather", "{}")
    house.script(calls(PARIS, oslo), says("Half"))
    first = house.create(house.ask("Weather?", tools=[WEATHER]))
    given = answers(first, call_paris="21")
    last = house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "Half"
    assert dict(outputs_in(house.sent[1])) == {"call_paris": "21", "call_oslo": "[no output recorded]"}
    assert any("no output" in told["message"] for told in last["isthmus"]["diagnostics"])


def test_an_edited_past_is_believed(house: House) -> None:
    house.script(says("Hello"), says("Edited"))
    first = house.create(house.ask("Hi"))
    past = [{"type": "message", "role": "user", "content": "Hi, edited"}, *first["output"]]
    last = house.create(house.ask([*past, {"type": "message", "role": "user", "content": "And?"}]))
    assert message_text(last) == "Edited"
    assert house.sent[1]["input"][0]["content"][0]["text"] == "Hi, edited"
    assert len(set(house.threads)) == 2


def test_two_branches_of_a_conversation_do_not_mix(house: House) -> None:
    house.script(says("Root"), says("Left"), says("Right"))
    root = house.create(house.ask("Hi"))
    for question, answer in (("left?", "Left"), ("right?", "Right")):
        response = house.create(house.ask(question, previous_response_id=root["id"]))
        assert message_text(response) == answer
    texts = [item["content"][0]["text"] for item in house.sent[2]["input"]]
    assert texts == ["Hi", "Root", "right?"]


def test_output_and_a_new_question_together_go_on_from_history(house: House) -> None:
    house.script(calls(PARIS), says("Both"))
    first = house.create(house.ask("Weather?", tools=[WEATHER]))
    items = [*answers(first, call_paris="21"), {"type": "message", "role": "user", "content": "In F?"}]
    last = house.create(house.ask(items, tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "Both"
    assert house.sent[1]["input"][-1]["content"][0]["text"] == "In F?"


def test_too_many_conversations_are_told_to_come_back(tmp_path: Path) -> None:
    with codex_house(tmp_path, codex="max_threads = 1") as house:
        house.script(HANGING, says("Now"))
        with house.streaming("/v1/responses", house.ask(stream=True)) as events:
            events.until("response.output_text.delta")
            reply = house.post("/v1/responses", house.ask())
            assert (reply.status, reply.error["code"]) == (503, "server_is_overloaded")
            assert reply.headers["retry-after"] == "1"
        house.wait_until(lambda: len(house.server.gateway.runs) == 0)
        assert message_text(house.create(house.ask())) == "Now"


def test_a_login_that_is_missing_is_told_with_the_command(tmp_path: Path) -> None:
    home = tmp_path / "no login"
    with ScriptedUpstream.running() as upstream, running_gateway_server(gateway_toml(home)) as gateway:
        house = House(gateway, upstream)
        reply = house.post("/v1/responses", house.ask())
        assert (reply.status, reply.error["code"]) == (403, "upstream_unauthorized")
        assert f"CODEX_HOME='{home}'" in reply.error["message"]
        assert "login`" in reply.error["message"]
        assert "not logged in" in house.get("/ready").json["providers"]["codex"]
        assert "codex/gpt-6.1-sol" in [model["id"] for model in house.get("/v1/models").json["data"]]


def test_the_users_own_servers_and_settings_stay_out(tmp_path: Path) -> None:
    config = '[mcp_servers.mine]\ncommand = "/bin/cat"\n[mcp_servers."with.dot"]\nurl = "http://127.0.0.1:9/mcp"\n'
    with codex_house(tmp_path, codex_config=config) as house:
        house.script(says("Hi"))
        house.create(house.ask(tools=[WEATHER]))
        assert tool_names(house.sent[0]) == ["get_weather"]


def test_codexs_own_tools_come_only_when_asked_for(tmp_path: Path) -> None:
    with codex_house(tmp_path, codex=f'own_tools = true\nfolder = "{tmp_path}"') as house:
        house.script(calls(PARIS), says("Sunny"))
        first = house.create(house.ask("Weather?", instructions="Mine.", tools=[WEATHER]))
        assert calls_in(first) == [PARIS]
        names = tool_names(house.sent[0])
        assert "get_weather" in names
        assert len(names) > 1
        assert "Mine." in str(house.sent[0]["input"])
        given = answers(first, call_paris="21")
        last = house.create(house.ask(given, instructions="Mine.", tools=[WEATHER], previous_response_id=first["id"]))
        assert message_text(last) == "Sunny"


def test_an_ended_gateway_leaves_no_process_behind(tmp_path: Path) -> None:
    with codex_house(tmp_path) as house:
        house.script(says("Hi"))
        house.create(house.ask())
        pid = house.health.pid
        folder = house.backend._folder
        assert folder.is_dir()
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()


def _skipping(house: House, asked: Future[T]) -> T:
    """The outcome, once enough time was skipped for it: each wait of the gateway's begins when the one before ended."""
    for _ in range(1000):
        if wait([asked], timeout=0.05).done:
            break
        house.server.skip(200)
    return asked.result(0)
