"""MCP tools over real sockets: a client, the gateway, a scripted chat model, and a real MCP server as a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from flowing import PLAIN, Flow, Json, running_flow
from isthmus.testing import ScriptedUpstream, chat
from leaking import assert_silent, listening
from mcp_world import running_server, seen_by
from one_provider import one_provider
from running_tools import Scene
from talking import Talk
from waiting import until

LABEL: Json = {"type": "mcp", "server_label": "world"}
FREE: Json = {**LABEL, "require_approval": "never"}
CALL = [("call_1", "world__weather", {"city": "Riga"})]
ASKED = {"model": PLAIN, "input": "How is the weather in Riga?"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


@contextmanager
def gateway(folder: Path, server: str, more: str = "", *, hosts: bool = False) -> Iterator[Flow]:
    place = server.removeprefix("http://").partition("/")[0]
    entry = f'private_hosts = ["{place}"]' if hosts else f'url = "{server}"'
    with running_flow(folder, extra=f"[mcp.world]\n{entry}\n{more}\n") as flow:
        yield flow


@pytest.fixture
def flow(tmp_path: Path, server: str) -> Iterator[Flow]:
    with gateway(tmp_path, server) as made:
        yield made


@contextmanager
def tools_at(dialect: str, server: str) -> Iterator[tuple[Talk, Scene]]:
    """A gateway with one provider that speaks this, and the server."""
    uses = "openai" if dialect == "responses" else "openai-compatible"
    settings = f'api_key = "sk-up"\nretries = 0\ndialect = "{dialect}"\n[mcp.world]\nurl = "{server}"\n'
    with ScriptedUpstream.running() as upstream, one_provider(upstream, settings, uses=uses) as (talk, gateway):
        nobody: Any = None
        yield talk, Scene(dialect, talk, gateway, upstream, nobody, nobody, nobody)
        upstream.check()


def types(items: list[Json]) -> list[str]:
    return [item["type"] for item in items]


def tools_of(body: Json) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools") or ()]


# ── a call ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_without_mcp_calls_a_server_in_one_response(flow: Flow) -> None:
    flow.script(*([chat(calls=CALL), chat("It rains.")] * 2))
    whole, _ = flow.both({**ASKED, "tools": [FREE]})
    assert types(whole["output"]) == ["mcp_list_tools", "mcp_call", "message"]
    listing, call, _ = whole["output"]
    assert {"weather", "delete"} <= {tool["name"] for tool in listing["tools"]}
    assert call["server_label"] == "world"
    assert call["name"] == "weather"
    assert json.loads(call["arguments"]) == {"city": "Riga"}
    assert call["output"] == "It rains in Riga."
    assert call["error"] is None
    assert call["status"] == "completed"
    assert "world__weather" in tools_of(flow.sent[0])
    *_, asked, answered = flow.sent[1]["messages"]
    assert asked["tool_calls"][0]["function"]["name"] == "world__weather"
    assert answered["role"] == "tool"
    assert answered["content"] == "It rains in Riga."


def test_its_events_come_in_the_documented_order(flow: Flow) -> None:
    flow.script(chat(calls=CALL), chat("It rains."))
    events, _ = flow.stream({**ASKED, "tools": [FREE]})
    told = [event["type"].removeprefix("response.") for event in events if "mcp" in event["type"]]
    assert told == [
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
    ]
    (done,) = [event for event in events if event["type"] == "response.mcp_call_arguments.done"]
    assert json.loads(done["arguments"]) == {"city": "Riga"}


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "words"),
    [
        ("world__fail", {}, "mcp_tool_execution_error", "the archive burnt down"),
        ("world__weather", {"town": 1}, "mcp_tool_execution_error", "city"),
    ],
)
def test_a_failed_call_is_an_item_and_words_for_the_model(
    flow: Flow, name: str, arguments: Json, kind: str, words: str
) -> None:
    flow.script(chat(calls=[("c", name, arguments)]), chat("Sorry."))
    events, response = flow.stream({**ASKED, "tools": [FREE]})
    assert response["status"] == "completed"
    (call,) = [item for item in response["output"] if item["type"] == "mcp_call"]
    assert call["status"] == "failed"
    assert call["error"]["type"] == kind
    assert words in json.dumps(call["error"])
    assert "response.mcp_call.failed" in [event["type"] for event in events]
    assert words in flow.sent[1]["messages"][-1]["content"]


def test_a_client_that_leaves_stops_the_call(flow: Flow) -> None:
    flow.script(chat(calls=[("c", "world__hang", {})]))
    with flow.streaming("/v1/responses", {**ASKED, "tools": [FREE], "stream": True, "store": False}) as stream:
        stream.until("response.mcp_call.in_progress")
    until(lambda: not len(flow.server.gateway.runs), "the call goes on")
    flow.script(chat(calls=CALL), chat("It rains."))
    assert flow.create({**ASKED, "tools": [FREE]})["output"][1]["output"] == "It rains in Riga."


def test_a_call_may_take_so_long_and_no_longer(tmp_path: Path, server: str) -> None:
    """However often it tells of progress."""
    with gateway(tmp_path, server, "[tools]\ntimeout = 1.5") as flow:
        flow.script(chat(calls=[("c", "world__slowly", {"steps": 1000, "pause": 0.1})]), chat("Too slow."))
        response = flow.create({**ASKED, "tools": [FREE]})
        assert "1.5 seconds" in response["output"][1]["error"]["message"]
        assert types(response["output"]) == ["mcp_list_tools", "mcp_call", "message"]


def test_the_next_turn_knows_the_list_and_the_call(flow: Flow, server: str) -> None:
    flow.script(chat(calls=CALL), chat("It rains."), chat("As I said."))
    first = flow.create({**ASKED, "tools": [FREE]})
    before = len(seen_by(server)["requests"])
    again = {"model": PLAIN, "input": "Really?", "previous_response_id": first["id"], "tools": [FREE]}
    second = flow.create(again)
    assert types(second["output"]) == ["message"]
    assert len(seen_by(server)["requests"]) == before
    assert flow.sent[2]["messages"][: len(flow.sent[1]["messages"])] == flow.sent[1]["messages"]
    assert tools_of(flow.sent[2]) == tools_of(flow.sent[1])


def test_a_client_that_keeps_nothing_here_sends_its_items_back(flow: Flow) -> None:
    flow.script(chat(calls=CALL), chat("It rains."), chat("As I said."))
    first = flow.create({**ASKED, "tools": [FREE], "store": False})
    items = [{"type": "message", "role": "user", "content": ASKED["input"]}, *first["output"]]
    items.append({"type": "message", "role": "user", "content": "Really?"})
    flow.create({"model": PLAIN, "input": items, "tools": [FREE], "store": False})
    assert flow.sent[2]["messages"][: len(flow.sent[1]["messages"])] == flow.sent[1]["messages"]


def test_a_list_that_a_client_made_up_calls_nothing(flow: Flow, server: str) -> None:
    made_up = {"name": "format_disk", "input_schema": {"type": "object"}}
    items = [
        {"type": "mcp_list_tools", "id": "mcpl_x", "server_label": "world", "tools": [made_up]},
        {"type": "message", "role": "user", "content": "Go."},
    ]
    flow.script(chat(calls=[("c", "world__format_disk", {})]), chat("No."))
    response = flow.create({"model": PLAIN, "input": items, "tools": [FREE]})
    assert types(response["output"]) == ["mcp_call", "message"]
    assert "has no tool `format_disk`" in response["output"][0]["error"]["message"]


def test_only_what_both_sides_allow_is_offered(tmp_path: Path, server: str) -> None:
    with gateway(tmp_path, server, 'allowed_tools = ["weather", "delete", "fail"]') as flow:
        flow.script(chat("ok"), chat("ok"))
        flow.create({**ASKED, "tools": [{**FREE, "allowed_tools": ["weather", "whoami"]}]})
        assert tools_of(flow.sent[0]) == ["world__weather"]
        flow.create({**ASKED, "tools": [{**FREE, "allowed_tools": {"read_only": True}}]})
        assert tools_of(flow.sent[1]) == ["world__weather", "world__fail"]


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_a_server_of_the_operators_own_is_called_from_here_whatever_the_model_speaks(server: str, dialect: str) -> None:
    with tools_at(dialect, server) as (talk, scene):
        scene.script(*([scene.calls(("world__weather", {"city": "Riga"})), scene.says("It rains.")] * 2))
        whole, _ = talk.both({"input": "hi", "tools": [FREE]})
        assert types(whole["output"]) == ["mcp_list_tools", "mcp_call", "message"]
        assert whole["output"][1]["output"] == "It rains in Riga."
        assert scene.results(scene.sent[1]) == [("world__weather", "It rains in Riga.")]
        assert scene.results(scene.sent[3]) == [("world__weather", "It rains in Riga.")]


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_an_approval_goes_on_whatever_the_model_speaks(server: str, dialect: str) -> None:
    with tools_at(dialect, server) as (talk, scene):
        scene.script(scene.calls(("world__weather", {"city": "Riga"})), scene.says("It rains."))
        first = talk.create({"input": "hi", "tools": [LABEL]})
        assert types(first["output"]) == ["mcp_list_tools", "mcp_approval_request"]
        body: Json = {"previous_response_id": first["id"], "input": [approve(first)], "tools": [LABEL]}
        _, second = talk.stream(body)
        assert types(second["output"]) == ["mcp_call", "message"]
        assert scene.results(scene.sent[1]) == [("world__weather", "It rains in Riga.")]


def test_a_provider_that_calls_servers_itself_calls_the_clients_own(server: str) -> None:
    before = len(seen_by(server)["requests"])
    with tools_at("responses", server) as (talk, scene):
        scene.script(scene.says("ok"))
        theirs = {**FREE, "server_label": "theirs", "server_url": "https://mcp.example.org/mcp", "authorization": TOKEN}
        response = talk.create({"input": "hi", "tools": [theirs]})
        assert types(response["output"]) == ["message"]
        (sent,) = scene.sent[0]["tools"]
        assert sent == theirs
        assert len(seen_by(server)["requests"]) == before


# ── approvals ──────────────────────────────────────────────────────────────────────────────────────────


def approve(response: Json, approve: bool = True, **more: Any) -> Json:
    (asked,) = [item for item in response["output"] if item["type"] == "mcp_approval_request"]
    return {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": approve, **more}


def test_a_call_waits_for_approval_unless_the_client_says_otherwise(flow: Flow, server: str) -> None:
    before = len(seen_by(server)["calls"])
    flow.script(*([chat(calls=CALL)] * 2))
    whole, _ = flow.both({**ASKED, "tools": [LABEL]})
    assert types(whole["output"]) == ["mcp_list_tools", "mcp_approval_request"]
    asked = whole["output"][1]
    assert (asked["server_label"], asked["name"]) == ("world", "weather")
    assert json.loads(asked["arguments"]) == {"city": "Riga"}
    assert whole["status"] == "completed"
    assert len(seen_by(server)["calls"]) == before


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "sent back"])
def test_an_approved_call_is_carried_out_after_the_gateway_was_started_anew(
    tmp_path: Path, server: str, stored: bool
) -> None:
    with gateway(tmp_path, server) as flow:
        flow.script(chat(calls=CALL))
        first = flow.create({**ASKED, "tools": [LABEL], "store": stored})
    with gateway(tmp_path, server) as flow:
        flow.script(chat("It rains."))
        body: Json = {"model": PLAIN, "tools": [LABEL], "store": stored}
        if stored:
            body |= {"previous_response_id": first["id"], "input": [approve(first)]}
        else:
            said = {"type": "message", "role": "user", "content": ASKED["input"]}
            body["input"] = [said, *first["output"], approve(first)]
        events, second = flow.stream(body)
        assert types(second["output"]) == ["mcp_call", "message"]
        call = second["output"][0]
        assert call["approval_request_id"] == approve(first)["approval_request_id"]
        assert call["output"] == "It rains in Riga."
        assert "response.mcp_call.completed" in [event["type"] for event in events]
        (sent,) = flow.sent
        *_, asked, answered = sent["messages"]
        assert asked["tool_calls"][0]["function"]["name"] == "world__weather"
        assert answered["content"] == "It rains in Riga."


def test_a_denied_call_is_not_carried_out_and_the_model_is_told_why(flow: Flow, server: str) -> None:
    flow.script(chat(calls=[("c", "world__delete", {"name": "everything"})]), chat("I leave it."))
    first = flow.create({**ASKED, "tools": [LABEL]})
    before = seen_by(server)["calls"]
    answer = approve(first, False, reason="not on a Friday")
    body = {"model": PLAIN, "previous_response_id": first["id"], "input": [answer], "tools": [LABEL]}
    second = flow.create(body)
    assert types(second["output"]) == ["message"]
    assert "not on a Friday" in flow.sent[1]["messages"][-1]["content"]
    assert seen_by(server)["calls"] == before


def test_an_approval_is_used_once(flow: Flow, server: str) -> None:
    flow.script(chat(calls=[("c", "world__delete", {"name": "this"})]), chat("Done."), chat("It is done."))
    first = flow.create({**ASKED, "tools": [LABEL]})
    body: Json = {"model": PLAIN, "tools": [LABEL]}
    second = flow.create({**body, "previous_response_id": first["id"], "input": [approve(first)]})
    assert seen_by(server)["calls"].count("delete this") == 1
    third = flow.create({**body, "previous_response_id": second["id"], "input": "Again?"})
    assert types(third["output"]) == ["message"]
    assert seen_by(server)["calls"].count("delete this") == 1


@pytest.mark.parametrize("rule", ["always", "writes"])
def test_no_client_weakens_the_operators_rule(tmp_path: Path, server: str, rule: str) -> None:
    with gateway(tmp_path, server, f'require_approval = "{rule}"') as flow:
        flow.script(chat(calls=[("c", "world__delete", {"name": "it"})]))
        response = flow.create({**ASKED, "tools": [FREE]})
        assert types(response["output"])[-1] == "mcp_approval_request"
        if rule == "writes":
            flow.script(chat(calls=CALL), chat("It rains."))
            response = flow.create({**ASKED, "tools": [FREE]})
            assert types(response["output"]) == ["mcp_list_tools", "mcp_call", "message"]


# ── who may be called ──────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_called_where_nobody_was_named(tmp_path: Path, server: str) -> None:
    with running_flow(tmp_path) as flow:
        flow.script(chat("ok"))
        before = len(seen_by(server)["requests"])
        response = flow.create({**ASKED, "tools": [{**FREE, "server_url": server}]})
        assert types(response["output"]) == ["message"]
        assert tools_of(flow.sent[0]) == []
        assert len(seen_by(server)["requests"]) == before


def test_a_clients_own_server_needs_a_host_that_the_operator_named(tmp_path: Path, server: str, flow: Flow) -> None:
    mine = {**FREE, "server_label": "mine", "server_url": server}
    flow.script(chat("ok"))
    refused = flow.create({**ASKED, "tools": [mine]})
    assert types(refused["output"]) == ["mcp_list_tools", "message"]
    assert "lets clients name no servers" in json.dumps(refused["output"][0]["error"])
    (tmp_path / "hosts").mkdir()
    with gateway(tmp_path / "hosts", server, hosts=True) as other:
        other.script(chat(calls=[("c", "mine__weather", {"city": "Oslo"})]), chat("It rains."))
        response = other.create({**ASKED, "tools": [mine]})
        assert response["output"][1]["output"] == "It rains in Oslo."


def test_a_server_that_is_down_costs_its_tools_and_nothing_else(tmp_path: Path) -> None:
    with running_flow(tmp_path, extra='[mcp.world]\nurl = "http://127.0.0.1:1/mcp"\n') as flow:
        flow.script(chat("I cannot look."))
        events, response = flow.stream({**ASKED, "tools": [FREE]})
        assert types(response["output"]) == ["mcp_list_tools", "message"]
        assert "cannot be reached" in response["output"][0]["error"]
        assert "response.mcp_list_tools.failed" in [event["type"] for event in events]
        ready = flow.get("/ready").json
        assert ready["status"] in ("degraded", "not ready")
        assert "cannot be reached" in ready["mcp"]["world"]


def test_a_bad_declaration_is_refused_by_name(flow: Flow) -> None:
    reply = flow.post("/v1/responses", {**ASKED, "tools": [{**FREE, "headers": {"Host": "inside"}}]})
    assert reply.status == 400
    assert reply.error["param"] == "tools"
    assert "of the MCP server `world`, `Host` is written by the connection itself" in reply.error["message"]


def test_servers_of_anthropics_door_are_refused_aloud(flow: Flow) -> None:
    asked = {
        "model": PLAIN,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "mcp_servers": [{"type": "url", "name": "world", "url": "https://mcp.example.org/"}],
    }
    reply = flow.post("/v1/messages", asked, {"anthropic-version": "2023-06-01"})
    assert reply.status == 400
    assert "mcp_servers" in reply.body.decode()


# ── secrets ────────────────────────────────────────────────────────────────────────────────────────────

TOKEN, HEADER, OPERATORS = "tok-91b2f7c4e8a35d06", "hdr-55c1a9e27f40b8d3", "opr-0d6e3b98c7f1a245"
IN_PATH = "path-7e21c9b04d5f8a63"


@pytest.mark.parametrize("stored", [True, False])
def test_credentials_reach_their_server_and_nobody_else(tmp_path: Path, server: str, stored: bool) -> None:
    """Planted in every place; the server repeats them all, and a bad one is refused with them in the request."""
    place = server.removeprefix("http://").partition("/")[0]
    extra = (
        f'[mcp.world]\nurl = "{server}"\nheaders = {{ "X-Operator" = "{OPERATORS}" }}\n'
        f'[mcp.hosts]\nprivate_hosts = ["{place}"]\n'
    )
    secret = {"authorization": TOKEN, "headers": {"X-Team": HEADER}}
    with listening() as said, running_flow(tmp_path, extra=extra) as flow:
        own = {**FREE, **secret}
        theirs = {**FREE, **secret, "server_label": "theirs", "server_url": f"{server.removesuffix('/mcp')}/{IN_PATH}"}
        flow.script(
            chat(calls=[("a", "world__whoami", {})]),
            chat("I saw."),
            chat(calls=[("a", "world__whoami", {})]),
            chat("ok"),
        )
        body = {**ASKED, "tools": [own, theirs], "store": stored, "include": ["reasoning.encrypted_content"]}
        events, response = flow.stream(body)
        whole = flow.create(body)
        (call,) = [item for item in whole["output"] if item["type"] == "mcp_call"]
        assert "<redacted>" in call["output"]
        assert "x-operator" in call["output"]
        seen = seen_by(server)["requests"]
        assert {TOKEN, HEADER} <= {value.removeprefix("Bearer ") for each in seen for value in each["headers"].values()}
        assert any(each["path"] == f"/{IN_PATH}" for each in seen)
        refused = flow.post("/v1/responses", {**body, "tools": [{**own, "headers": {"x-operator": HEADER}}]})
        assert refused.status == 400
        kept = flow.get(f"/v1/responses/{response['id']}").body if stored else b""
        assert_silent(
            [TOKEN, HEADER, OPERATORS, IN_PATH],
            events=json.dumps(events),
            whole=json.dumps(whole),
            upstream=json.dumps(flow.sent),
            upstream_heads=json.dumps([dict(request.headers) for request in flow.upstream.requests]),
            error=refused.body,
            kept=kept,
            store=flow.stored_bytes(),
            ready=flow.get("/ready").body,
        )
    assert_silent([TOKEN, HEADER, OPERATORS, IN_PATH], log=said.text)


def test_credentials_of_a_background_response_are_used_and_not_kept(flow: Flow, server: str) -> None:
    flow.script(chat(calls=CALL), chat("It rains."))
    own = {**FREE, "authorization": TOKEN}
    made = flow.post("/v1/responses", {**ASKED, "tools": [own], "background": True}).json
    path = f"/v1/responses/{made['id']}"
    ended = until(lambda: (found := flow.get(path).json)["status"] == "completed" and found)
    assert types(ended["output"]) == ["mcp_list_tools", "mcp_call", "message"]
    assert f"Bearer {TOKEN}" in {each["headers"].get("authorization") for each in seen_by(server)["requests"]}
    assert_silent([TOKEN], store=flow.stored_bytes(), kept=flow.get(path).body)


def test_credentials_are_not_kept_for_the_next_turn(flow: Flow) -> None:
    flow.script(chat("ok"), chat("ok"))
    first = flow.create({**ASKED, "tools": [{**FREE, "authorization": TOKEN}]})
    shown = first["tools"][0]
    assert shown["authorization"] == "<redacted>"
    body = {"model": PLAIN, "input": "Again", "previous_response_id": first["id"], "tools": [shown]}
    second = flow.create(body)
    assert second["output"][0]["type"] == "mcp_list_tools"
    assert "declare it again" in json.dumps(second["output"][0])
