"""What Claude Code does when the model's side fails: try again where that helps, stop with clear words where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import CUT, ScriptedUpstream, chat, chat_chunks, chat_error, error, html_error, stream
from real.claude.rig import MODELS, real, rig
from real.claude.vendors import DEEPSEEK, GLM, LLAMA

pytestmark = real

HALF = chat_chunks("a partial answer")[:3]


def test_a_rate_limit_is_waited_for_as_long_as_the_provider_asks(tmp_path: Path) -> None:
    with rig(tmp_path, error(429, "slow down", retry_after=2), chat("Now.")) as it:
        assert it.run("hi").worked().said == "Now."
    first, second = it.upstream.requests
    assert 2 <= second.arrived_at - first.arrived_at < 10


AGAIN = {
    "rate limit": error(429, "slow down"),
    "server error": error(500, "boom"),
    "bad gateway": html_error(502),
    "unavailable": error(503, "down"),
    "overloaded": error(529, "overloaded"),
    "cut stream": stream([*HALF, CUT], done=False),
    "no finish reason": stream(HALF, done=False),
    "error in a stream": stream([*HALF, chat_error("boom")], done=False),
    "overloaded at once": stream([chat_error("overloaded", code="server_is_overloaded")], done=False),
}


@pytest.mark.parametrize("case", AGAIN)
def test_what_may_pass_is_tried_again_and_half_an_answer_is_dropped(tmp_path: Path, case: str) -> None:
    with rig(tmp_path, AGAIN[case], chat("The whole answer.")) as it:
        assert it.run("hi").worked().said == "The whole answer."
    assert it.bodies[1]["messages"] == it.bodies[0]["messages"]


def test_a_call_cut_off_by_a_broken_stream_is_never_carried_out(tmp_path: Path) -> None:
    half = chat_chunks(None, calls=[("c1", "Bash", {"command": "touch danger"})])[:3]
    with rig(tmp_path, stream([*half, CUT], done=False), chat("Done.")) as it:
        assert it.run("hi").worked().calls == []
        assert list(it.work.iterdir()) == []
    assert it.bodies[1]["messages"] == it.bodies[0]["messages"]


FINAL: dict[str, tuple[Any, str]] = {
    "wrong key": (error(401, "bad key"), "refused our credentials"),
    "no money": (error(402, "Insufficient Balance"), "Insufficient Balance"),
    "no such model": (error(404, "no such model"), "model"),
}


@pytest.mark.parametrize("case", FINAL)
def test_what_no_repetition_cures_is_asked_once_and_said_clearly(tmp_path: Path, case: str) -> None:
    step, words = FINAL[case]
    with rig(tmp_path, *[step] * (2 if case == "no such model" else 1)) as it:
        outcome = it.run("hi")
    assert outcome.result["is_error"]
    assert words in outcome.said
    # Claude Code asks once more, whole, where a model is not found.
    assert len(it.upstream.requests) == (2 if case == "no such model" else 1)


@pytest.mark.parametrize("target", MODELS)
def test_a_request_that_the_vendor_calls_wrong_is_shown_with_its_words(tmp_path: Path, target: str) -> None:
    with rig(tmp_path, *[error(400, "temperature is wrong")] * 6, target=target) as it:
        outcome = it.run("hi")
    assert outcome.result["is_error"]
    assert "temperature is wrong" in outcome.said


def test_a_model_that_is_silent_is_waited_for(tmp_path: Path) -> None:
    chunks = chat_chunks("Late.")
    impatient = {"API_TIMEOUT_MS": "20000"}
    with rig(tmp_path, stream([chunks[0], 5.0, *chunks[1:]], after=3.0)) as it:
        assert it.run("hi", environment=impatient).worked().said == "Late."
    assert len(it.upstream.requests) == 1


def test_a_key_that_the_gateway_does_not_know_is_refused_and_named(tmp_path: Path) -> None:
    keyed = 'api_keys = ["open sesame"]'
    with rig(tmp_path, chat("Hi."), server=keyed) as it:
        refused = it.run("hi", environment={"CLAUDE_CODE_MAX_RETRIES": "0"})
        assert refused.result["is_error"]
        assert "server.api_keys" in refused.said
        it.run("hi", environment={"ANTHROPIC_AUTH_TOKEN": "open sesame"}).worked()


def test_it_dials_nobody_else(tmp_path: Path) -> None:
    with (
        ScriptedUpstream.running(default=error(403, "nobody is to come here")) as trap,
        rig(tmp_path, chat("Hi.")) as it,
    ):
        it.run("hi", proxy=trap.url).worked()
        assert [request.target for request in trap.requests] == []


STRICT = "[plan]\nstrict = true\n"


@pytest.mark.parametrize("target", [DEEPSEEK, GLM], ids=["deepseek", "glm"])
def test_a_strict_gateway_takes_what_it_sends_of_its_own_accord(tmp_path: Path, target: str) -> None:
    write = ("call_1", "Write", {"file_path": "a.txt", "content": "hello"})
    thinking = chat("Writing.", reasoning="A file.", calls=[write])
    with rig(tmp_path, thinking, chat("Done."), target=target, more=STRICT) as it:
        assert it.run("make a file").worked().said == "Done."
        assert (it.work / "a.txt").read_text() == "hello"


def test_a_strict_gateway_names_what_it_refuses_and_a_header_lets_it_pass(tmp_path: Path) -> None:
    """A chat template that takes one system message, at the start, gets Claude Code's later ones in another form."""
    with rig(tmp_path, chat("Hello."), target=LLAMA, more=STRICT) as it:
        refused = it.run("hi")
        assert refused.result["is_error"]
        assert "strict mode" in refused.said
        assert "output_config.effort" in refused.said
        assert it.bodies == []
        lenient = {"ANTHROPIC_CUSTOM_HEADERS": "Isthmus-Strict: false"}
        assert it.run("hi", environment=lenient).worked().said == "Hello."
