"""Every page as a browser gets it: who may see it, what it may do, and that nothing a client sends becomes markup."""

from __future__ import annotations

import re

import pytest

from isthmus.server.callers import PAGE
from server.ui.conftest import Browser, Opened

PAGES = ["", "/overview", "/requests", "/playground", "/providers", "/providers/main", "/models", "/settings"]
HOSTILE = "<img src=x onerror=alert(1)>\"'`</script><script>alert(2)</script>{{7*7}}"
ADMIN, USER = "admin-key-0123456789", "user-key-0123456789"
KEYED = f'api_keys = ["{USER}"]\nadmin_key = "{ADMIN}"'


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_shown_and_may_run_nothing_but_our_own_scripts(browser: Browser, page: str) -> None:
    seen = browser.look(PAGE + page)
    assert seen.status == 200
    policy = seen.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert seen.headers["x-content-type-options"] == "nosniff"
    assert seen.headers["cache-control"] == "no-store"
    assert re.findall(r"<script(?![^>]* src=)", seen.text) == [], "nothing stands in the page itself"
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", seen.text)
    loaded = re.findall(r'(?:src|href)="([^"#?]+)', seen.text)
    assert all(link.startswith("/ui") for link in loaded), loaded
    assert '<html lang="en">' in seen.text
    assert 'aria-current="page"' in seen.text


def test_whatever_a_page_loads_is_there_and_is_kept_by_browsers(browser: Browser) -> None:
    wanted = {
        link
        for page in PAGES
        for link in re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', browser.look(PAGE + page).text)
    }
    assert len(wanted) >= 5
    for link in wanted:
        seen = browser.look(link)
        assert seen.status == 200
        assert "max-age" in seen.headers["cache-control"]
        assert browser.look(link, **{"if-none-match": seen.headers["etag"]}).status == 304
    assert browser.look("/ui/static/..%2Fpages.py").status == 404
    assert browser.look("/ui/static/style.css.map").status == 404


def test_a_browser_is_shown_the_page_where_programs_get_json(browser: Browser) -> None:
    assert "<!doctype html>" in browser.look("/").text
    assert browser.talk.get("/").json["name"] == "isthmus"


def test_nothing_that_a_client_sends_becomes_markup(browser: Browser) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": HOSTILE}]}
    tool = {"type": "function", "name": "look", "description": HOSTILE, "parameters": {"type": "object", HOSTILE: 1}}
    body = {
        "input": [item],
        "instructions": HOSTILE,
        "tools": [tool],
        "metadata": {HOSTILE[:60]: HOSTILE},
        "user": HOSTILE,
    }
    ids = [
        browser.made(body, **{"user-agent": HOSTILE.replace('"', ""), "x-client-request-id": HOSTILE}),
        browser.made({"model": HOSTILE, "input": HOSTILE}),
        browser.made({"input": {HOSTILE: HOSTILE}}),
        browser.made({HOSTILE: 1, "input": "x", "prompt_cache_key": HOSTILE}),
    ]
    paths = [f"/requests/{id}" for id in ids] + [f"/requests/{id}/replay?model=main/model" for id in ids[:1]]
    paths += [
        "",
        "/requests",
        "/overview",
        f"/requests?provider={'%3Cimg src=x onerror=alert(1)%3E'.replace(' ', '+')}",
    ]
    paths += ["/models?q=%3Cscript%3E", "/playground?input=%3Cscript%3Ealert(1)%3C/script%3E&model=%22%3E%3Cscript%3E"]
    paths += [f"/playground?from={ids[0]}", "/providers/main?model=%3Cscript%3E", "/requests/%3Cscript%3E"]
    for path in paths:
        seen = browser.look(PAGE + path)
        assert seen.status in (200, 404), (path, seen.text)
        assert "<img src=x" not in seen.text, path
        assert "<script>" not in seen.text, path
    assert "{{7*7}}" in browser.look(f"/ui/requests/{ids[0]}").text, "nor is it a template"
    assert "&lt;img src=x onerror=alert(1)&gt;" in browser.look(f"/ui/requests/{ids[0]}").text, "it is shown, as text"


def test_what_is_not_known_is_said_in_words(browser: Browser) -> None:
    seen = browser.look("/ui/requests/req_nothing")
    assert seen.status == 404
    assert "nothing is known of" in seen.text
    assert browser.look("/ui/providers/nobody").status == 404


def test_where_traces_are_off_every_page_says_so(opened: Opened) -> None:
    browser = opened(trace='capture = "off"')
    browser.made({"input": "hi"})
    for page in ("", "/requests", "/overview"):
        seen = browser.look(PAGE + page)
        assert seen.status == 200
        assert "Traces are off" in seen.text


