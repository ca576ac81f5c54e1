"""Keys that an upstream repeats, and credentials that a client sends for its MCP servers, stay where they were sent.

Looked for in every byte that a client gets, in every log record down to debug, and in the database file with its log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from flowing import Flow
from isthmus.testing import PATIENCE, ScriptedUpstream, Step, chat, chat_chunks, chat_error, error, reply, stream
from leaking import assert_silent, listening
from serving import running_gateway_server
from speaking_responses import native, native_events, native_reply

Json = dict[str, Any]

KEY = "sk-live-0Zq7Kd81mXw4Tn92"
OTHER_KEY = "sk-live-9Yp3Rb65vUc1Lh07"
HEADER = "gatewayToken.4f8a1c93d7e25b60"
CODE = "f/uncti+on=Key==7Hs2&9Qx"
PASSWORD = "hunter2-But-Longer-31"
SECRETS = (KEY, OTHER_KEY, HEADER, CODE, PASSWORD)

CHAT = "leaky/some-model"
NATIVE = "native/gpt-4o"
SETTINGS = f"headers = {{ X-Gateway-Token = '{HEADER}' }}\nquery = {{ code = '{CODE}' }}\n"


def config(upstream: ScriptedUpstream, folder: Path, *, retries: int = 0, fallback: bool = False) -> str:
    base = upstream.base_url
    with_password = base.replace("://", f"://joe:{PASSWORD}@")
    fallbacks = f"[models.fallbacks]\n'{CHAT}' = ['other/some-model']\n" if fallback else ""
    return (
        f"[models]\ndemo = false\ndefault = '{CHAT}'\n{fallbacks}"
        f"[trace]\ncapture = 'full'\nunstored = true\n"  # all that is asked and answered is kept, but for secrets
        f"[server]\nport = 0\n[store]\nurl = 'sqlite:{folder / 'flow.db'}'\n[log]\nlevel = 'debug'\n"
        f"[providers.leaky]\nuses = 'openai-compatible'\nbase_url = '{base}'\napi_keys = ['{KEY}', '{OTHER_KEY}']\n"
        f"retries = {retries}\n{SETTINGS}"
        f"[providers.native]\nuses = 'openai'\nbase_url = '{base}'\napi_keys = ['{KEY}', '{OTHER_KEY}']\n"
        f"retries = 0\n{SETTINGS}"
        f"[providers.other]\nuses = 'openai-compatible'\nbase_url = '{base}'\napi_key = 'unlike-all-the-others'\n"
        f"[providers.walled]\nuses = 'openai-compatible'\nbase_url = '{with_password}'\nretries = 0\n"
    )


@contextmanager
def leaky(folder: Path, **settings: Any) -> Iterator[Flow]:
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream.running())
        server = stack.enter_context(running_gateway_server(config(upstream, folder, **settings)))
        flow = Flow(server, upstream, folder / "flow.db")
        yield flow
        flow.check()


ECHO = f"key {KEY}, {OTHER_KEY} or {quote(KEY, safe='')}, header {HEADER}, url /v1?code={quote(CODE, safe='')}&x=1"
"""What a talkative upstream says; `+` and `/` are told as they travel."""
ALSO = f" code {CODE} {json.dumps(CODE)} {quote(quote(CODE, safe=''), safe='')}"
LATE = "x" * 1990 + KEY
"""The message is shown in part: the cut goes through the key."""


def events_with(*last: Json | bytes) -> Step:
    return stream([*chat_chunks("Half an", usage=None)[:-1], *last], done=False)


TOLD: dict[str, Step] = {
    "a 400": error(400, ECHO + ALSO),
    "a 404": error(404, ECHO + ALSO),
    "a 429": error(429, ECHO + ALSO),
    "a 500": error(500, ECHO + ALSO),
    "a 500 that is cut": error(500, LATE),
    "a 500 with a bare text": reply(json.dumps(ECHO).encode(), status=500),
    "a 500 whose words are in `detail`": reply({"detail": ECHO}, status=500),
    "a 401": error(401, ECHO),
    "a page in place of an answer": reply("hello", headers={"Content-Type": f"text/html+{HEADER}"}),
    "a 500 with a telling id": reply(chat_error("broken"), status=500, headers={"x-request-id": f"for-{KEY}"}),
    "an error in a 200": reply(chat_error(ECHO + ALSO)),
    "a vendor's error in a 200": reply({"base_resp": {"status_code": 1004, "status_msg": ECHO}}),
    "a 200 that is not JSON": reply(f"oops {ECHO}".encode()),
    "a 200 that is not JSON and cut": reply(b"o" * 108 + KEY.encode()),
}
STREAMED: dict[str, Step] = {
    "an error in mid-stream": events_with(chat_error(ECHO + ALSO)),
    "an error in mid-stream that is cut": events_with(chat_error(LATE)),
    "a chunk that is not JSON": events_with(f"data: oops {ECHO}\n\n".encode()),
    "a chunk that is not JSON and cut": events_with(b"data: " + b"o" * 108 + KEY.encode() + b"\n\n"),
    "a chunk that is no object": events_with(b"data: " + json.dumps(ECHO).encode() + b"\n\n"),
}
NATIVELY: dict[str, Step] = {
    "an error event": stream([*native_events([])[:2], {"type": "error", "message": ECHO + ALSO}], done=False),
    "an event that is not JSON": stream([f"data: oops {KEY}\n\n".encode()], done=False),
    "an event that is no object": stream([b"data: " + json.dumps(ECHO).encode() + b"\n\n"], done=False),
    "a failed response": reply(native_reply([], status="failed", error={"code": "server_error", "message": ECHO})),
    "a 400": error(400, ECHO + ALSO),
}


def everywhere(flow: Flow, ask: Callable[[], bytes]) -> dict[str, str | bytes]:
    """Ask, and gather all places where a secret could have gone."""
    with listening() as said:
        client = ask()
        ready = flow.get("/ready").body
        traced = b"".join(
            flow.get(f"/v1/isthmus/traces/{each['id']}").body
            for each in flow.get("/v1/isthmus/traces?limit=20").json["data"]  # and with that all are written
        )
    assert traced
    return {"client": client, "ready": ready, "log": said.text, "traces": traced, "disk": flow.stored_bytes()}


def asking(flow: Flow, body: Json) -> bytes:
    """Every byte of the answer, headers included, and what the store says about it afterwards."""
    answer = flow.post("/v1/responses", body)
    told = repr(sorted(answer.headers.items())).encode() + answer.body
    for line in answer.body.splitlines():
        data = line.removeprefix(b"data: ")
        if data.startswith(b'{"') and b'"response"' in data:
            id = json.loads(data).get("response", {}).get("id") or json.loads(data).get("id")
            if id:
                told += flow.get(f"/v1/responses/{id}").body + flow.get(f"/v1/responses/{id}/input_items").body
                break
    return told


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with leaky(tmp_path_factory.mktemp("secrets")) as flow:
        yield flow


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    mine = Flow(_house.server, _house.upstream, _house.database)
    yield mine
    mine.upstream._default = None
    mine.check()


def answer_always(flow: Flow, step: Step) -> None:
    """Whatever fails with one key is asked again with the other, if that one is healthy: both hear the same."""
    flow.upstream._default = step


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("step", TOLD.values(), ids=list(TOLD))
def test_a_key_that_an_upstream_repeats_is_told_to_nobody(flow: Flow, step: Step, streamed: bool) -> None:
    answer_always(flow, step)
    body = {"model": CHAT, "input": "Hi", "stream": streamed}
    assert_silent(SECRETS, **everywhere(flow, lambda: asking(flow, body)))


@pytest.mark.parametrize("step", STREAMED.values(), ids=list(STREAMED))
def test_a_key_that_is_repeated_in_mid_stream_is_told_to_nobody(flow: Flow, step: Step) -> None:
    flow.script(step)
    found = everywhere(flow, lambda: asking(flow, {"model": CHAT, "input": "Hi", "stream": True}))
    assert b"Half an" in found["client"]  # type: ignore[operator]
    assert b"response.failed" in found["client"]  # type: ignore[operator]
    assert_silent(SECRETS, **found)


@pytest.mark.parametrize("step", NATIVELY.values(), ids=list(NATIVELY))
def test_a_key_that_a_responses_upstream_repeats_is_told_to_nobody(flow: Flow, step: Step) -> None:
    flow.script(step)
    assert_silent(SECRETS, **everywhere(flow, lambda: asking(flow, {"model": NATIVE, "input": "Hi", "stream": True})))


def test_the_rest_of_the_upstreams_words_stays(flow: Flow) -> None:
    flow.script(error(400, f"`temperature` is too hot for {KEY}; `code={quote(CODE, safe='')}` may use 0 to 1"))
    told = flow.post("/v1/responses", {"model": CHAT, "input": "Hi"}).error["message"]
    assert told == "provider `leaky`: `temperature` is too hot for <redacted>; `code=<redacted>` may use 0 to 1"


def test_a_response_made_in_the_background_keeps_no_key(flow: Flow) -> None:
    answer_always(flow, error(500, ECHO + ALSO))

    def ask() -> bytes:
        queued = flow.create({"model": CHAT, "input": "Hi", "background": True})
        deadline = time.monotonic() + PATIENCE
        while (found := flow.get(f"/v1/responses/{queued['id']}")).json["status"] in ("queued", "in_progress"):
            assert time.monotonic() < deadline
        again = flow.get(f"/v1/responses/{queued['id']}?stream=true")
        assert found.json["status"] == "failed"
        return found.body + again.body

    assert_silent(SECRETS, **everywhere(flow, ask))


def test_a_chat_client_is_told_no_key(flow: Flow) -> None:
    body = {"model": CHAT, "messages": [{"role": "user", "content": "Hi"}]}

    def ask() -> bytes:
        answer_always(flow, error(500, ECHO + ALSO))
        told = flow.post("/v1/chat/completions", body).body
        answer_always(flow, events_with(chat_error(ECHO + ALSO)))
        return told + flow.post("/v1/chat/completions", {**body, "stream": True}).body

    assert_silent(SECRETS, **everywhere(flow, ask))


def test_new_attempts_and_fallbacks_tell_no_key(tmp_path: Path) -> None:
    with leaky(tmp_path, retries=1, fallback=True) as flow:
        flow.script(error(503, ECHO), error(503, ECHO), error(503, ECHO), chat("Hello"))
        found = everywhere(flow, lambda: asking(flow, {"model": CHAT, "input": "Hi"}))
    assert b"bridge.attempt.failed" in found["client"]  # type: ignore[operator]
    assert "upstream.retry" in str(found["log"])
    assert_silent(SECRETS, **found)


def test_a_password_in_the_address_is_told_to_nobody(flow: Flow) -> None:
    flow.script(lambda request: error(500, f"{request.headers['authorization']} joe:{PASSWORD}@ {PASSWORD}"))
    found = everywhere(flow, lambda: asking(flow, {"model": "walled/m", "input": "Hi"}))
    basic = flow.upstream.requests[-1].headers["authorization"].removeprefix("Basic ")
    assert_silent((*SECRETS, basic), **found)


# MCP credentials


TOKEN = "mcp-oauth-5c0b7e91d2f84a36"
MCP_HEADER = "mcpHeader-77aa01be93cc42d0"
MCP_PASSWORD = "mcpPassword-19d8"
MCP_PATH = "s3cretPathOfZapier-b81f"
MCP_QUERY = "queryKey-60fe72ab"
MCP_SECRETS = (TOKEN, MCP_HEADER, MCP_PASSWORD, MCP_PATH, MCP_QUERY)
MCP: Json = {
    "type": "mcp",
    "server_label": "files",
    "server_url": f"https://joe:{MCP_PASSWORD}@mcp.example:8443/{MCP_PATH}/mcp?api_key={MCP_QUERY}",
    "authorization": TOKEN,
    "headers": {"X-Api-Key": f"Bearer {MCP_HEADER}"},
    "require_approval": "never",
}
SHOWN: Json = {
    **MCP,
    "server_url": "https://mcp.example:8443/<redacted>",
    "authorization": "<redacted>",
    "headers": {"X-Api-Key": "<redacted>"},
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_credentials_of_an_mcp_server_reach_the_provider_and_nobody_else(flow: Flow, streamed: bool) -> None:
    flow.script(native("Hello"))
    body = {"model": NATIVE, "input": "Hi", "tools": [MCP], "stream": streamed}
    found = everywhere(flow, lambda: asking(flow, body))
    assert flow.sent[-1]["tools"] == [MCP]
    assert_silent(MCP_SECRETS, **found)
    client = found["client"]
    assert isinstance(client, bytes)
    assert b"https://mcp.example:8443/<redacted>" in client


def test_a_provider_that_knows_no_mcp_leaves_no_trace_of_its_credentials(flow: Flow) -> None:
    flow.script(chat("Hello"))
    found = everywhere(flow, lambda: asking(flow, {"model": CHAT, "input": "Hi", "tools": [MCP]}))
    assert_silent(MCP_SECRETS, **found)


def test_a_provider_that_repeats_the_credentials_of_an_mcp_server_is_not_repeated(flow: Flow) -> None:
    words = f"424 from {MCP['server_url']} with {TOKEN} and {MCP_HEADER}"
    flow.script(error(400, words), stream([{"type": "error", "message": words}], done=False))
    listed = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "files", "tools": [], "error": words}
    call = {"type": "mcp_call", "id": "m_1", "server_label": "files", "name": "n", "arguments": "{}", "error": words}
    flow.script(reply(native_reply([listed, call])))
    body = {"model": NATIVE, "input": "Hi", "tools": [MCP]}

    def ask() -> bytes:
        streamed = [False, True, False]
        return b"".join(asking(flow, {**body, "stream": stream}) for stream in streamed)

    found = everywhere(flow, ask)
    assert b"mcp_list_tools" in found["client"]  # type: ignore[operator]
    assert_silent(MCP_SECRETS, **found)


def test_a_chained_turn_does_not_remember_the_credentials(flow: Flow) -> None:
    flow.script(native("One"), native("Two"))
    first = flow.create({"model": NATIVE, "input": "Hi", "tools": [MCP]})
    assert first["tools"] == [SHOWN]
    flow.create({"model": NATIVE, "input": "Go on", "previous_response_id": first["id"]})
    assert "tools" not in flow.sent[-1]


def test_tools_inside_the_input_are_kept_without_their_credentials(flow: Flow) -> None:
    """A later turn cannot call them: it says so, and sends no credentials that are none."""
    loaded = {"type": "additional_tools", "role": "developer", "tools": [MCP]}
    message = {"type": "message", "role": "user", "content": "Hi"}
    flow.script(native("One"), native("Two"))
    ids: list[str] = []

    def ask() -> bytes:
        first = flow.post("/v1/responses", {"model": NATIVE, "input": [loaded, message]})
        ids.append(first.json["id"])
        items = flow.get(f"/v1/responses/{ids[0]}/input_items").body
        assert b"additional_tools" in items
        second = flow.post("/v1/responses", {"model": NATIVE, "input": "Go on", "previous_response_id": ids[0]})
        return first.body + items + second.body

    found = everywhere(flow, ask)
    assert flow.sent[-2]["tools"] == [MCP]
    assert "tools" not in flow.sent[-1]
    assert b"declare it again" in found["client"]  # type: ignore[operator]
    assert_silent(MCP_SECRETS, **found)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_keys_of_the_other_providers_are_hidden_too(flow: Flow, streamed: bool) -> None:
    flow.script(error(400, ECHO + ALSO))
    body = {"model": "other/some-model", "input": "Hi", "stream": streamed}
    assert_silent(SECRETS, **everywhere(flow, lambda: asking(flow, body)))
