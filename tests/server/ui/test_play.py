"""The playground plans without sending, and sends as `/v1/responses` does."""

from __future__ import annotations

import json
from typing import Any

from server.ui.conftest import Browser, Opened


def ask(browser: Browser, path: str, body: Any, **headers: str) -> Any:
    told = {"x-isthmus-token": browser.look("/ui/playground").token, "origin": browser.origin, **headers}
    return browser.ask("POST", path, json.dumps(body).encode(), {"content-type": "application/json", **told})


def test_a_plan_is_shown_and_nothing_is_sent(browser: Browser) -> None:
    seen = ask(browser, "/ui/plan", {"input": "hi", "top_logprobs": 2})
    plan = json.loads(seen.text)
    assert (plan["provider"], plan["model"], plan["dialect"]) == ("main", "model", "chat")
    assert plan["body"]["messages"] == [{"role": "user", "content": "hi"}]
    assert {"path": "top_logprobs", "action": "ignored"}.items() <= next(
        one for one in plan["decisions"] if one["path"] == "top_logprobs"
    ).items()
    assert browser.upstream.requests == []


def test_a_refusal_is_a_plan_too(browser: Browser) -> None:
    for body, code in (({"model": "nobody/x", "input": "hi"}, "unknown_provider"), ({"input": 5}, "invalid_type")):
        assert json.loads(ask(browser, "/ui/plan", body).text)["refused"]["code"] == code


def test_sending_streams_and_is_kept_like_any_other_request(browser: Browser) -> None:
    seen = ask(browser, "/ui/send", {"input": "hi", "stream": True})
    assert seen.status == 200
    assert "response.completed" in seen.text
    assert len(browser.upstream.requests) == 1
    made = json.loads(seen.text.split("data: ")[1].split("\n")[0])["response"]["id"]
    assert browser.talk.get(f"/v1/responses/{made}").status == 200


def test_without_the_word_of_the_page_nothing_is_sent(browser: Browser) -> None:
    for headers in (
        {"x-isthmus-token": ""},
        {"x-isthmus-token": "0" * 64},
        {"origin": "http://evil.example"},
        {"origin": ""},
    ):
        for path in ("/ui/send", "/ui/plan"):
            assert ask(browser, path, {"input": "hi"}, **headers).status == 403
    assert browser.upstream.requests == []


def test_with_keys_the_session_is_enough(opened: Opened) -> None:
    browser = opened(server='admin_key = "admin-key-0123456789"')
    token = browser.look("/ui/login").token
    browser.post("/ui/login", {"key": "admin-key-0123456789", "token": token})
    assert ask(browser, "/ui/send", {"input": "hi"}).status == 200
