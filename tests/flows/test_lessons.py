"""Servers of which nothing is known: what they may take is sent, what they refuse by name is left out, and known."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus import Bridge, tool
from isthmus.errors import PromptRefused
from isthmus.testing import CUT, ScriptedUpstream, Step, chat, chat_chunks, error, reply, stream
from serving import running_gateway_server
from talking import Talk
from wire.oracle import check_stream

Json = dict[str, Any]

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
SCHEMA = {
    "type": "json_schema",
    "name": "answer",
    "strict": True,
    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
PICTURE = "data:image/png;base64,iVBORw0KGgo="
REQUIRED = {"model": "mine/m", "input": "hi", "tools": [WEATHER], "tool_choice": "required"}
FORMAT = {"model": "mine/m", "input": "hi", "text": {"format": SCHEMA}}

NO_CHOICE = error(400, "tool_choice is not supported by this server")
NO_FORMAT = reply({"error": "'response_format.type' must be 'text'"}, status=400)
NO_PARALLEL = reply(
    {
        "detail": [
            {"type": "extra_forbidden", "loc": ["body", "parallel_tool_calls"], "msg": "Extra inputs are not permitted"}
        ]
    },
    status=422,
)


@tool
def weather() -> str:
    """The weather."""
    return "fine"


class House(Talk):
    """A gateway with one server behind it of which nothing is known, and what that was sent."""

    def __init__(self, url: str, upstream: ScriptedUpstream, config: str) -> None:
        super().__init__(url)
        self.upstream = upstream
        self.config = config
        self._before = len(upstream.requests)

    @property
    def sent(self) -> list[Json]:
        return [request.json for request in self.upstream.requests[self._before :]]

    def ask(self, body: Json, *, streamed: bool = False, path: str = "/v1/responses") -> Json:
        if not streamed:
            answer = self.post(path, body)
            assert answer.status == 200, answer.body
            return answer.json
        with self.streaming(path, {**body, "stream": True}) as events:
            return check_stream(list(events))


@contextmanager
def house(
    folder: Path, upstream: ScriptedUpstream, *, more: str = "", provider: str = "", name: str = "s"
) -> Iterator[House]:
    toml = f"""