# ── coming and going ─────────────────────────────────────────────────────────────────────────────────


def log_in(browser: Browser, key: str, **fields: str) -> int:
    token = browser.look("/ui/login").token
    return browser.post("/ui/login", {"key": key, "token": token, **fields}).status


@pytest.mark.parametrize("page", [*PAGES, "/requests/req_1", "/requests/req_1/replay"])
def test_with_keys_nobody_sees_a_page_without_one(opened: Opened, page: str) -> None:
    browser = opened(server=KEYED)
    seen = browser.look(PAGE + page)
    assert seen.status == 303
    assert seen.headers["location"].startswith("/ui/login?next=/ui")
    assert seen.text == ""
    assert browser.look("/").status == 303


@pytest.mark.parametrize("path", ["/ui/plan", "/ui/send", "/ui/logout", "/ui/capture"])
def test_nor_sends_anything_from_it(opened: Opened, path: str) -> None:
    browser = opened(server=KEYED)
    seen = browser.post(path, {"token": browser.look("/ui/login").token})
    assert seen.status == 401
    assert browser.look("/ui/live").status == 401
    assert browser.upstream.requests == []


def test_the_admin_key_opens_everything_and_logging_out_closes_it(opened: Opened) -> None:
    browser = opened(server=KEYED)
    assert log_in(browser, "wrong") == 401
    assert browser.cookie == ""
    assert log_in(browser, ADMIN) == 303
    for page in PAGES:
        assert browser.look(PAGE + page).status == 200
    cookie = browser.cookie
    token = browser.look("/ui").token
    assert browser.post("/ui/logout", {"token": "0" * 64}).status == 403, "another page's form does not log people out"
    assert browser.look("/ui").status == 200
    assert browser.post("/ui/logout", {"token": token}).status == 303
    browser.cookie = cookie
    assert browser.look("/ui").status == 303, "a cookie that somebody kept is worth nothing"


def test_another_key_sees_no_settings(opened: Opened) -> None:
    browser = opened(server=KEYED)
    assert log_in(browser, USER) == 303
    assert browser.look("/ui").status == 200
    assert browser.look("/ui/settings").status == 403
    token = browser.look("/ui").token
    assert browser.post("/ui/capture", {"token": token, "minutes": "5"}).status == 403


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        ("/ui/requests?door=chat", "/ui/requests?door=chat"),
        ("https://evil.example/", "/ui"),
        ("//evil.example/ui", "/ui"),
        ("/ui/../v1/models", "/ui/../v1/models"),
        ("/uix", "/ui"),
        ("/ui\\evil", "/ui"),
        ("javascript:alert(1)", "/ui"),
    ],
)
def test_after_logging_in_one_stays_on_our_pages(opened: Opened, wanted: str, gone: str) -> None:
    browser = opened(server=KEYED)
    token = browser.look("/ui/login").token
    seen = browser.post("/ui/login", {"key": ADMIN, "token": token, "next": wanted})
    assert seen.headers["location"] == gone


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_a_foreign_page_logs_nobody_in_and_sends_nothing(opened: Opened, origin: str) -> None:
    browser = opened(server=KEYED + '\nallow_origins = ["*"]')
    token = browser.look("/ui/login").token
    assert browser.post("/ui/login", {"key": ADMIN, "token": token}, origin=origin).status == 403
    log_in(browser, ADMIN)
    token = browser.look("/ui").token
    assert browser.post("/ui/capture", {"token": token, "minutes": "5"}, origin=origin).status == 403


def test_full_capture_is_switched_on_for_some_minutes(opened: Opened) -> None:
    browser = opened(trace="")
    words = "a very particular sentence"
    first = browser.made({"input": words})
    assert words not in browser.look(f"/ui/requests/{first}").text
    token = browser.look("/ui/settings").token
    assert browser.post("/ui/capture", {"token": token, "minutes": "99999999"}).status == 400
    assert browser.post("/ui/capture", {"token": token, "minutes": "5"}).status == 303
    assert "Everything is captured, with its content, until" in browser.look("/ui/settings").text
    second = browser.made({"input": words})
    assert words in browser.look(f"/ui/requests/{second}").text
    assert browser.post("/ui/capture", {"token": token, "minutes": "0"}).status == 303
    third = browser.made({"input": words})
    assert words not in browser.look(f"/ui/requests/{third}").text


def test_below_a_proxys_prefix_every_link_has_it(opened: Opened) -> None:
    browser = opened(server='path_prefix = "/isthmus"')
    seen = browser.look("/isthmus/ui")
    assert all(link.startswith("/isthmus/ui") for link in re.findall(r'(?:src|href|action)="([^"#]+)"', seen.text))
