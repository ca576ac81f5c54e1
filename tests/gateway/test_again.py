"""A request noted with its response, and taken from there again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gateway.house import asking
from isthmus.bridge.types.clients import CODEX, KNOWN_CLIENTS
from isthmus.gateway.again import Asked, note, recall
from isthmus.gateway.caller import Caller
from isthmus.ports import StoredResponse
from isthmus.ports.keys import Grant

MCP = {"type": "mcp", "server_label": "s", "server_url": "https://mcp.example/", "authorization": "secret-token"}
FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def stored(asked: Asked) -> StoredResponse:
    items = tuple(msgspec.json.encode(item) for item in asked.request.items)
    return StoredResponse("resp_1", b"{}", input=items, status="queued", owner=asked.caller.owner, memo=note(asked))


@pytest.mark.parametrize("given", ["hi", [{"role": "user", "content": "hi"}], [{"type": "item_reference", "id": "m"}]])
@pytest.mark.parametrize("strict", [None, True, False])
def test_what_is_recalled_is_what_was_asked(given: Any, strict: bool | None) -> None:
    request = asking(input=given, background=True, temperature=0.5, tools=[FUNCTION], previous_response_id="resp_0")
    grant = Grant(models=("fast",), endpoints=frozenset({"responses"}), tools=("mcp:docs",))
    caller = Caller("team:t", "key_1", team="t", grant=grant, name="ann", team_models=("x/*",), client=CODEX)
    recalled = recall(stored(Asked(caller, request, strict)))
    assert recalled is not None
    assert recalled.request.items == request.items
    assert {**recalled.request.body, "input": given} == request.body
    assert (recalled.strict, recalled.caller) == (strict, caller)


@pytest.mark.parametrize("name", KNOWN_CLIENTS)
@pytest.mark.parametrize("summaries", [True, False])
def test_so_is_how_its_client_reads_thoughts(name: str, summaries: bool) -> None:
    caller = Caller(client=replace(KNOWN_CLIENTS[name], reads_summaries=summaries))
    recalled = recall(stored(Asked(caller, asking(background=True), None)))
    assert recalled is not None
    assert recalled.caller == caller


def test_the_input_is_not_kept_twice() -> None:
    assert len(note(Asked(Caller(), asking(input="long " * 100_000), None))) < 200


@pytest.mark.parametrize(
    "fields", [{"tools": [MCP]}, {"input": [{"type": "tool_search_output", "call_id": "c", "tools": [MCP]}]}]
)
def test_what_carries_credentials_is_not_noted(fields: dict[str, Any]) -> None:
    record = stored(Asked(Caller(), asking(background=True, **fields), None))
    assert record.memo == b""
    assert recall(record) is None
