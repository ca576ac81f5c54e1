"""What a gateway that many share must not tell: its clients' keys, its callers' keys at providers, the password of its
Redis, and what an exception of a hook repeats of a request."""

from __future__ import annotations

import http.client
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from typer.testing import CliRunner

from isthmus.access.secret import SHOWN
from isthmus.cli.commands import app
from isthmus.ports.keys import Grant, Rates
from isthmus.testing import chat, error
from keyed import secret_of, stored_key
from leaking import assert_silent
from limited import bearer
from shared import BOSS, Shared, shared
from tracing import traces
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its log is read while it is written")

REDIS = "9dQ-redis-password-7Lw"
TEAM_KEY, OWN_KEY = "zk.Team-4f8a1c93d7e25b60", "zk.Anns-93d7e25b604f8a1c"
WORD = "content-that-the-hook-repeats-5512"
CLIENTS = [secret_of(name)[SHOWN:] for name in ("ann", "bob", "boss")]
"""Without how they begin: by that they are recognised."""
SECRETS = [REDIS, TEAM_KEY, OWN_KEY, *CLIENTS]
HOOK = f"""
class Mine:
    def before_plan(self, request, context):
        if "{WORD}" in str(request["input"]):
            raise ValueError(f"what is this: {{request['input']}}")
"""
PAGES = ("", "/overview", "/requests", "/providers", "/providers/main", "/models", "/keys", "/usage", "/settings")


def ann_and_bob() -> list[Any]:
    rates = Grant(rates=Rates(requests_per_minute=50))
    return [stored_key("ann", grant=rates), stored_key("bob", team="t", grant=rates)]


def config(folder: Path) -> str:
    (folder / "mine.py").write_text(HOOK)
    ann, _ = ann_and_bob()
    return f"""
[providers.main.keys_for]
"{ann.id}" = "{OWN_KEY}"
[teams.t.upstream_keys]
main = "{TEAM_KEY}"
[limits]
redis = "redis://gateway:{REDIS}@127.0.0.1:1/0"
[hooks]
uses = ["mine.py:Mine"]
folder = "{folder}"
[trace]
capture = "full"
"""


def test_no_secret_of_those_who_share_it_is_told_anywhere(tmp_path: Path) -> None:
    with shared(tmp_path, *ann_and_bob(), toml=config(tmp_path), log_level="debug") as house:
        told = [*asked(house), *seen_in_a_browser(house), *looked_at(house)]
        everything = "\n".join(told)
        file = str(tmp_path / "isthmus.toml")
        for command in (["config", "print"], ["config", "print", "--json"], ["config", "check"], ["audit"]):
            done = CliRunner().invoke(app, [*command, "--config", file], env={"HOME": str(tmp_path), "NO_COLOR": "1"})
            everything += done.output
        log = house.process.log.read_text()
        assert_silent(SECRETS, told=everything, log=log, traces=on_disk(tmp_path, "trace"))
        assert "limits.redis_away" in log, "it was tried, with its password"
        sent = {dict(each.headers).get("authorization") for each in house.upstream.requests}
        assert sent == {f"Bearer {OWN_KEY}", f"Bearer {TEAM_KEY}"}, "each by the caller's own"
        sent_bytes = repr([(each.headers, each.body, each.path) for each in house.upstream.requests])
        assert_silent([REDIS, *CLIENTS], upstream=sent_bytes, database=on_disk(tmp_path, "limited.db"))
        assert WORD not in log, "what an exception of a hook repeats stays with the hook"
        assert "hook_failed" in log


def asked(house: Shared) -> list[str]:
    """Answers to what may go wrong, with both headers, at all doors; the provider repeats the keys that it gets."""
    user, found = [{"role": "user", "content": "hi"}], []
    bodies: dict[str, Any] = {
        "/v1/responses": {"input": "hi"},
        "/v1/chat/completions": {"messages": user},
        "/v1/messages": {"messages": user, "max_tokens": 9, "model": "main/some-model"},
    }
    for path, body in bodies.items():
        for name, key in (("ann", OWN_KEY), ("bob", TEAM_KEY)):
            for headers in (bearer(name), {"x-api-key": secret_of(name)}):
                house.upstream.push(chat("Hello."), error(401, f"no such key: {key}"))
                answers = [house.talk.post(f"{path}?key={secret_of(name)}", body, headers) for _ in range(2)]
                found += [repr((each.headers, each.body)) for each in answers]
    for headers in ({"authorization": f"Bearer {secret_of('ann')}x"}, {"x-api-key": secret_of("bob")[:-1]}):
        found.append(repr(house.talk.post("/v1/responses", {"input": "hi"}, headers).body))
    refused = house.ask(input=f"please: {WORD}")
    assert refused.error["code"] == "hook_failed"
    assert WORD not in refused.body.decode()
    return found


def looked_at(house: Shared) -> list[str]:
    def found() -> list[Any]:
        """All of them, once the last one is there: who came to the page."""
        listed = traces(house.talk, "limit=100", bearer("boss"))  # type: ignore[arg-type]
        return listed if any(each.get("path") == "/ui/login" for each in listed) else []

    listed = until(found)
    assert len(listed) > 15
    paths = [f"/v1/isthmus/traces/{each['id']}" for each in listed]
    paths += [
        "/v1/isthmus/traces",
        "/v1/isthmus/keys",
        "/v1/isthmus/audit",
        "/v1/isthmus/usage",
        "/v1/isthmus/usage?format=csv",
    ]
    paths += [f"/v1/isthmus/keys/{BOSS.id}", "/metrics", "/openapi.json", "/ready", "/health", "/v1/models", "/"]
    answers = [house.talk.request("GET", path, None, bearer("boss")) for path in paths]
    assert [each.status for each in answers] == [200] * len(paths)
    return [each.body.decode() for each in answers]


def seen_in_a_browser(house: Shared) -> list[str]:
    """Every page, for an operator."""
    place = urlsplit(house.process.url).netloc

    def ask(method: str, path: str, body: str | None = None, cookie: str = "") -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection(place, timeout=60)
        headers = {"accept": "text/html", "origin": f"http://{place}", "cookie": cookie}
        if body is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, {name: value for name, value in headers.items() if value})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    answer, page = ask("GET", "/ui/login")
    first = (answer.getheader("set-cookie") or "").partition(";")[0]
    token = re.search(r'data-token="([0-9a-f]+)"', page)
    assert token is not None
    fields = urlencode({"key": secret_of("boss"), "token": token[1]})
    answer, _ = ask("POST", "/ui/login", fields, first)
    cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    seen = []
    for path in PAGES:
        answer, page = ask("GET", f"/ui{path}", cookie=cookie)
        assert answer.status == 200, (path, answer.status, page[:300])
        seen.append(page)
    assert "redis" in seen[-1], "the settings are shown, without what is secret in them"
    return seen


def on_disk(folder: Path, name: str) -> bytes:
    files = [path for path in folder.rglob("*") if path.is_file() and name in str(path.relative_to(folder))]
    assert files, name
    return b"".join(path.read_bytes() for path in files)
