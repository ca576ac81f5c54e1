"""The list finds requests by what they were; one of them shows every decision, both sides and what became of it."""

from __future__ import annotations

import re

import pytest

from isthmus.ports.traces import TraceFilter
from isthmus.server.ui.requests import read_filter
from isthmus.testing import error
from server.ui.conftest import Browser, Opened

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "code_interpreter", "container": "x"},
]


def listed(text: str) -> list[str]:
    return re.findall(r"/ui/requests/(req_[0-9a-f]+)", text)


def test_filters(browser: Browser) -> None:
    plain = browser.made({"input": "hi"})
    chat = browser.made(
        {"model": "main/other", "messages": [{"role": "user", "content": "hi"}]}, "/v1/chat/completions"
    )
    changed = browser.made({"input": "hi", "top_logprobs": 3, "tools": TOOLS})
    refused = browser.made({"input": 5})
    browser.upstream.push(error(500, "no"))
    failed = browser.made({"input": "hi", "model": "main/bad"})
    assert listed(browser.look("/ui/requests").text) == [failed, refused, changed, chat, plain]
    for asked, found in {
        "door=chat": [chat],
        "outcome=refused": [failed, refused],
        "model=other": [chat],
        "provider=main&door=responses&changed=no&outcome=completed": [plain],
        "changed=yes": [changed],
        "code=invalid_type": [refused],
        "outcome=nonsense": [failed, refused, changed, chat, plain],
        "model=nobody": [],
    }.items():
        assert listed(browser.look(f"/ui/requests?{asked}").text) == found, asked
    assert "No request is like that" in browser.look("/ui/requests?model=nobody").text


def test_what_the_form_does_not_know_is_anything() -> None:
    assert read_filter({"outcome": "odd", "door": "odd", "changed": "odd", "model": "  "}) == TraceFilter()
    assert read_filter({"changed": "no", "model": "m" * 500}) == TraceFilter(changed=False, model="m" * 200)


def test_older_ones_are_a_link_away(browser: Browser) -> None:
    ids = [browser.made({"input": str(number)}) for number in range(55)]
    first = browser.look("/ui/requests").text
    assert listed(first) == ids[:-51:-1]
    link = re.search(r'href="(/ui/requests\?after=\d+)"', first)
    assert link is not None
    older = browser.look(link[1])
    assert listed(older.text) == ids[4::-1]
    assert "live.js" not in older.text, "an old page does not grow"
    assert browser.look("/ui/requests?after=x").status == 400


def test_one_request_shows_its_decisions_with_reasons_and_both_sides(browser: Browser) -> None:
    id = browser.made({"input": "a particular word", "top_logprobs": 3, "tools": TOOLS, "max_output_tokens": 77})
    seen = browser.look(f"/ui/requests/{id}").text
    assert '<span class="tag ignored">ignored</span>' in seen
    assert "the provider reports no token probabilities" in seen
    assert seen.count("a particular word") == 2, "the client's, and the upstream's"
    assert "max_output_tokens" in seen
    assert "max_tokens" in seen or "max_completion_tokens" in seen
    assert 'href="#d0"' in seen
    assert 'id="d0"' in seen
    assert "<svg" in seen


def test_a_failure_is_told_with_its_attempts(browser: Browser) -> None:
    browser.upstream.push(error(500, "the disk is full"))
    id = browser.made({"input": "hi"})
    seen = browser.look(f"/ui/requests/{id}").text
    assert "the disk is full" in seen
    assert "server_error" in seen


def test_a_conversation_can_be_walked(browser: Browser) -> None:
    first = browser.talk.post("/v1/responses", {"input": "one"}).json["id"]
    second = browser.made({"input": "two", "previous_response_id": first})
    seen = browser.look(f"/ui/requests/{first}").text
    assert f"/ui/requests/{second}" in seen
    assert "What the prompt cache found" in seen
    alone = browser.made({"input": "another"})
    assert "The conversation" not in browser.look(f"/ui/requests/{alone}").text


def test_an_id_from_a_log_leads_there(browser: Browser) -> None:
    id = browser.made({"input": "hi"})
    seen = browser.look(f"/ui/requests?id=+{id}+")
    assert (seen.status, seen.headers["location"]) == (303, f"/ui/requests/{id}")
    assert browser.look("/ui/requests?id=https://evil.example/").headers["location"].startswith("/ui/requests/https%3A")


def test_the_whole_response_can_be_read_where_it_was_captured(browser: Browser) -> None:
    id = browser.made({"input": "hi"})
    seen = browser.look(f"/ui/requests/{id}").text
    assert "&#34;status&#34;: &#34;completed&#34;" in seen


def test_by_its_response_it_is_found_as_well(browser: Browser) -> None:
    made = browser.talk.post("/v1/responses", {"input": "one"}).json["id"]
    browser.made({"input": "another"})
    assert browser.look(f"/ui/requests/{made}").status == 200


@pytest.mark.parametrize("trace", ["", 'capture = "metadata"'])
def test_without_content_there_are_sizes(opened: Opened, trace: str) -> None:
    browser = opened(trace=trace)
    id = browser.made({"input": "a particular word"})
    seen = browser.look(f"/ui/requests/{id}").text
    assert "a particular word" not in seen
    assert "Sizes only" in seen
    assert "input[0]" in seen
