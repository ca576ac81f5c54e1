"""What a server says of its own models: one answer for clients, catalogues and the planner, to the bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import PATIENCE, ScriptedUpstream, Step, chat, error, reply, silence, stream
from serving import GatewayThread, running_gateway_server
from speaking_messages import claude, said
from speaking_responses import native
from talking import Talk

Json = dict[str, Any]

PICTURE = "data:image/png;base64,iVBORw0KGgo="
LOOK: Json = {
    "model": "mine/tiny",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "what is this?"},
                {"type": "input_image", "image_url": PICTURE},
            ],
        }
    ],
}
MISTRAL = (
    "{%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}{{- raise_exception('After the optional system"
    " message, conversation roles must alternate user and assistant roles except for tool calls and results.') }}"
)


TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def llama(window: int = 8192, *, vision: bool = False, template: str = "", tools: bool = True) -> dict[str, Step]:
    """The answers of a llama.cpp server with one model."""
    able = ["completion", "multimodal"] if vision else ["completion"]
    listing = {
        "models": [{"name": "tiny", "model": "tiny", "capabilities": able}],
        "object": "list",
        "data": [
            {
                "id": "tiny",
                "object": "model",
                "owned_by": "llamacpp",
                "meta": {"n_ctx_train": 131072, "n_ctx": window, "n_embd": 576},
            }
        ],
    }
    props = {
        "default_generation_settings": {"n_ctx": window, "params": {}},
        "total_slots": 1,
        "modalities": {"vision": vision, "audio": False},
        "chat_template": template,
        "chat_template_caps": {"supports_tools": tools},
        "build_info": "b1-0",
    }
    return {"/v1/models": reply(listing), "/props": reply(props)}


class House(Talk):
    def __init__(self, server: GatewayThread, upstream: ScriptedUpstream) -> None:
        super().__init__(server.url)
        self.server = server
        self.upstream = upstream

    @property
    def sent(self) -> list[Json]:
        return [request.json for request in self.upstream.requests if request.method == "POST"]

    def codex(self, slug: str) -> Json:
        """The entry of Codex's catalogue, as Codex gets it."""
        listed = self.get("/v1/models?client_version=0.166.0").json["models"]
        return next(entry for entry in listed if entry["slug"] == slug)

    def until(self, slug: str, **facts: Any) -> Json:
        """The entry, once it says this."""
        deadline = time.monotonic() + PATIENCE
        while True:
            entry = self.codex(slug)
            if all(entry[name] == value for name, value in facts.items()):
                return entry
            assert time.monotonic() < deadline, entry
            time.sleep(0.01)


@contextmanager
def house(
    folder: Path,
    routes: Mapping[str, Step],
    *steps: Step,
    uses: str = "llama-cpp",
    provider: str = "",
    more: str = "",
    models: str = "",
    dialect: str = "chat",
) -> Iterator[House]:
    with ScriptedUpstream.running(steps, routes=routes) as upstream:
        toml = f"""
[models]
demo = false
default = "mine/tiny"
{models}
[providers.mine]
uses = "{uses}"
base_url = "{upstream.base_url}"
dialect = "{dialect}"
retries = 2
{provider}
[store]
url = "sqlite:{folder / "word.db"}"
[server]
port = 0
[log]
level = "error"
{more}
"""
        with running_gateway_server(toml) as server:
            yield House(server, upstream)


# ── one answer ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("uses", ["llama-cpp", "openai-compatible"])
def test_codex_is_told_the_window_and_the_senses_that_the_server_has(tmp_path: Path, uses: str) -> None:
    with house(tmp_path, llama(), uses=uses) as it:
        entry = it.until("mine/tiny", context_window=8192)
        assert (entry["max_context_window"], entry["input_modalities"]) == (8192, ["text"])
        (listed,) = [model for model in it.get("/v1/models").json["data"] if model["id"] == "mine/tiny"]
        assert listed["isthmus"]["context_window"] == 8192
        assert listed["isthmus"]["input"] == ["text"]
        assert it.get("/v1/models/mine/tiny").json["isthmus"] == listed["isthmus"]


