"""An operator's hooks over real sockets: what they change, refuse and break, at every door and in every dialect.

The two examples of the guide are what is run here.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import ConfigError
from isthmus.testing import Gate, ScriptedUpstream, chat, chat_chunks, error, reply, stream
from one_provider import one_provider
from serving import GatewayThread
from socketing import open_socket
from speaking_messages import claude, said
from speaking_responses import native
from talking import Talk, message_text
from waiting import until

EXAMPLES = Path(__file__).parents[2] / "examples" / "hooks"
ADDRESS = "ann@example.org"
ASKED = {"input": f"write to {ADDRESS}"}
Json = dict[str, Any]


@contextmanager
def hooked(
    upstream: ScriptedUpstream,
    *uses: str,
    folder: Path = EXAMPLES,
    more: str = "",
    settings: str = "",
    uses_file: str = "openai-compatible",
) -> Iterator[tuple[Talk, GatewayThread]]:
    listed = ", ".join(f'"{each}"' for each in uses)
    section = f'{settings}\n[hooks]\nuses = [{listed}]\nfolder = "{folder}"\n{more}\n'
    with one_provider(upstream, section, uses=uses_file) as (talk, gateway):
        yield talk, gateway


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    """A hook of the test's own: a class `Mine`."""
    (folder / name).write_text(f"from isthmus.hooks import *\nimport asyncio, threading, time\n{text}")
    return folder


def mail(request: Any) -> Any:
    """A model that repeats the addresses, or what it got in their place, in pieces."""
    said = request.json["messages"][-1]["content"]
    return chat(f"I have written to {said.split()[-1]}.", pieces=12)(request)


# ── redaction ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def redacting() -> Iterator[tuple[Talk, ScriptedUpstream, GatewayThread]]:
    with (
        ScriptedUpstream.running(default=mail) as upstream,
        hooked(upstream, "redact.py:Redact") as (talk, gateway),
    ):
        yield talk, upstream, gateway


def seen(upstream: ScriptedUpstream) -> str:
    return upstream.requests[-1].body.decode()


def test_the_provider_gets_a_placeholder_and_the_client_its_address(redacting: Any) -> None:
    talk, upstream, _ = redacting
    answer = talk.post("/v1/responses", ASKED)
    response = answer.json
    assert response["output_text"] == f"I have written to {ADDRESS}."
    assert message_text(response) == f"I have written to {ADDRESS}."
    assert ADDRESS not in seen(upstream)
    assert "<email-1>" in seen(upstream)
    told = response["isthmus"]["diagnostics"]
    assert [(each["code"], each["path"], each["metadata"]) for each in told] == [
        (
            "bridge.hook.changed",
            "upstream.messages[0].content",
            {"hook": "redact.py:Redact", "stage": "before_send"},
        ),
        (
            "bridge.hook.changed",
            "output[0].content[0].text",
            {"hook": "redact.py:Redact", "stage": "after_reply"},
        ),
    ]
    assert answer.headers["isthmus-plan"] == "degraded=2"
    kept = talk.get(f"/v1/responses/{response['id']}").json
    assert kept["output"] == response["output"]


def test_a_stream_is_told_when_all_of_it_was_put_back(redacting: Any) -> None:
    talk, upstream, _ = redacting
    events, response = talk.stream(ASKED)
    assert response["output_text"] == f"I have written to {ADDRESS}."
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == (
        f"I have written to {ADDRESS}."
    )
    assert "email-1" not in json.dumps(events)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert ADDRESS not in seen(upstream)


def test_a_stream_that_is_read_again_is_the_same(redacting: Any) -> None:
    talk, _, _ = redacting
    events, response = talk.stream(ASKED)
    with talk.streaming(f"/v1/responses/{response['id']}?stream=true", method="GET") as stream:
        assert list(stream) == events


def test_the_next_turn_sends_no_address_either(redacting: Any) -> None:
    talk, upstream, _ = redacting
    first = talk.create(ASKED)
    talk.create({"input": f"and to {ADDRESS}", "previous_response_id": first["id"]})
    assert ADDRESS not in seen(upstream)
    assert seen(upstream).count("<email-1>") == 3


