"""Whole sessions at clouds that refuse what others forgive: tools over several turns, schemas, images, whole and
streamed, each request looked at as the cloud would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flowing import Flow
from flowing_providers import provider_flow
from isthmus.testing import RecordedRequest, ScriptedUpstream, Step, chat, error
from serving import running_gateway_server
from speaking_messages import called, claude, said
from speaking_responses import native
from strict_clouds import (
    AWS,
    AZURE_KEY,
    BEDROCK_KEY,
    ENTRA_TOKEN,
    REGION,
    Refused,
    TokenServer,
    guarded,
    refused_by_azure,
    refused_by_mantle,
    service_account,
)
from strict_vendors import refused_by_gemini, signed_call
from talking import Talk, message_text

Json = dict[str, Any]
Guard = Callable[[RecordedRequest], Refused]

PIXEL = "data:image/png;base64,iVBORw0KGgo="
VIEW: Json = {"type": "function", "name": "view", "parameters": {"type": "object", "properties": {}}}
CALL = ("call_1", "view", "{}")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FORMAT = {"format": {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": True}}


def session(flow: Talk, push: Callable[..., None], guard: Guard, model: str, *, streamed: bool, answers: Any) -> None:
    """Three turns and a schema: nothing of it is refused."""

    def ask(body: Json) -> Json:
        response = flow.stream(body)[1] if streamed else flow.create(body)
        assert response["status"] == "completed", response["error"]
        return response

    push(
        guarded(guard, answers(calls=[CALL])),
        guarded(guard, answers("A cat.")),
        guarded(guard, answers("Yes.")),
        guarded(guard, answers('{"n": 1}')),
    )
    asked: Json = {"model": model, "tools": [VIEW], "instructions": "Look well.", "max_output_tokens": 500}
    image = {"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]}
    first = ask({**asked, "input": [{"role": "user", "content": "What is it?"}, image]})
    (called,) = (item for item in first["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": called["call_id"], "output": "a cat"}
    second = ask({**asked, "input": [result], "previous_response_id": first["id"]})
    assert message_text(second) == "A cat."
    third = ask({**asked, "input": "Sure?", "previous_response_id": second["id"], "prompt_cache_key": "k1"})
    assert message_text(third) == "Yes."
    assert message_text(ask({"model": model, "input": "A number", "text": FORMAT})) == '{"n": 1}'


each_mode = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


# Azure

AZURE_PLACES = {
    "azure": "uses = 'azure'",
    "chatty": "uses = 'azure'\ndialect = 'chat'",
    "entra": "uses = 'azure'\nendpoint = 'entra'",
}


@pytest.fixture(scope="module")
def _azure() -> Iterator[tuple[Talk, ScriptedUpstream]]:
    with ScriptedUpstream.running(strict=False) as upstream:
        root = upstream.base_url.removesuffix("/v1")
        places = "".join(
            f"[providers.{name}]\n{lines}\nbase_url = '{root}/openai/v1'\nretries = 0\n"
            f"api_key = '{ENTRA_TOKEN if name == 'entra' else AZURE_KEY}'\n"
            for name, lines in AZURE_PLACES.items()
        )
        old = (
            f"[providers.old]\nuses = 'azure'\ndialect = 'chat'\napi_key = '{AZURE_KEY}'\nretries = 0\n"
            f"base_url = '{root}/openai/deployments/gpt-5.1'\nquery = {{ api-version = '2024-10-21' }}\n"
        )
        wrong = "".join(
            f"[providers.{name}]\n{lines}\napi_key = '{AZURE_KEY}'\nretries = 0\n"
            for name, lines in {
                "bearer": f"uses = 'openai'\nbase_url = '{root}/openai/v1'",
                "lost": f"uses = 'azure'\nbase_url = '{root}/v1'",
                "dated": f"uses = 'azure'\nbase_url = '{root}/openai/v1'\nquery = {{ api-version = '2024-10-21' }}",
                "undated": f"uses = 'azure'\ndialect = 'chat'\nbase_url = '{root}/openai/deployments/gpt-5.1'",
            }.items()
        )
        head = "[models]\ndemo = false\n[server]\nport = 0\n[store]\nurl = 'memory:'\n[log]\nlevel = 'error'\n"
        with running_gateway_server(head + places + old + wrong) as gateway:
            yield Talk(gateway.url), upstream


@pytest.fixture
def azure(_azure: tuple[Talk, ScriptedUpstream]) -> Iterator[tuple[Talk, ScriptedUpstream]]:
    talk, upstream = _azure
    yield talk, upstream
    upstream._script.clear()


@each_mode
@pytest.mark.parametrize(
    ("model", "answers"),
    [("azure/gpt-5.1", native), ("chatty/gpt-5.1", chat), ("entra/gpt-5.1", native), ("old/gpt-5.1", chat)],
)
def test_azure_takes_every_request_of_a_session(
    azure: tuple[Talk, ScriptedUpstream], model: str, answers: Any, streamed: bool
) -> None:
    talk, upstream = azure
    session(talk, upstream.push, refused_by_azure({"gpt-5.1"}), model, streamed=streamed, answers=answers)


@pytest.mark.parametrize(
    ("model", "status", "words"),
    [
        ("bearer/gpt-5.1", 403, "refused our credentials"),
        ("lost/gpt-5.1", 404, "Resource not found"),
        ("dated/gpt-5.1", 400, "API version not supported"),
        ("undated/gpt-5.1", 404, "Resource not found"),
        ("azure/gpt-9", 404, "deployment"),
    ],
)
def test_azure_refuses_what_it_does_not_know(
    azure: tuple[Talk, ScriptedUpstream], model: str, status: int, words: str
) -> None:
    talk, upstream = azure
    upstream.push(guarded(refused_by_azure({"gpt-5.1"}), native("never")))
    answer = talk.post("/v1/responses", {"model": model, "input": "hi"})
    assert answer.status == status
    assert words in answer.error["message"]
    assert AZURE_KEY not in answer.body.decode()


# Bedrock


@contextmanager
def cloud(
    folder: Path, name: str, endpoint: str, section: str = "", *, retries: int = 0
) -> Iterator[tuple[Flow, ScriptedUpstream]]:
    """A gateway whose own provider file puts the cloud at the scripted server: that is what the file's own keys are
    for."""
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream.running())
        files = folder / "providers"
        files.mkdir()
        placed = endpoint.replace("@ROOT@", upstream.base_url).replace("@HOST@", upstream.base_url.removesuffix("/v1"))
        (files / "mine.toml").write_text(f"extends = '{name}'\n{placed}")
        toml = (
            f"provider_folders = ['{files}']\n[models]\ndemo = false\n[server]\nport = 0\n[log]\nlevel = 'error'\n"
            f"[store]\nurl = 'sqlite:{folder / 'flow.db'}'\n[providers.mine]\nretries = {retries}\n{section}"
        )
        gateway = stack.enter_context(running_gateway_server(toml))
        flow = Flow(gateway, upstream, folder / "flow.db")
        yield flow, upstream
        flow.check()


KEYED = "[endpoint]\nbase_url = '@ROOT@'\nmessages_url = '@HOST@/anthropic/v1'\n"
SIGNED = (
    "[endpoint]\nbase_url = '@ROOT@'\nmessages_url = '@HOST@/anthropic/v1'\nkey_env = []\nauth = 'sigv4'\n"
    f"sign = {{ service = 'bedrock-mantle', region = '{REGION}' }}\n"
)
MANTLE = {
    "a key": (KEYED, f"api_key = '{BEDROCK_KEY}'\n", False),
    "a signature": (SIGNED, "", True),
}


@pytest.fixture
def _aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", AWS.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS.secret_key)
    monkeypatch.setenv("AWS_SESSION_TOKEN", AWS.token)


@pytest.mark.usefixtures("_aws")
@pytest.mark.parametrize(("endpoint", "section", "signed"), MANTLE.values(), ids=list(MANTLE))
def test_mantle_takes_every_request_of_a_session(tmp_path: Path, endpoint: str, section: str, signed: bool) -> None:
    with cloud(tmp_path, "bedrock", endpoint, section) as (flow, upstream):
        guard = refused_by_mantle(signed=signed)
        for streamed in (False, True):
            # OpenAI's models are spoken to in Responses, all others in Chat Completions, at one and the same provider.
            session(flow, flow.script, guard, "mine/openai.gpt-oss-120b", streamed=streamed, answers=native)
            session(flow, flow.script, guard, "mine/moonshotai.kimi-k2.5", streamed=streamed, answers=chat)
        paths = [request.path for request in upstream.requests]
        assert paths == ["/v1/responses"] * 4 + ["/v1/chat/completions"] * 4 + paths[:8]


def in_messages(text: str | None = None, *, calls: Any = ()) -> Step:
    return claude(*([said(text)] if text else []), *(called(id, name) for id, name, _ in calls))


@pytest.mark.usefixtures("_aws")
@pytest.mark.parametrize(("endpoint", "section", "signed"), MANTLE.values(), ids=list(MANTLE))
def test_mantle_is_spoken_to_in_messages_where_it_is_claude_that_answers(
    tmp_path: Path, endpoint: str, section: str, signed: bool
) -> None:
    """Nobody has to say so, and the other models stay where they are."""
    with cloud(tmp_path, "bedrock", endpoint, section) as (flow, upstream):
        guard = refused_by_mantle(signed=signed)
        for streamed in (False, True):
            session(flow, flow.script, guard, "mine/anthropic.claude-opus-5", streamed=streamed, answers=in_messages)
        session(flow, flow.script, guard, "mine/openai.gpt-oss-120b", streamed=True, answers=native)
        assert {request.path for request in upstream.requests[:8]} == {"/anthropic/v1/messages"}
        flow.script(*(guarded(guard, in_messages("Hi.")) for _ in range(2)))
        for name in ("claude-opus-5", "claude-sonnet-4-6"):  # the newer one takes no temperature, the older up to 1
            asked = {"model": f"mine/anthropic.{name}", "input": "hi", "temperature": 1.5, "user": "u1"}
            assert message_text(flow.create(asked)) == "Hi."
        assert [request.json.get("temperature") for request in upstream.requests[-2:]] == [None, 1]
        assert not any("authorization" in request.headers for request in upstream.requests[:8] if not signed)


@pytest.mark.usefixtures("_aws")
@pytest.mark.parametrize(
    ("dialect", "model"),
    [("chat", "anthropic.claude-opus-5"), ("messages", "moonshotai.kimi-k2.5")],
    ids=["Claude in chat", "Kimi in Messages"],
)
def test_a_dialect_that_a_model_is_not_spoken_to_in_there(tmp_path: Path, dialect: str, model: str) -> None:
    """Claude in chat is what the user asked for, and the cloud refuses it; no other model is at the place of Claude."""
    with cloud(tmp_path, "bedrock", KEYED, f"api_key = '{BEDROCK_KEY}'\ndialect = '{dialect}'\n") as (flow, upstream):
        flow.script(guarded(refused_by_mantle(signed=False), chat("Hi.")))
        answer = flow.post("/v1/responses", {"model": f"mine/{model}", "input": "hi"})
        assert [request.path for request in upstream.requests] == ["/v1/chat/completions"]
        assert answer.status == (400 if dialect == "chat" else 200)


@pytest.mark.usefixtures("_aws")
def test_every_attempt_at_mantle_is_signed_anew(tmp_path: Path) -> None:
    with cloud(tmp_path, "bedrock", SIGNED, retries=1) as (flow, upstream):
        guard = refused_by_mantle(signed=True)
        flow.script(guarded(guard, error(503, "busy", retry_after=0)), guarded(guard, native("Hi.")))
        assert message_text(flow.create({"model": "mine/openai.gpt-oss-120b", "input": "hi"})) == "Hi."
        assert len(upstream.requests) == 2
        assert all(AWS.secret_key not in str(request.raw_headers) for request in upstream.requests)


@pytest.mark.usefixtures("_aws")
def test_mantle_refuses_a_wrong_route_and_the_words_say_which(tmp_path: Path) -> None:
    with cloud(tmp_path, "bedrock", SIGNED) as (flow, _):
        flow.script(guarded(refused_by_mantle(signed=True), native("never")))
        answer = flow.post("/v1/responses", {"model": "mine/openai.gpt-5.5", "input": "hi"})
        assert answer.status == 400
        assert "isn't supported on this route" in answer.error["message"]


def test_without_aws_credentials_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with cloud(tmp_path, "bedrock", SIGNED) as (flow, upstream):
        answer = flow.post("/v1/responses", {"model": "mine/openai.gpt-oss-120b", "input": "hi"})
        assert answer.status == 403
        assert "provider `mine` was not asked: there are no AWS credentials" in answer.error["message"]
        assert upstream.requests == []


# Vertex

PLACE = "'@ROOT@/projects/${GOOGLE_VERTEX_PROJECT}/locations/global/endpoints/openapi'"
VERTEX = f"[endpoint]\nbase_url = {PLACE}\n"
PROJECT = "variables = { GOOGLE_VERTEX_PROJECT = 'p-1' }\n"


@each_mode
def test_vertex_takes_every_request_of_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    tokens = TokenServer()

    def guard(request: RecordedRequest) -> Refused:
        words = refused_by_gemini(request.json["messages"])
        return tokens.takes(request) or ((400, words) if words else None)

    def answers(text: str | None = None, **scene: Any) -> Step:
        return signed_call(*scene["calls"]) if "calls" in scene else chat(text)

    with ScriptedUpstream.running(default=tokens) as google:
        account = service_account(tmp_path, f"{google.base_url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
        with cloud(tmp_path, "vertex", VERTEX, PROJECT) as (flow, _):
            model = "mine/google/gemini-3.5-flash"
            session(flow, flow.script, guard, model, streamed=streamed, answers=answers)
        assert len(google.requests) == 1


def test_a_token_that_google_does_not_give_is_a_403_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with cloud(tmp_path, "vertex", VERTEX, PROJECT) as (flow, upstream):
        answer = flow.post("/v1/responses", {"model": "mine/google/gemini-3.5-flash", "input": "hi"})
        assert answer.status == 403
        assert "provider `mine` was not asked" in answer.error["message"]
        assert "gcloud auth application-default login" in answer.error["message"]
        assert upstream.requests == []


def test_the_clouds_really_refuse(tmp_path: Path) -> None:
    with provider_flow(tmp_path, {"openai-compatible": ""}) as flow:
        flow.script(*(guarded(guard, chat("never")) for guard in (refused_by_azure({"m"}), TokenServer().takes)))
        for _ in range(2):
            assert flow.post("/v1/responses", {"model": "openai-compatible/m", "input": "hi"}).status == 404
        flow.script(*(guarded(refused_by_mantle(signed=signed), chat("never")) for signed in (True, False)))
        for _ in range(2):
            assert flow.post("/v1/responses", {"model": "openai-compatible/m", "input": "hi"}).status == 403