def test_an_image_that_the_server_cannot_read_is_not_sent_and_told(tmp_path: Path) -> None:
    with house(tmp_path, llama(), chat("a picture?")) as it:
        it.until("mine/tiny", context_window=8192)
        response = it.post("/v1/responses", LOOK).json
        (said,) = [said for said in response["isthmus"]["diagnostics"] if "content[1]" in said["path"]]
        assert (said["path"], said["action"]) == ("input[0].content[1]", "degraded")
        assert "image_url" not in json.dumps(it.sent)


SAYS = {"chat": chat, "responses": native, "messages": lambda text: claude(said(text))}
each_dialect = pytest.mark.parametrize("dialect", SAYS)


@each_dialect
def test_what_a_server_cannot_is_sent_in_no_dialect(tmp_path: Path, dialect: str) -> None:
    """Neither the image nor the tool, which the file has for all three."""
    body = {**LOOK, "tools": [TOOL]}
    with house(tmp_path, llama(tools=False), SAYS[dialect]("what?"), dialect=dialect) as it:
        assert it.until("mine/tiny", context_window=8192)["input_modalities"] == ["text"]
        response = it.post("/v1/responses", body).json
        told = {note["path"]: note["action"] for note in response["isthmus"]["diagnostics"]}
        assert told["input[0].content[1]"] == "degraded"
        assert "tools[0]" in told
        assert PICTURE.partition(",")[2] not in json.dumps(it.sent[0])
        assert "tools" not in it.sent[0]
        assert it.sent[0].get("max_tokens", 0) <= 4096, "a limit that must be there leaves room in the window"


@each_dialect
def test_what_the_user_writes_outranks_the_server_in_every_dialect(tmp_path: Path, dialect: str) -> None:
    facts = '[providers.mine.models."tiny"]\nmessages = { input = ["image"] }\nparameters = { temperature = false }'
    with house(tmp_path, llama(), SAYS[dialect]("seen"), provider=facts, dialect=dialect) as it:
        assert it.until("mine/tiny", context_window=8192)["input_modalities"] == ["text", "image"]
        response = it.post("/v1/responses", {**LOOK, "temperature": 0.5}).json
        assert PICTURE.partition(",")[2] in json.dumps(it.sent[0])
        assert "temperature" not in it.sent[0]
        assert "temperature" in [note["path"] for note in response["isthmus"]["diagnostics"]]


@pytest.mark.parametrize(("dialect", "efforts"), [("chat", 7), ("responses", 7), ("messages", 0)])
def test_the_catalogue_tells_what_can_be_asked_for_in_the_dialect_that_is_spoken(
    tmp_path: Path, dialect: str, efforts: int
) -> None:
    """What is offered to Codex is what is planned: over Messages this server knows no effort."""
    with house(tmp_path, llama(), SAYS[dialect]("hello"), dialect=dialect) as it:
        entry = it.until("mine/tiny", context_window=8192)
        assert len(entry["supported_reasoning_levels"]) == efforts
        shown = it.get("/v1/models/mine/tiny").json["isthmus"]
        assert len(shown.get("reasoning_efforts", [])) == efforts
        response = it.post("/v1/responses", {"model": "mine/tiny", "input": "hi", "reasoning": {"effort": "low"}}).json
        ignored = [note["path"] for note in response["isthmus"]["diagnostics"]]
        assert ("reasoning.effort" in ignored) is (efforts == 0)


def test_a_strict_caller_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with house(tmp_path, llama(), more="[plan]\nstrict = true") as it:
        it.until("mine/tiny", context_window=8192)
        answer = it.post("/v1/responses", LOOK)
        assert (answer.status, answer.error["param"]) == (400, "input[0].content[1]")
        assert it.sent == []


def test_a_server_that_sees_is_sent_the_image(tmp_path: Path) -> None:
    facts = '[providers.mine.models."tiny"]\nparameters = { seed = false }'
    with house(tmp_path, llama(4096, vision=True), chat("a cat"), provider=facts) as it:
        assert it.until("mine/tiny", context_window=4096)["input_modalities"] == ["text", "image"]
        it.post("/v1/responses", LOOK)
        assert "image_url" in json.dumps(it.sent[0])