def test_chat_and_messages_are_the_same_to_it(redacting: Any) -> None:
    talk, upstream, _ = redacting
    words = [{"role": "user", "content": f"write to {ADDRESS}"}]
    completion = talk.chat({"model": "main/some-model", "messages": words})
    assert completion["choices"][0]["message"]["content"] == f"I have written to {ADDRESS}."
    assert ADDRESS not in seen(upstream)
    chunks = talk.chat_stream({"model": "main/some-model", "messages": words})
    said = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert said == f"I have written to {ADDRESS}."
    message = talk.message({"model": "main/some-model", "max_tokens": 99, "messages": words})
    assert message["content"][0]["text"] == f"I have written to {ADDRESS}."
    assert ADDRESS not in seen(upstream)
    frames = talk.message_stream({"model": "main/some-model", "max_tokens": 99, "messages": words})
    assert ADDRESS in json.dumps(frames)
    assert "email-1" not in json.dumps(frames)
    assert ADDRESS not in seen(upstream)


def test_in_the_background_too(redacting: Any) -> None:
    talk, upstream, _ = redacting
    queued = talk.create({**ASKED, "background": True})
    path = f"/v1/responses/{queued['id']}"
    until(lambda: talk.get(path).json["status"] == "completed")
    assert talk.get(path).json["output_text"] == f"I have written to {ADDRESS}."
    with talk.streaming(f"{path}?stream=true", method="GET") as stream:
        events = list(stream)
    assert "email-1" not in json.dumps(events)
    assert events[-1]["response"]["output_text"] == f"I have written to {ADDRESS}."
    assert ADDRESS not in seen(upstream)


def test_over_a_websocket_too(redacting: Any) -> None:
    _, upstream, gateway = redacting
    with open_socket(gateway.url) as socket:
        socket.ask({"model": "main/some-model", **ASKED})
        events = socket.rest()
    assert events[-1]["response"]["output_text"] == f"I have written to {ADDRESS}."
    assert "email-1" not in json.dumps(events)
    assert ADDRESS not in seen(upstream)


@pytest.mark.parametrize(("uses", "answer"), [("openai", native), ("anthropic", lambda text: claude(said(text)))])
def test_other_dialects_are_the_same_to_it(uses: str, answer: Any) -> None:
    dialect = {"openai": "responses", "anthropic": "messages"}[uses]
    with (
        ScriptedUpstream.running(default=answer("I have written to <email-1>."), strict=False) as upstream,
        hooked(upstream, "redact.py:Redact", settings=f'dialect = "{dialect}"\napi_key = "k"', uses_file=uses) as (
            talk,
            _,
        ),
    ):
        whole, _ = talk.both(ASKED)
        assert whole["output_text"] == f"I have written to {ADDRESS}."
        assert all(ADDRESS not in request.body.decode() for request in upstream.requests)
        assert len(upstream.requests) == 2


def test_the_trace_tells_it(redacting: Any) -> None:
    talk, _, gateway = redacting
    response = talk.create(ASKED)
    gateway.do(gateway.gateway.tracing.settle())  # type: ignore[union-attr]
    trace = talk.get(f"/v1/isthmus/traces/{response['id']}").json
    told = json.dumps(trace)
    assert "bridge.hook.changed" in told
    assert "redact.py:Redact" in told


def test_a_client_knows_that_we_are_there_while_an_answer_is_held() -> None:
    gate, (first, *others) = Gate(), chat_chunks("one two", pieces=2)
    with (
        ScriptedUpstream.running([stream([first, gate, *others])]) as upstream,
        hooked(upstream, "redact.py:Redact") as (talk, gateway),
        talk.streaming("/v1/responses", {"input": "hi", "stream": True}) as told,
    ):
        assert [told.next()["type"] for _ in range(2)] == ["response.created", "response.in_progress"]  # type: ignore[index]
        gateway.skip(16)
        beat = told.next()
        assert beat is not None
        assert (beat["type"], beat["sequence_number"]) == ("response.in_progress", 2)
        gate.open()
        rest = list(told)
        assert [event["sequence_number"] for event in rest] == list(range(3, 3 + len(rest)))
        deltas = [event["delta"] for event in rest if event["type"] == "response.output_text.delta"]
        assert ("".join(deltas), len(deltas)) == ("one two", 2)


