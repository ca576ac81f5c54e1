"""What survives when a thread is gone or its turn is held: sealed thoughts, images of tools, the operator's word."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import Answer, RecordedRequest, ScriptedUpstream, stream
from real.codex_backend.house import House, answers, codex_house, gateway_toml, make_home
from real.codex_backend.rig import BINARY, WEATHER, calls, completed, message_events, outputs_in, real, says
from serving import running_gateway_server
from talking import message_text

pytestmark = real

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


def _thought(secret: str) -> dict[str, Any]:
    item = {"type": "reasoning", "id": f"rs_{secret}", "summary": [], "encrypted_content": secret}
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


def _call(call_id: str) -> dict[str, Any]:
    item = {"type": "function_call", "id": "fc", "call_id": call_id, "name": "get_weather", "arguments": "{}"}
    return {"type": "response.output_item.done", "output_index": 1, "item": item}


def thinks_and_calls(secret: str, call_id: str) -> Answer:
    return stream([_thought(secret), _call(call_id), completed()], done=False)


def thinks_and_says(secret: str, text: str) -> Answer:
    return stream([_thought(secret), *message_events(text), completed()], done=False)


def _sealed(body: dict[str, Any]) -> list[str]:
    return [item["encrypted_content"] for item in body["input"] if item["type"] == "reasoning"]


def _kinds(body: dict[str, Any]) -> list[str]:
    return [item.get("role", item["type"]) for item in body["input"]]


@pytest.mark.parametrize("form", ["previous_response_id", "full history"])
def test_a_process_killed_between_call_and_answer_costs_no_reasoning(house: House, form: str) -> None:
    house.script(thinks_and_calls("first", "call_a"), says("Sunny"))
    question = {"type": "message", "role": "user", "content": "Weather?"}
    stateless = form == "full history"
    fields = {"store": False, "include": ["reasoning.encrypted_content"]} if stateless else {}
    first = house.create(house.ask([question], tools=[WEATHER], **fields))
    house.kill_codex()
    given = answers(first, call_a="21")
    items = [question, *first["output"], *given] if stateless else given
    link = {} if stateless else {"previous_response_id": first["id"]}
    assert message_text(house.create(house.ask(items, tools=[WEATHER], **fields, **link))) == "Sunny"
    assert _sealed(house.sent[1]) == ["first"]
    assert _kinds(house.sent[1]) == ["user", "reasoning", "function_call", "function_call_output"]
    assert len(set(house.threads)) == 2


def test_twenty_turns_held_by_a_process_that_is_killed_lose_neither_calls_nor_reasoning(house: House) -> None:
    def think(request: RecordedRequest) -> Answer:
        body = request.json
        who = next(item for item in body["input"] if item.get("role") == "user")["content"][0]["text"]
        told = outputs_in(body)
        return says(f"{_sealed(body)} {told}") if told else thinks_and_calls(f"secret of {who}", f"call_{who}")

    def ask(who: str) -> dict[str, Any]:
        return house.create(house.ask(who, tools=[WEATHER]))

    def answer(who: str, first: dict[str, Any]) -> str:
        given = answers(first, **{f"call_{who}": f"for {who}"})
        return message_text(house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"])))

    house.script(*[think] * 40)
    names = [f"client{number:02}" for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        firsts = list(pool.map(ask, names))
        house.kill_codex()
        said = list(pool.map(answer, names, firsts))
    assert said == [f"{[f'secret of {who}']} {[(f'call_{who}', f'for {who}')]}" for who in names]
    assert len(set(house.threads)) == 40, "twenty threads were rebuilt"


def test_a_branch_keeps_the_reasoning_of_its_stem(house: House) -> None:
    house.script(thinks_and_says("root", "Root"), says("Left"), says("Right"))
    root = house.create(house.ask("Hi"))
    for question in ("left?", "right?"):
        house.create(house.ask(question, previous_response_id=root["id"]))
    assert [_sealed(body) for body in house.sent[1:]] == [["root"], ["root"]]
    assert _kinds(house.sent[2]) == ["user", "reasoning", "assistant", "user"]


def test_a_restarted_gateway_keeps_the_reasoning(tmp_path: Path) -> None:
    with ScriptedUpstream.running() as upstream:
        upstream.push(thinks_and_calls("first", "call_a"), says("Sunny"))
        home = make_home(tmp_path, upstream.base_url)
        toml = gateway_toml(home, extra=f'[store]\nurl = "sqlite:{tmp_path}/house.db"\n')
        with running_gateway_server(toml) as gateway:
            first = House(gateway, upstream).create({"model": "codex/gpt-5.5", "input": "Weather?", "tools": [WEATHER]})
        with running_gateway_server(toml) as gateway:
            house = House(gateway, upstream)
            given = answers(first, call_a="21")
            house.create(house.ask(given, tools=[WEATHER], previous_response_id=first["id"]))
            assert _sealed(house.sent[0]) == ["first"]


def test_an_image_from_a_tool_goes_into_the_held_turn(house: House) -> None:
    house.script(thinks_and_calls("first", "call_a"), says("A pixel"))
    first = house.create(house.ask("Look", tools=[WEATHER]))
    parts = [{"type": "input_text", "text": "here"}, {"type": "input_image", "image_url": PIXEL}]
    output = {"type": "function_call_output", "call_id": "call_a", "output": parts}
    last = house.create(house.ask([output], tools=[WEATHER], previous_response_id=first["id"]))
    assert message_text(last) == "A pixel"
    assert len(set(house.threads)) == 1, "the turn that waited goes on"
    ((_, seen),) = outputs_in(house.sent[1])
    assert [part["type"] for part in seen] == ["input_text", "input_image"]
    assert seen[1]["image_url"] == PIXEL
    assert _sealed(house.sent[1]) == ["first"]
    assert last["isthmus"]["diagnostics"] == []


def test_a_binary_that_is_replaced_while_its_process_dies_is_told_and_found_again(tmp_path: Path) -> None:
    assert BINARY is not None
    link = tmp_path / "codex"
    link.symlink_to(BINARY)
    with codex_house(tmp_path, codex=f'binary = "{link}"') as house:
        house.script(says("Before"), says("After"))
        assert message_text(house.create(house.ask())) == "Before"
        link.unlink()
        house.kill_codex()
        reply = house.post("/v1/responses", house.ask())
        assert (reply.status, reply.error["code"]) == (503, "server_is_overloaded"), reply.body
        assert "retry-after" in reply.headers
        link.symlink_to(BINARY)
        house.server.skip(60)
        house.wait_until(lambda: house.health.state == "ready")
        assert message_text(house.create(house.ask())) == "After"


@pytest.mark.parametrize("approvals", ["decline", "allow"])
def test_codex_hears_the_configured_word_when_it_asks(tmp_path: Path, approvals: str) -> None:
    marker = tmp_path / "marker"
    wish = {"cmd": f"touch {marker}", "sandbox_permissions": "require_escalated", "justification": "please"}
    settings = f'own_tools = true\nfolder = "{tmp_path}"\napprovals = "{approvals}"'
    with codex_house(tmp_path, codex=settings) as house:
        house.script(calls(("call_a", "exec_command", json.dumps(wish))), says("Went on"))
        assert message_text(house.create(house.ask())) == "Went on"
        assert marker.exists() == (approvals == "allow")
        ((_, output),) = outputs_in(house.sent[1])
        assert ("rejected" in str(output)) == (approvals == "decline")