def test_what_the_user_writes_outranks_the_server(tmp_path: Path) -> None:
    facts = '[providers.mine.models."tiny"]\nlimits = { context = 2048 }\nmessages = { input = ["image"] }'
    with house(tmp_path, llama(), chat("seen"), provider=facts) as it:
        it.server.do(it.server.gateway.words.settled(PATIENCE))
        entry = it.codex("mine/tiny")
        assert (entry["context_window"], entry["input_modalities"]) == (2048, ["text", "image"])
        it.post("/v1/responses", LOOK)
        assert "image_url" in json.dumps(it.sent[0])


def test_messages_are_ordered_as_the_template_wants_them(tmp_path: Path) -> None:
    """Known only from the template: the model's name says nothing."""
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    items = [
        {"type": "message", "role": "user", "content": "one"},
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": "two"},
        {"type": "message", "role": "user", "content": "three"},
    ]
    with house(tmp_path, llama(template=MISTRAL), chat("four")) as it:
        it.until("mine/tiny", context_window=8192)
        it.post("/v1/responses", {"model": "mine/tiny", "input": items, "tools": [TOOL]})
        (sent,) = it.sent
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def test_tools_that_the_template_has_no_place_for_are_not_dropped_in_silence(tmp_path: Path) -> None:
    """The server itself takes them, `required` ones too, and leaves them out without a word."""
    body = {"model": "mine/tiny", "input": "look!", "tools": [TOOL]}
    with house(tmp_path, llama(tools=False), chat("at what?")) as it:
        it.until("mine/tiny", context_window=8192)
        response = it.post("/v1/responses", body).json
        assert "tools[0]" in [said["path"] for said in response["isthmus"]["diagnostics"]]
        assert "tools" not in it.sent[0]
        assert it.post("/v1/responses", {**body, "tool_choice": "required"}).status == 400
        assert len(it.sent) == 1


def test_what_cannot_fit_the_window_that_the_server_has_is_refused_here(tmp_path: Path) -> None:
    with house(tmp_path, llama(512), chat("short")) as it:
        it.until("mine/tiny", context_window=512)
        answer = it.post("/v1/responses", {"model": "mine/tiny", "input": "word " * 5000})
        assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
        assert it.sent == []
        assert it.post("/v1/responses", {"model": "mine/tiny", "input": "hi"}).status == 200


def test_a_changed_word_counts_for_the_next_request_without_a_restart(tmp_path: Path) -> None:
    routes = llama(4096, vision=True)
    with house(tmp_path, routes, chat("a cat"), chat("what?"), models='refresh = "1h"') as it:
        it.until("mine/tiny", context_window=4096)
        it.post("/v1/responses", LOOK)
        it.upstream._routes.update(llama(8192))
        words = it.server.gateway.words
        words._due["mine"] = 0.0
        it.until("mine/tiny", context_window=8192)
        it.post("/v1/responses", LOOK)
        assert ["image_url" in json.dumps(body) for body in it.sent] == [True, False]


def test_what_was_heard_outlives_the_gateway_and_the_server(tmp_path: Path) -> None:
    with house(tmp_path, llama()) as it:
        it.until("mine/tiny", context_window=8192)
        port = it.upstream.port
        toml = it.server._toml
        it.server.stop()
        asked = len(it.upstream.requests)
        with running_gateway_server(toml) as again:
            (entry,) = Talk(again.url).get("/v1/models?client_version=0.166.0").json["models"]
            assert (entry["slug"], entry["context_window"]) == ("mine/tiny", 8192)
        assert len(it.upstream.requests) == asked, "its word is fresh: nobody has to be asked"
        assert port
        it.server = again


# ── who is asked, and when ─────────────────────────────────────────────────────────────────────────