# ── guardrails ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "tell me of Project Heron"}),
        ("/v1/responses", {"input": "tell me of Project Heron", "stream": True}),
        ("/v1/responses", {"input": "tell me of Project Heron", "background": True}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "tell me of Project Heron"}]}),
        ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "tell me of Project Heron"}]}),
        ("/v1/responses/compact", {"input": "tell me of Project Heron"}),
        ("/v1/responses/input_tokens", {"input": "tell me of Project Heron"}),
    ],
)
def test_a_refusal_is_a_400_with_the_hooks_words_and_nothing_is_sent(path: str, body: Json) -> None:
    with (
        ScriptedUpstream.running(default=chat("never")) as upstream,
        hooked(upstream, "guard.py:Guard") as (talk, _),
    ):
        answer = talk.post(path, {"model": "main/some-model", **body})
        assert answer.status == 400
        error = answer.json["error"]
        assert "`project heron` must not be told to a model" in error["message"]
        if path != "/v1/messages":
            assert error["code"] == "refused_by_hook"
        assert upstream.requests == []


def test_an_answer_can_be_refused_before_anybody_sees_it() -> None:
    with (
        ScriptedUpstream.running(default=chat("It is Project Kestrel!")) as upstream,
        hooked(upstream, "guard.py:Guard") as (talk, _),
    ):
        whole = talk.post("/v1/responses", {"input": "what is it?"})
        assert (whole.status, whole.json["error"]["code"]) == (400, "refused_by_hook")
        assert "Kestrel" not in whole.body.decode()
        events, response = talk.stream({"input": "what is it?"})
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.failed",
        ]
        assert response["error"] == {
            "code": "refused_by_hook",
            "message": "the answer speaks of something that must not be told",
        }
        assert "Kestrel" not in json.dumps(events)
        kept = talk.get(f"/v1/responses/{response['id']}").body.decode()
        assert "Kestrel" not in kept
        chat_answer = talk.post(
            "/v1/chat/completions",
            {"model": "main/some-model", "messages": [{"role": "user", "content": "what is it?"}]},
        )
        assert (chat_answer.status, chat_answer.json["error"]["code"]) == (400, "refused_by_hook")


def test_embeddings_pass_by_the_same_hooks(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        """
class Mine:
    def before_plan(self, request, context):
        if "secret" in str(request):
            return Refuse("no " + context.kind)
    def before_send(self, body, sending, context):
        return {**body, "input": ["other"]}
""",
    )
    vectors = {"object": "list", "data": [{"embedding": [0.5], "index": 0}], "usage": {"prompt_tokens": 1}}
    with (
        ScriptedUpstream.running(default=reply(vectors), strict=False) as upstream,
        hooked(upstream, "mine.py:Mine", folder=folder) as (talk, _),
    ):
        refused = talk.post("/v1/embeddings", {"model": "main/some-model", "input": "a secret"})
        assert (refused.status, refused.json["error"]["message"]) == (400, "no embeddings")
        answer = talk.post("/v1/embeddings", {"model": "main/some-model", "input": ["mine"]})
        assert answer.status == 200, answer.body
        assert upstream.requests[-1].json["input"] == ["other"]
        assert answer.headers["isthmus-plan"] == "degraded=1"


# ── when, and how often ────────────────────────────────────────────────────────────────────────────

