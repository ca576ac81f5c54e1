"""What is asked, in what order, and what is made of the answers: servers with different personalities."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.probe_file import provider_file
from isthmus.errors import UpstreamFailed
from isthmus.providers import check_provider_file, load_provider
from isthmus.upstream.probe.answers import Answer, Ask
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.investigate import STAGES, investigate
from isthmus.upstream.probe.probe import Bounds
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
    assert found.spent.requests == len(heard) <= Bounds().requests


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
    sees = replace(SERVERS["llama"], follows=SERVERS["llama"].follows | {"images"})
    found, _ = ask(sees, props=PROPS)
    assert found.context == 32768
    assert found.inputs == ("image",)
    assert found.reasoning_fields == ("reasoning_content",)
    assert found.choices == ("auto", "none", "required")
    assert not found.parallel
    assert (found.empty_content, found.call_ids) == ("empty", "keep")


def test_a_server_whose_dialects_differ() -> None:
    found, _ = ask(SERVERS["llama"])
    own = found.native
    assert own is not None
    assert (found.tells_length, own.tells_length) == (True, False)
    assert (found.limit_field, own.limit_field) == ("max_tokens", "max_output_tokens")
    assert (found.formats, own.formats) == (("text", "json_object", "json_schema"), ("text",))
    assert (found.logprobs, own.logprobs) == (True, False)
    assert (found.strict, own.strict) == (True, True)
    assert (found.effort_none, own.effort_none) == (True, True)
    assert "required" in own.choices
    assert "function" not in own.choices
    assert (found.inputs, own.inputs) == ((), ())
    assert verdicts(found)["Responses: tells that the limit was met"] == "no"


def test_a_server_whose_dialects_are_alike() -> None:
    found, _ = ask(SERVERS["openai"])
    own = found.native
    assert own is not None
    for name in ("formats", "choices", "logprobs", "strict", "parallel", "developer", "tells_length", "inputs"):
        assert getattr(own, name) == getattr(found, name), name
    assert own.inputs == ("image",)
    assert "effort_none" in own.unclear, "a model that shows no thoughts cannot show that it stopped"


def test_what_is_told_and_refused_all_the_same_does_not_count() -> None:
    found, _ = ask(SERVERS["llama"], props=PROPS)
    assert found.inputs == ()
    assert verdicts(found)["reads images"] == "no"


def test_a_server_that_wants_speakers_to_take_turns() -> None:
    found, _ = ask(Server(alternates=True))
    assert (found.repeats, found.after_tool) == (False, False)
    found, _ = ask(Server())
    assert (found.repeats, found.after_tool) == (True, True)


def test_an_answer_that_was_cut_is_no_answer_to_the_question() -> None:
    talks = Answer(200, {"choices": [{"message": {"content": "Well, "}, "finish_reason": "length"}], "usage": {}})
    found = _feed(talks)
    assert {"tools", "strict", "choices.required", "formats.json_schema"} <= found.unclear
    assert {note.question: note.verdict for note in found.notes}["calls tools"] == "unknown"


def test_every_answer_is_bounded() -> None:
    bodies: list[Json] = []
    steps = investigate(Findings(model="m"), room=77)
    answer = Answer(200, {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]})
    ask = next(steps)
    with pytest.raises(StopIteration):
        while True:
            bodies += [ask.body] if ask.body else []
            ask = steps.send(answer)
    assert bodies
    for body in bodies:
        assert 0 < (body.get("max_completion_tokens") or body["max_output_tokens"]) <= 77


def test_what_the_bounds_leave_no_room_for_is_unknown_and_counted() -> None:
    whole, _ = ask(SERVERS["openai"])
    found, heard = ask(SERVERS["openai"], bounds=Bounds(requests=8))
    assert found.spent.requests == len(heard) == 8
    assert found.spent.unasked > 0
    assert not found.tools
    assert "tools" in found.unclear
    assert verdicts(found)["calls tools"] == "unknown"
    assert whole.spent.unasked == 0
    assert whole.spent.tokens > 0


def _feed(answer: Answer) -> Findings:
    """Everything, with one answer to all of it."""
    steps = investigate(Findings(model="m"))
    next(steps)
    while True:
        try:
            steps.send(answer)
        except StopIteration as done:
            found: Findings = done.value
            return found


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
    assert facts.limits.context == 32768  # what a list says under a name that cannot be printed is passed over
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
