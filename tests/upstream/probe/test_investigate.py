"""What is asked, in what order, and what is made of the answers: servers with different personalities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.probe_file import provider_file
from isthmus.errors import UpstreamFailed
from isthmus.providers import check_provider_file, load_provider
from isthmus.upstream.probe.answers import Answer, Ask
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.investigate import STAGES, investigate
from probed_servers import SERVERS, Server, ask, verdicts

Json = dict[str, Any]

PROPS: Json = {
    "default_generation_settings": {"n_ctx": 32768},
    "modalities": {"vision": True, "audio": False},
    "chat_template": "…",
}


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


def test_a_server_that_fails_says_what_it_said() -> None:
    server = Server(roles=frozenset())
    with pytest.raises(UpstreamFailed, match=r"does not answer for `some-model` \(HTTP 422\).*unknown role user"):
        ask(server)


def test_without_a_model_one_must_be_named() -> None:
    with pytest.raises(UpstreamFailed, match="`--model`"):
        ask(SERVERS["bare"], models=())


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