COUNTING = """
CALLS = []
class Mine:
    def before_plan(self, request, context):
        CALLS.append(("before_plan", "", context.state.setdefault("n", len(CALLS))))
    def before_send(self, body, sending, context):
        CALLS.append(("before_send", f"{sending.why} {sending.model} {sending.attempt}", context.state["n"]))
    def after_reply(self, response, context):
        CALLS.append(("after_reply", response["status"], context.state["n"]))
"""


def calls() -> list[Any]:
    (found,) = [module for name, module in sys.modules.items() if name.startswith("isthmus_hooks_counting")]
    return found.CALLS  # type: ignore[no-any-return]


def test_each_asking_is_looked_at_and_a_response_once(tmp_path: Path) -> None:
    form = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}}
    steps = [error(503), error(503), chat("no JSON"), chat("{}")]
    (tmp_path / "counting.py").write_text(COUNTING)
    fallbacks = 'retries = 1\n[models.fallbacks]\n"main/some-model" = ["main/other-model"]\n'
    with (
        ScriptedUpstream.running(steps) as upstream,
        hooked(upstream, "counting.py:Mine", folder=tmp_path, settings=fallbacks) as (talk, _),
    ):
        response = talk.create({"input": "hi", "text": form})
        assert response["status"] == "completed"
        assert calls() == [
            ("before_plan", "", 0),
            ("before_send", "first some-model 1", 0),  # its retry sends the same bytes
            ("before_send", "first other-model 2", 0),
            ("before_send", "repair other-model 2", 0),
            ("after_reply", "completed", 0),
        ]


# ── what can go wrong ──────────────────────────────────────────────────────────────────────────────

BREAKING: Mapping[str, tuple[str, str]] = {
    "it raises": ("def before_send(self, body, sending, context): raise ValueError(str(body))", "failed (ValueError)"),
    "it raises, async": ("async def before_plan(self, request, context): raise KeyError(str(request))", "(KeyError)"),
    "it is too slow": ("def before_send(self, body, sending, context): time.sleep(30)", "longer than `hooks.timeout`"),
    "it is too slow, async": (
        "async def after_reply(self, response, context): await asyncio.sleep(30)",
        "longer than `hooks.timeout`",
    ),
    "it will not be cancelled": (
        """async def before_plan(self, request, context):
        for _ in range(2):
            try: await asyncio.sleep(2)
            except asyncio.CancelledError: pass""",
        "longer than `hooks.timeout`",
    ),
    "no object": ("def before_send(self, body, sending, context): return [1]", "no object"),
    "no JSON": ("def before_send(self, body, sending, context): return {'a': object()}", "failed (TypeError)"),
    "another model": ("def before_send(self, body, sending, context): body['model'] = 'x'", "changed `model`"),
    "another tool": (
        "def before_send(self, body, sending, context): body['tools'][0]['function']['name'] = 'x'",
        "names of the tools",
    ),
    "no request": ("def before_plan(self, request, context): request['input'] = 7", "is refused"),
    "another stream": ("def before_plan(self, request, context): request['stream'] = True", "changed `stream`"),
    "another answer": ("def after_reply(self, response, context): response['status'] = 'x'", "changed `status`"),
    "another item": (
        "def after_reply(self, response, context): response['output'].append({'type': 'message', 'id': 'x'})",
        "did not make",
    ),
}
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize("case", BREAKING)
def test_a_hook_that_breaks_is_a_failure_of_its_own_and_its_content_is_not_logged(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    code, words = BREAKING[case]
    folder = written(tmp_path, f"class Mine:\n    {code}\n")
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        hooked(upstream, "mine.py:Mine", folder=folder, more='timeout = "200ms"') as (talk, _),
    ):
        answer = talk.post("/v1/responses", {"input": "my dear content", "tools": [TOOL]})
        assert (answer.status, answer.json["error"]["code"]) == (500, "hook_failed")
        assert words in answer.json["error"]["message"]
        assert "`mine.py:Mine`" in answer.json["error"]["message"]
        assert talk.get("/health").status == 200
        assert "my dear content" not in answer.body.decode() + caplog.text + capfd.readouterr().err
        told = [record.getMessage() for record in caplog.records if "hook.failed" in record.getMessage()]
        assert len(told) == 1
        if "raises" in case:
            assert "mine.py:" in told[0]


