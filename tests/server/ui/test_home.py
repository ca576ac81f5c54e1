"""The first page tells what runs, how to use it, and what was asked last."""

from __future__ import annotations

import time

import pytest

from isthmus.ports.traced import Trace, TracedDecision, TraceSummary
from server.ui.conftest import Browser, Opened
from traced import keep_in

MANY = 100_000


def test_it_names_the_address_that_this_browser_uses(browser: Browser) -> None:
    seen = browser.look("/ui", host=f"localhost:{browser.gateway.url.rpartition(':')[2]}")
    assert f"http://localhost:{browser.gateway.url.rpartition(':')[2]}/v1" in seen.text
    assert "main/model" in seen.text


def test_it_tells_where_a_key_comes_from_and_never_the_key(opened: Opened) -> None:
    browser = opened('api_key = "sk-secret-0123456789"\n')
    assert "sk-secret" not in browser.look("/ui").text


def test_a_provider_that_cannot_be_reached_is_marked(opened: Opened) -> None:
    browser = opened('[providers.gone]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:9/v1"\n')
    seen = browser.look("/ui").text
    row = seen[seen.index("/ui/providers/gone") :].split("</tr>")[0]
    assert "unwell" in row
    row = seen[seen.index("/ui/providers/main") :].split("</tr>")[0]
    assert "unwell" not in row


def test_the_latest_requests_are_links(browser: Browser) -> None:
    assert "Nothing was asked yet" in browser.look("/ui").text
    id = browser.made({"input": "hi"})
    seen = browser.look("/ui").text
    assert f"/ui/requests/{id}" in seen
    assert "Nothing was asked yet" not in seen


def test_where_keys_are_needed_snippets_say_so(opened: Opened) -> None:
    browser = opened(server='admin_key = "admin-key-0123456789"')
    token = browser.look("/ui/login").token
    browser.post("/ui/login", {"key": "admin-key-0123456789", "token": token})
    seen = browser.look("/ui").text
    assert "YOUR KEY" in seen
    assert "admin-key" not in seen


@pytest.mark.measured
def test_with_very_many_requests_it_is_as_quick(browser: Browser) -> None:
    tracing = browser.gateway.gateway.tracing
    assert tracing is not None
    now = time.time()
    for start in range(0, MANY, 2_000):
        keep_in(tracing.store, [_traced(number, now - (MANY - number) * 2.0) for number in range(start, start + 2_000)])
    assert f"/ui/requests/req_{MANY - 1}" in browser.look("/ui").text
    before, looks = time.process_time(), 20
    for _ in range(looks):
        assert browser.look("/ui").status == 200
    assert (time.process_time() - before) / looks < 0.03, "both sides of the connection are in it"


def _traced(number: int, at: float) -> Trace:
    summary = TraceSummary(
        id=f"req_{number}",
        at=at,
        ended_at=at + 1,
        owner="local",
        door="responses",
        provider=f"p{number % 5}",
        model=f"m{number % 7}",
        outcome="completed",
        input_tokens=100,
        output_tokens=10,
        total=1.0,
    )
    return Trace(summary=summary, decisions=(TracedDecision("input", "supported"),))