[models]
demo = false
default = "mine/m"
[providers.mine]
uses = "openai-compatible"
base_url = "{upstream.base_url}"
retries = 1
{provider}
[store]
url = "sqlite:{folder / f"{name}.db"}"
[server]
port = 0
[log]
level = "error"
{more}
"""
    with running_gateway_server(toml) as gateway:
        yield House(gateway.url, upstream, toml)


@contextmanager
def alone(folder: Path, *steps: Step, more: str = "", provider: str = "") -> Iterator[House]:
    with ScriptedUpstream.running(steps) as upstream, house(folder, upstream, more=more, provider=provider) as it:
        yield it


def learned(response: Json) -> list[Json]:
    return [said for said in response["isthmus"]["diagnostics"] if said["code"] == "bridge.param.learned"]


# ── what is passed through ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_unknown_model_is_sent_what_most_servers_take(tmp_path: Path, streamed: bool) -> None:
    picture = {"type": "input_image", "image_url": PICTURE}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "see"}, picture]}
    with alone(tmp_path, chat('{"n": 1}')) as it:
        body = {**REQUIRED, **FORMAT, "input": [message], "parallel_tool_calls": False}
        response = it.ask(body, streamed=streamed)
        assert response["isthmus"]["diagnostics"] == []
        (sent,) = it.sent
    assert sent["messages"][-1]["content"][1] == {"type": "image_url", "image_url": {"url": PICTURE}}
    assert (sent["tool_choice"], sent["parallel_tool_calls"]) == ("required", False)
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA["schema"]


@pytest.mark.parametrize("uses", ["together", "fireworks"])
def test_hosts_of_open_models_are_sent_images(tmp_path: Path, uses: str) -> None:
    content = [{"type": "input_image", "image_url": PICTURE}]
    body = {"model": "host/some-vision-model", "input": [{"type": "message", "role": "user", "content": content}]}
    with ScriptedUpstream.running([chat("seen")]) as upstream:
        more = f'[providers.host]\nuses = "{uses}"\nbase_url = "{upstream.base_url}"\napi_key = "k"\n'
        with house(tmp_path, upstream, more=more) as it:
            it.ask(body)
            assert "image_url" in json.dumps(it.sent[0])


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "this model does not support image input"),
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ],
)
def test_a_refused_image_is_a_400_that_names_it_and_is_asked_once(
    tmp_path: Path, status: int, words: str, streamed: bool
) -> None:
    content = [{"type": "input_image", "image_url": PICTURE}]
    body = {"model": "mine/m", "input": [{"type": "message", "role": "user", "content": content}], "stream": streamed}
    with alone(tmp_path, error(status, words)) as it:
        answer = it.post("/v1/responses", body)
        assert (answer.status, answer.error["code"]) == (400, "invalid_prompt")
        assert "image" in answer.error["message"]
        assert len(it.sent) == 1


# ── what is refused ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_refused_tool_choice_is_left_out_once_and_remembered(tmp_path: Path, streamed: bool, path: str) -> None:
    with alone(tmp_path, NO_CHOICE, chat("one"), chat("two")) as it:
        if path == "/v1/responses":
            first = it.ask(REQUIRED, streamed=streamed)
            assert first["output_text"] == "one"
            (said,) = learned(first)
            assert (said["path"], said["action"]) == ("tool_choice", "degraded")
            second = it.ask(REQUIRED, streamed=streamed)
            assert len(learned(second)) == 1
        else:
            body = {
                "model": "mine/m",
                "messages": [{"role": "user", "content": "hi"}],
                "tools": [{"type": "function", "function": {"name": "weather"}}],
                "tool_choice": "required",
                "stream": streamed,
            }
            for _ in range(2):
                assert it.post(path, body).status == 200
        asked, again, later = it.sent
    assert asked["tool_choice"] == "required"
    assert "tool_choice" not in again, "the second asking goes without it"
    assert "call at least one" in json.dumps(again["messages"]), "and says it in words"
    assert again["tools"] == asked["tools"]
    assert later["tool_choice"] == "auto", "only what was refused is not sent again"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_refused_format_becomes_our_own_contract(tmp_path: Path, streamed: bool) -> None:
    with alone(tmp_path, NO_FORMAT, chat('Sure: {"n": 1}'), NO_FORMAT, chat('{"n": 2}'), chat('{"n": 3}')) as it:
        first = it.ask(FORMAT, streamed=streamed)
        assert json.loads(first["output_text"]) == {"n": 1}
        it.ask(FORMAT, streamed=streamed)
        third = it.ask(FORMAT, streamed=streamed)
        assert [said["metadata"]["refused_value"] for said in learned(third)] == ["json_schema", "json_object"]
        kinds = [body.get("response_format", {}).get("type") for body in it.sent]
    assert kinds == ["json_schema", None, "json_object", None, None]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_server_that_takes_a_format_and_heeds_it_not_is_held_to_it_here(tmp_path: Path, streamed: bool) -> None:
    with alone(tmp_path, chat("Seven, I think."), chat('Sure: {"n": 7}')) as it:
        answer = it.ask(FORMAT, streamed=streamed)
        assert json.loads(answer["output_text"]) == {"n": 7}
        first, second = it.sent
    assert first["response_format"]["type"] == second["response_format"]["type"] == "json_schema"
    assert '"integer"' in second["messages"][-1]["content"], "the model may never have seen the schema"


def test_every_refused_field_goes_once_and_all_are_told(tmp_path: Path) -> None:
    body = {**REQUIRED, **FORMAT, "parallel_tool_calls": False}
    with alone(tmp_path, NO_CHOICE, NO_PARALLEL, NO_FORMAT, chat('{"n": 1}')) as it:
        response = it.ask(body)
        assert [said["path"] for said in learned(response)] == ["tool_choice", "parallel_tool_calls", "text.format"]
        assert len(it.sent) == 4
        last = it.sent[-1]
    assert not {"tool_choice", "parallel_tool_calls", "response_format"} & set(last)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_server_that_refuses_all_the_same_is_asked_twice_and_teaches_nothing(tmp_path: Path, streamed: bool) -> None:
    vllm = error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    with alone(tmp_path, vllm, vllm, chat("fine")) as it:
        answer = it.post("/v1/responses", {**REQUIRED, "stream": streamed})
        assert (answer.status, answer.error["code"]) == (400, "invalid_prompt")
        assert "--enable-auto-tool-choice" in answer.error["message"]
        it.ask(REQUIRED)
        assert it.sent[-1]["tool_choice"] == "required"


def test_a_complaint_about_the_clients_schema_is_passed_on(tmp_path: Path) -> None:
    with alone(tmp_path, error(400, "Invalid schema for response_format 'answer': 'n' is unknown")) as it:
        assert it.post("/v1/responses", FORMAT).status == 400
        assert len(it.sent) == 1


def test_a_known_provider_is_believed_its_400(tmp_path: Path) -> None:
    with ScriptedUpstream.running([NO_CHOICE]) as upstream:
        more = f'[providers.groq]\nbase_url = "{upstream.base_url}"\napi_key = "k"\n'
        with house(tmp_path, upstream, more=more) as it:
            assert it.post("/v1/responses", {**REQUIRED, "model": "groq/openai/gpt-oss-120b"}).status == 400


def test_a_strict_caller_gets_the_refusal(tmp_path: Path) -> None:
    with alone(tmp_path, NO_CHOICE) as it:
        answer = it.post("/v1/responses", REQUIRED, headers={"isthmus-strict": "true"})
        assert (answer.status, answer.error["code"]) == (400, "invalid_prompt")


def test_a_stream_that_has_begun_is_never_asked_again(tmp_path: Path) -> None:
    broken = {"error": {"message": "tool_choice is not supported by this server", "code": 400}}
    with alone(tmp_path, stream([*chat_chunks("Hello there", pieces=2)[:2], broken, CUT], done=False)) as it:
        response = it.ask(REQUIRED, streamed=True)
        assert response["status"] == "failed"
        assert len(it.sent) == 1


# ── together with retries, fallbacks, background ──────────────────────────────────────────────────


def test_retries_and_lessons_are_counted_apart(tmp_path: Path) -> None:
    with alone(tmp_path, error(503), NO_CHOICE, error(503), chat("ok")) as it:
        assert it.ask(REQUIRED)["output_text"] == "ok"
        assert ["tool_choice" in body for body in it.sent] == [True, True, False, False]


def test_a_fallback_learns_its_own_lessons(tmp_path: Path) -> None:
    more = '[models.fallbacks]\n"mine/m" = ["mine/other"]\n'
    with alone(tmp_path, error(500), error(500), NO_CHOICE, chat("ok"), chat("first"), more=more) as it:
        response = it.ask(REQUIRED)
        codes = [said["code"] for said in response["isthmus"]["diagnostics"]]
        assert "bridge.attempt.failed" in codes
        assert "bridge.param.learned" in codes
        it.ask(REQUIRED)
        sent = [(body["model"], body.get("tool_choice")) for body in it.sent]
    assert sent[:2] == [("m", "required")] * 2
    assert sent[2:] == [("other", "required"), ("other", None), ("m", "required")]


def test_a_background_response_learns_too(tmp_path: Path) -> None:
    with alone(tmp_path, NO_CHOICE, chat("done")) as it:
        queued = it.ask({**REQUIRED, "background": True})
        with it.streaming(f"/v1/responses/{queued['id']}?stream=true", method="GET") as events:
            response = check_stream(list(events))
        assert response["output_text"] == "done"
        assert len(learned(response)) == 1


# ── what is remembered ─────────────────────────────────────────────────────────────────────────────


def test_a_restarted_gateway_remembers_and_another_one_agrees(tmp_path: Path) -> None:
    with ScriptedUpstream.running([NO_CHOICE, *map(chat, "abc")]) as upstream:
        with house(tmp_path, upstream) as first, house(tmp_path, upstream) as second:
            first.ask(REQUIRED)
            second.ask(REQUIRED)
        with house(tmp_path, upstream) as restarted:
            restarted.ask(REQUIRED)
        assert [request.json.get("tool_choice") for request in upstream.requests] == ["required", None, "auto", "auto"]


def test_a_lesson_is_about_one_model_only(tmp_path: Path) -> None:
    with alone(tmp_path, NO_CHOICE, chat("a"), chat("b")) as it:
        it.ask(REQUIRED)
        it.ask({**REQUIRED, "model": "mine/other"})
        assert it.sent[-1]["tool_choice"] == "required"


def test_an_old_lesson_is_tried_again(tmp_path: Path) -> None:
    with ScriptedUpstream.running([NO_CHOICE, chat("a"), chat("b")]) as upstream:
        with house(tmp_path, upstream, more='[lessons]\nkeep = "2h"\n') as it:
            it.ask(REQUIRED)
        with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
            connection.execute("UPDATE lessons SET learned_at = learned_at - 7201")
            connection.commit()
        with house(tmp_path, upstream, more='[lessons]\nkeep = "2h"\n') as it:
            assert learned(it.ask(REQUIRED)) == []
            assert it.sent[-1]["tool_choice"] == "required"


def test_nothing_is_kept_where_the_setting_says_so(tmp_path: Path) -> None:
    with alone(tmp_path, NO_CHOICE, chat("a"), NO_CHOICE, chat("b"), more="[lessons]\nkeep = 0\n") as it:
        it.ask(REQUIRED)
        it.ask(REQUIRED)
        assert len(it.sent) == 4


def test_the_told_config_line_makes_it_permanent(tmp_path: Path) -> None:
    body = {**REQUIRED, **FORMAT, "parallel_tool_calls": False}
    with alone(tmp_path, NO_CHOICE, NO_PARALLEL, NO_FORMAT, chat('{"n": 1}')) as it:
        told = [said["metadata"]["config"] for said in learned(it.ask(body))]
    sections = {line.split("\n")[0] for line in told}
    assert sections == {'[providers.mine.models."m"]'}
    facts = "\n".join([sections.pop(), *(line.split("\n")[1] for line in told)])
    assert tomllib.loads(facts)["providers"]["mine"]["models"]["m"] == {
        "tool_choice": {"supported": ["auto", "none", "function"]},
        "response_formats": {"supported": ["text", "json_object"]},
        "parameters": {"parallel_tool_calls": False},
    }
    other = tmp_path / "other"
    other.mkdir()
    with alone(other, chat('{"n": 1}'), more=facts) as it:
        assert learned(it.ask(body)) == []
        (sent,) = it.sent
    assert (sent["tool_choice"], sent["response_format"]["type"]) == ("auto", "json_object")
    assert "parallel_tool_calls" not in sent


def test_the_log_names_the_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with alone(tmp_path, NO_CHOICE, chat("a"), more="") as it:
        it.ask(REQUIRED)
    (line,) = [record.getMessage() for record in caplog.records if "lesson.learned" in record.getMessage()]
    assert "parameter=tool_choice value=required" in line
    assert '[providers.mine.models."m"]' in line
    assert 'supported = ["auto", "none", "function"]' in line


def test_explain_reads_the_lesson_and_makes_no_store(tmp_path: Path) -> None:
    with alone(tmp_path, NO_CHOICE, chat("a")) as it:
        config = tmp_path / "isthmus.toml"
        config.write_text(it.config)
        before = explain(config, REQUIRED)
        it.ask(REQUIRED)
        after = explain(config, REQUIRED)
    assert before["body"]["tool_choice"] == "required"
    assert after["body"]["tool_choice"] == "auto"
    assert "bridge.param.learned" in [said["code"] for said in after["diagnostics"]]
    elsewhere = tmp_path / "none" / "isthmus.toml"
    elsewhere.parent.mkdir()
    elsewhere.write_text(it.config.replace("s.db", "none/absent.db"))
    assert explain(elsewhere, REQUIRED)["body"]["tool_choice"] == "required"
    assert not (tmp_path / "none" / "absent.db").exists()


def explain(config: Path, body: Json) -> Json:
    ended = subprocess.run(
        [sys.executable, "-m", "isthmus", "explain", "-", "--json"],
        input=json.dumps(body).encode(),
        capture_output=True,
        timeout=60,
        env={"ISTHMUS_CONFIG": str(config), "HOME": str(config.parent), "PYTHONPATH": ":".join(sys.path)},
    )
    assert ended.returncode == 0, ended.stderr.decode()
    shown: Json = json.loads(ended.stdout)
    return shown


# ── the library ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_library_learns_as_well(streamed: bool) -> None:
    async def main() -> None:
        script = [NO_CHOICE, chat("one"), chat("two"), NO_CHOICE, NO_CHOICE]
        with ScriptedUpstream.running(script) as upstream:
            place = {"uses": "openai-compatible", "base_url": upstream.base_url}
            async with Bridge({"mine": {"default": place}}) as bridge:
                first = await bridge.chat("mine/m", "hi", tools=[weather], tool_choice="required", stream=streamed)
                assert first.text == "one"
                assert [said["code"] for said in first.diagnostics].count("bridge.param.learned") == 1
                await bridge.chat("mine/m", "hi", tools=[weather], tool_choice="required", stream=streamed)
                with pytest.raises(PromptRefused, match="tool_choice"):
                    await bridge.chat("mine/n", "hi", tools=[weather], tool_choice="required", stream=streamed)
            choices = [request.json.get("tool_choice") for request in upstream.requests]
            assert choices == ["required", None, "auto", "required", None]

    asyncio.run(main())