@pytest.mark.parametrize("case", BREAKING)
def test_or_is_skipped_where_the_operator_wants_that(case: str, tmp_path: Path) -> None:
    code, _ = BREAKING[case]
    folder = written(tmp_path, f"class Mine:\n    {code}\n")
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        hooked(upstream, "mine.py:Mine", folder=folder, more='timeout = "200ms"\non_failure = "skip"') as (talk, _),
    ):
        response = talk.create({"input": "hi", "tools": [TOOL]})
        assert response["output_text"] == "ok"
        (told,) = response["isthmus"]["diagnostics"]
        assert (told["code"], told["metadata"]["hook"]) == ("bridge.hook.skipped", "mine.py:Mine")


def test_hooks_that_hang_hold_up_nobody_else(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        """
GO = threading.Event()
class Mine:
    def before_send(self, body, sending, context):
        if "slow" in str(body):
            GO.wait(60)
""",
        "hanging.py",
    )
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        hooked(upstream, "hanging.py:Mine", folder=folder, more="timeout = 60\nat_once = 3") as (talk, _),
    ):
        (module,) = [each for name, each in sys.modules.items() if name.startswith("isthmus_hooks_hanging")]
        slow = [
            threading.Thread(target=lambda: talk.post("/v1/responses", {"input": "slow"}), daemon=True)
            for _ in range(2)
        ]
        for thread in slow:
            thread.start()
        assert talk.create({"input": "quick"})["output_text"] == "ok"
        module.GO.set()
        for thread in slow:
            thread.join(60)
        assert len(upstream.requests) == 3


def test_a_stream_that_is_not_held_can_be_failed_at_its_end_and_not_changed(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        """
class Mine:
    def after_reply(self, response, context):
        if "bad" in response["output_text"]:
            return Refuse("that was bad")
        response["output"][0]["content"][0]["text"] = "other"
""",
    )
    with (
        ScriptedUpstream.running([chat("good"), chat("bad"), chat("good")]) as upstream,
        hooked(upstream, "mine.py:Mine", folder=folder) as (talk, _),
    ):
        events, response = talk.stream({"input": "hi"})
        assert (response["output_text"], response["isthmus"]["diagnostics"][0]["code"]) == ("good", "bridge.hook.late")
        assert talk.get(f"/v1/responses/{response['id']}").json["output_text"] == "good"
        events, response = talk.stream({"input": "hi"})
        assert (response["status"], response["error"]["code"]) == ("failed", "refused_by_hook")
        assert any(event["type"] == "response.output_text.delta" for event in events)
        assert talk.create({"input": "hi"})["output_text"] == "other"


def test_a_field_that_a_hook_adds_is_sent(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        "class Mine:\n    def before_send(self, body, sending, context): return {**body, 'metadata': {'a': 'b'}}\n",
    )
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        hooked(upstream, "mine.py:Mine", folder=folder) as (talk, _),
    ):
        talk.create({"input": "hi"})
        assert upstream.requests[-1].json["metadata"] == {"a": "b"}


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ("mine", "names no hook"),
        ("nowhere.to_be_found:Mine", "cannot be loaded"),
        ("mine.py:Other", "has no `Other`"),
        ("mine.py:Wrong", "cannot be called with"),
        ("mine.py:Nothing", "is no hook"),
        ("missing.py:Mine", "there is no file"),
    ],
)
def test_a_hook_that_is_none_is_told_at_start(uses: str, words: str, tmp_path: Path) -> None:
    folder = written(
        tmp_path, "class Nothing: pass\nclass Wrong:\n    def before_send(self, body): pass\nclass Mine: pass\n"
    )
    with (
        ScriptedUpstream.running(default=chat("ok")) as upstream,
        pytest.raises(ConfigError, match=words) as raised,
        hooked(upstream, uses, folder=folder),
    ):
        pass
    assert raised.value.param == "hooks.uses[0]"
