"""A probe of servers with different personalities, over a real socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from isthmus.cli.probe_file import provider_file
from isthmus.errors import UpstreamFailed
from isthmus.providers import check_provider_file, load_provider
from isthmus.testing import ScriptedUpstream, drop, error
from isthmus.upstream.probe.answers import Answer, Ask, call_names, delta_of, json_of, message_of, text_of, usage_of
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.investigate import STAGES, investigate
from isthmus.upstream.probe.listing import read_context, read_inputs, read_models, read_props
from isthmus.upstream.probe.probe import address, probe
from leaking import assert_silent, everything_of
from probed_servers import SERVERS, Server, routes

Json = dict[str, Any]

PROPS: Json = {
    "default_generation_settings": {"n_ctx": 32768},
    "modalities": {"vision": True, "audio": False},
    "chat_template": "…",
}


def ask(server: Server, **told: Any) -> tuple[Findings, list[tuple[str, str]]]:
    """Probe a server; also what was told on the way."""
    heard: list[tuple[str, str]] = []
    given = {name: told.pop(name) for name in ("key", "model") if name in told}

    async def run() -> Findings:
        async with ScriptedUpstream(default=error(404, "no such path"), routes=routes(server, **told)) as upstream:
            return await probe(upstream.base_url, progress=lambda *said: heard.append(said), **given)

    return asyncio.run(run()), heard


def verdicts(found: Findings) -> dict[str, str]:
    return {note.question: note.verdict for note in found.notes}


def test_a_full_server() -> None:
    found, heard = ask(SERVERS["openai"], models=[{"id": "gpt-x", "context_length": 400_000}])
    assert (found.model, found.context) == ("gpt-x", 400_000)
    assert found.limit_field == "max_completion_tokens"
    assert not found.strict_fields
    assert found.streaming
    assert found.streaming_usage
    assert found.developer
    assert found.system_anywhere
    assert found.tools
    assert found.parallel
    assert found.choices == ("auto", "none", "required", "function")
    assert found.formats == ("text", "json_object", "json_schema")
    assert (found.empty_content, found.call_ids) == ("null", "keep")
    assert found.responses
    assert found.reasoning_fields == ()
    assert verdicts(found)["shows its reasoning"] == "unknown"
    assert [title for title, _ in STAGES] == list(dict.fromkeys(stage for stage, _ in heard))
    assert len(heard) <= 26


def test_a_strict_server() -> None:
    found, _ = ask(SERVERS["mistral"])
    assert found.limit_field == "max_tokens"
    assert found.strict_fields
    assert not found.streaming_usage
    assert "seed" not in found.parameters
    assert "temperature" in found.parameters
    assert not found.developer
    assert not found.system_anywhere
    assert (found.empty_content, found.call_ids) == ("empty", "alphanumeric9")
    assert not found.responses
    assert verdicts(found)["tells usage in streams"] == "yes"


def test_a_local_server_with_props() -> None:
    found, _ = ask(SERVERS["llama"], props=PROPS)
    assert found.context == 32768
    assert found.inputs == ("image",)
    assert found.reasoning_fields == ("reasoning_content",)
    assert found.choices == ("auto", "none", "required")
    assert not found.parallel
    assert (found.empty_content, found.call_ids) == ("empty", "keep")


def test_a_bare_server() -> None:
    found, _ = ask(SERVERS["bare"], models=(), model="only-one")
    assert found.model == "only-one"
    assert not found.tools
    assert found.formats == ("text",)
    assert found.limit_field == "max_tokens"
    assert verdicts(found)["lists its models"] == "no"
    assert "follows tool choices" not in verdicts(found)


@pytest.mark.parametrize("name", SERVERS)
def test_the_written_file_is_sound_and_can_be_used(name: str, tmp_path: Path) -> None:
    found, _ = ask(SERVERS[name], props=PROPS, models=[{"id": 'odd "name"/é\n#x', "max_model_len": 9000}])
    path = tmp_path / f"{name}x.toml"
    text = provider_file(found, name=f"{name}x", base_url="http://h:1/v1", key_env="", day="2026-11-15")
    path.write_text(text, encoding="utf-8")
    assert check_provider_file(path) == []
    provider = load_provider(f"{name}x", [tmp_path])
    facts = provider.capabilities()
    assert facts.model == found.model
    assert facts.limits.context == 9000
    assert facts.streaming_usage is found.streaming_usage
    assert (facts.messages.system == "anywhere") is found.system_anywhere
    assert facts.messages.call_ids == found.call_ids
    assert facts.response_formats.supported == set(found.formats)
    assert ("function" in facts.tools.native) is found.tools
    assert (facts.allow is not None) is found.strict_fields
    assert (provider.responses is not None) is found.responses
    assert provider.sources == ("probed http://h:1/v1 on 2026-11-15",)
    assert provider.checked == "2026-11-15"


def test_a_key_is_sent_and_never_told() -> None:
    server = Server(key="sk-secret-1")
    found, heard = ask(server, key="sk-secret-1")
    assert found.tools
    text = provider_file(found, name="x", base_url="http://h/v1", key_env="X_API_KEY", day="2026-11-15")
    assert "sk-secret-1" not in text + repr(heard) + repr(found.notes)
    assert 'key_env = ["X_API_KEY"]' in text


def test_a_refused_key_is_said_without_repeating_it() -> None:
    with pytest.raises(UpstreamFailed) as caught:
        ask(Server(key="other"), key="sk-secret-1")
    assert "refuses the key" in caught.value.message
    assert "sk-secret-1" not in caught.value.message


def test_a_server_that_fails_says_what_it_said() -> None:
    server = Server(roles=frozenset())
    with pytest.raises(UpstreamFailed, match=r"does not answer for `some-model` \(HTTP 422\).*unknown role user"):
        ask(server)


def test_nobody_there_is_said_so() -> None:
    async def run() -> None:
        async with ScriptedUpstream(default=drop(), strict=False) as upstream:
            await probe(upstream.base_url, model="m")

    with pytest.raises(UpstreamFailed, match="cannot be reached"):
        asyncio.run(run())


def test_without_a_model_one_must_be_named() -> None:
    with pytest.raises(UpstreamFailed, match="`--model`"):
        ask(SERVERS["bare"], models=())


@pytest.mark.parametrize(
    ("base", "path", "full"),
    [
        ("http://h:1/v1", "models", "http://h:1/v1/models"),
        ("http://h:1/v1/", "/props", "http://h:1/props"),
        ("http://h:1/api", "/props", "http://h:1/api/props"),
    ],
)
def test_addresses(base: str, path: str, full: str) -> None:
    assert address(base, path) == full


# Reading answers, without a network


@pytest.mark.parametrize(
    "junk", [None, 7, "x", [], [1], {}, {"choices": 1}, {"choices": [1]}, {"choices": [{"message": 1}]}]
)
def test_junk_is_read_as_nothing(junk: Any) -> None:
    answer = Answer(200, junk, (junk,))
    assert message_of(answer) == {}
    assert text_of({"content": junk}) in ("", "x")
    assert call_names({"tool_calls": junk}) == []
    assert delta_of(junk) == {}
    assert not usage_of(answer.events)
    assert read_models(answer) == ()
    assert read_context(answer, "m") is None
    assert read_inputs(answer, "m") == ()
    assert read_props(answer).context is None


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        ({"max_model_len": 1000}, 1000),
        ({"context_length": 2000}, 2000),
        ({"context_window": 3000}, 3000),
        ({"max_context_length": 4000}, 4000),
        ({"meta": {"n_ctx_train": 5000}}, 5000),
        ({"max_model_len": True}, None),
        ({}, None),
    ],
)
def test_the_context_size_has_many_names(entry: Json, size: int | None) -> None:
    assert read_context(Answer(200, {"data": [{"id": "m", **entry}]}), "m") == size


def test_inputs_are_read_from_a_listing() -> None:
    entry = {"id": "m", "architecture": {"input_modalities": ["text", "image", "file"]}}
    assert read_inputs(Answer(200, {"data": [entry]}), "m") == ("image", "file")


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), (" [1] ", [1]), ("Sure: {}", None), ("", None)])
def test_only_bare_json_counts_as_json(text: str, value: Any) -> None:
    assert json_of(text) == value


def test_every_question_survives_answers_that_make_no_sense() -> None:
    for answer in (Answer(200, []), Answer(200, {"choices": [{}]}), Answer(200, {"choices": "x"}, ({"x": 1},))):
        steps = investigate(Findings(model="m"))
        asked: list[Ask] = [next(steps)]
        found = None
        while found is None:
            try:
                asked.append(steps.send(answer))
            except StopIteration as done:
                found = done.value
        assert isinstance(found, Findings)
        assert not found.tools
        assert all(ask.title for ask in asked)


def test_a_key_that_the_server_repeats_is_not_repeated() -> None:
    key = "sk-live-0Zq7Kd81mXw4Tn92"

    async def refused(words: str) -> str:
        async with ScriptedUpstream(default=error(500, words)) as upstream:
            with pytest.raises(UpstreamFailed) as failed:
                await probe(upstream.base_url, key=key, model="m")
        return everything_of(failed.value)

    for words in (f"no {key}", "x" * 240 + key, " " * 1150 + "x" * 20 + key, quote(key, safe="") + key.upper()):
        assert_silent([key], error=asyncio.run(refused(words)))
