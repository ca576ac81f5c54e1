"""The page of keys: what operators do there, and what everybody else sees of their own."""

from __future__ import annotations

import re

from server.ui.conftest import Browser, Opened, Seen

ADMIN = "chief-key-0123456789"
KEY = re.compile(r"ik_[A-Za-z0-9_-]{43}")


def entered(opened: Opened, key: str = ADMIN) -> Browser:
    return log_in(opened(server=f'admin_key = "{ADMIN}"'), key)


def log_in(browser: Browser, key: str) -> Browser:
    browser.cookie = ""
    token = browser.look("/ui/login").token
    assert browser.post("/ui/login", {"token": token, "key": key}).status == 303
    return browser


def do(browser: Browser, **fields: str) -> Seen:
    return browser.post("/ui/keys", {"token": browser.look("/ui/keys").token, **fields})


def id_of(browser: Browser, name: str) -> str:
    found = re.search(rf"<td>{name}<br><code class=\"soft\">(key_[0-9a-f]+)", browser.look("/ui/keys").text)
    assert found is not None
    return found[1]


def test_an_operator_makes_a_key_that_is_shown_once(opened: Opened) -> None:
    browser = entered(opened)
    assert 'href="/ui/keys"' in browser.look("/ui").text
    fields = {"name": "ann", "team": "search", "models": "main/*, fast", "endpoints": "responses,models", "days": "30"}
    seen = do(browser, do="create", **fields, requests_per_minute="60", daily_budget="2.5", tools="none")
    assert seen.status == 200
    assert seen.headers["cache-control"] == "no-store"
    (secret,) = set(KEY.findall(seen.text))
    assert f"OPENAI_API_KEY={secret}" in seen.text
    assert f"ANTHROPIC_BASE_URL={browser.gateway.url}\n" in seen.text
    after = browser.look("/ui/keys").text
    assert not KEY.search(after)
    assert secret[:10] in after
    asked = browser.talk.request("GET", "/v1/models", None, {"x-api-key": secret})
    assert asked.status == 200, "it opens at once"
    told = browser.talk.request("GET", f"/v1/isthmus/keys/{id_of(browser, 'ann')}", None, {"x-api-key": ADMIN}).json
    expected = {"team": "search", "models": ["main/*", "fast"], "endpoints": ["models", "responses"], "tools": []}
    assert told == {**told, **expected, "requests_per_minute": 60, "daily_budget": 2.5, "admin": False}
    assert told["expires_at"] - told["created_at"] == 30 * 86_400


def test_a_key_is_rotated_with_a_day_of_grace_and_revoked(opened: Opened) -> None:
    browser = entered(opened)
    (old,) = set(KEY.findall(do(browser, do="create", name="ann").text))
    id = id_of(browser, "ann")
    (new,) = set(KEY.findall(do(browser, do="rotate", id=id, grace_hours="24").text))

    def status(key: str) -> int:
        return browser.talk.request("GET", "/v1/models", None, {"x-api-key": key}).status

    assert (old != new, status(old), status(new)) == (True, 200, 200)
    assert do(browser, do="revoke", id=id).status == 303
    assert (status(old), status(new)) == (401, 401)
    assert re.search(r"<td>revoked</td>", browser.look("/ui/keys").text)
    deeds = browser.talk.request("GET", "/v1/isthmus/audit", None, {"x-api-key": ADMIN}).json["data"]
    assert [each["action"] for each in deeds] == ["key.revoke", "key.rotate", "key.create", "page.enter"]


def test_a_mistake_is_told_on_the_page(opened: Opened) -> None:
    browser = entered(opened)
    do(browser, do="create", name="ann")
    assert "is called `ann`" in do(browser, do="create", name="ann").text
    assert (
        "`requests_per_minute` must be a number" in do(browser, do="create", name="x", requests_per_minute="many").text
    )
    assert "there is no key" in do(browser, do="revoke", id="key_none").text


def test_what_no_page_of_ours_sent_changes_nothing(opened: Opened) -> None:
    browser = entered(opened)
    assert browser.post("/ui/keys", {"do": "create", "name": "intruder", "token": "0" * 64}).status == 403
    token = browser.look("/ui/keys").token
    foreign = browser.post(
        "/ui/keys", {"do": "create", "name": "intruder", "token": token}, origin="http://evil.example"
    )
    assert foreign.status == 403
    assert "intruder" not in browser.look("/ui/keys").text


def test_anybody_else_sees_what_their_own_key_opens_and_nothing_more(opened: Opened) -> None:
    browser = entered(opened)
    (ann,) = set(KEY.findall(do(browser, do="create", name="ann", team="search", models="main/*").text))
    do(browser, do="create", name="somebody-else")
    log_in(browser, ann)
    seen = browser.look("/ui/keys").text
    assert all(word in seen for word in (ann[:10], "shared with team", "search", "main/*"))
    assert "somebody-else" not in seen
    assert 'name="do"' not in seen
    refused = browser.post("/ui/keys", {"token": browser.look("/ui/keys").token, "do": "create", "name": "x"})
    assert refused.status == 403


def test_a_key_that_does_not_open_the_page_is_not_let_in_and_one_that_is_revoked_not_any_more(opened: Opened) -> None:
    browser = entered(opened)
    (closed,) = set(KEY.findall(do(browser, do="create", name="closed", endpoints="responses").text))
    (ann,) = set(KEY.findall(do(browser, do="create", name="ann").text))
    id = id_of(browser, "ann")
    operator, browser.cookie = browser.cookie, ""
    token = browser.look("/ui/login").token
    seen = browser.post("/ui/login", {"token": token, "key": closed})
    assert seen.status == 403
    assert "does not open `page`" in seen.text
    log_in(browser, ann)
    assert browser.look("/ui/keys").status == 200
    hers, browser.cookie = browser.cookie, operator
    do(browser, do="revoke", id=id)
    browser.cookie = hers
    assert browser.look("/ui/keys").status == 303


def test_where_no_key_is_needed_the_first_one_closes_the_page(opened: Opened) -> None:
    browser = opened()
    assert "make an operator's key first" in browser.look("/ui/keys").text
    seen = do(browser, do="create", name="ops", admin="on")
    (secret,) = set(KEY.findall(seen.text))
    assert browser.look("/ui").status == 303
    log_in(browser, secret)
    assert "Every request shows a key" in browser.look("/ui/keys").text


def test_one_of_the_configuration_is_told_so(opened: Opened) -> None:
    browser = log_in(opened(server=f'admin_key = "{ADMIN}"\napi_keys = ["user-key-0123456789"]'), "user-key-0123456789")
    assert "one of the configuration" in browser.look("/ui/keys").text