def test_questions_are_not_requests_for_a_script(tmp_path: Path) -> None:
    with house(tmp_path, {}, chat("hello")) as it:
        it.server.do(it.server.gateway.words.settled(PATIENCE))
        assert it.post("/v1/responses", {"model": "mine/tiny", "input": "hi"}).json["output_text"] == "hello"
        assert [request.target for request in it.upstream.requests] == ["/v1/chat/completions"]
        assert [question.path for question in it.upstream.questions] == ["/v1/models", "/props"]


def test_the_key_goes_along_as_it_does_with_requests(tmp_path: Path) -> None:
    given = 'api_key = "sk-local"\nheaders = { x-mine = "yes" }\nquery = { v = "1" }'
    with house(tmp_path, llama(), provider=given) as it:
        it.until("mine/tiny", context_window=8192)
        asked = it.upstream.requests[0]
        assert (asked.headers["authorization"], asked.headers["x-mine"]) == ("Bearer sk-local", "yes")
        assert asked.target == "/v1/models?v=1"


def test_a_request_does_not_wait_for_a_server_that_is_silent_about_itself(tmp_path: Path) -> None:
    with house(tmp_path, {"/v1/models": silence()}, chat("hello")) as it:
        it.upstream.wait_received()
        answer = it.post("/v1/responses", {"model": "mine/tiny", "input": "hi"})
        assert answer.json["output_text"] == "hello"


@pytest.mark.parametrize("off", [{"models": "refresh = 0"}, {"provider": "ask = false"}], ids=["refresh", "ask"])
def test_nobody_is_asked_where_that_is_switched_off(tmp_path: Path, off: Json) -> None:
    with house(tmp_path, llama(), chat("hello"), **off) as it:
        assert it.codex("mine/tiny")["context_window"] == 128_000
        it.post("/v1/responses", {"model": "mine/tiny", "input": "hi"})
        assert [request.target for request in it.upstream.requests] == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"[" * 100_000, b'{"data": [1, {"id": 3}, {"id": "x", "max_model_len": "?"}]}', b"true"]
)
def test_rubbish_changes_nothing(tmp_path: Path, body: bytes) -> None:
    with house(tmp_path, {"/v1/models": reply(body), "/props": reply(body)}, chat("hello")) as it:
        it.server.do(it.server.gateway.words.settled(PATIENCE))
        assert it.post("/v1/responses", {"model": "mine/tiny", "input": "hi"}).json["output_text"] == "hello"


# ── content that a server refuses ──────────────────────────────────────────────────────────────────

NO_IMAGES = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, NO_IMAGES),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (415, "Model does not support images. Please use a model that does."),
        (422, "Failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`"),
        (404, "No endpoints found that support image input"),
        (500, "this model is missing data required for image input"),
        (400, "Image input is not enabled for this model"),
    ],
)
@pytest.mark.parametrize(
    ("path", "param"),
    [("/v1/responses", "input[0].content[1]"), ("/v1/chat/completions", "messages[0].content[1]")],
)
def test_a_refused_image_is_a_400_that_says_where_it_stands(
    tmp_path: Path, path: str, param: str, status: int, words: str, streamed: bool
) -> None:
    body: Json = {**LOOK, "stream": streamed}
    if path == "/v1/chat/completions":
        content = [{"type": "text", "text": "this?"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
        body = {"model": "mine/tiny", "messages": [{"role": "user", "content": content}], "stream": streamed}
    with house(tmp_path, {}, error(status, words), uses="openai-compatible") as it:
        answer = it.post(path, body)
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_prompt", param)
        assert words in answer.error["message"]
        assert len(it.sent) == 1


def test_a_refused_image_inside_a_stream_is_final_too(tmp_path: Path) -> None:
    told = {"error": {"code": 500, "message": NO_IMAGES, "type": "server_error"}}
    with house(tmp_path, {}, stream([told], done=False), uses="openai-compatible") as it:
        with it.streaming("/v1/responses", {**LOOK, "stream": True}) as events:
            failed = events.until("response.failed")
        assert failed["response"]["error"]["code"] == "invalid_prompt"
        assert len(it.sent) == 1
