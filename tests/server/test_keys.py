"""Keys over HTTP: made, listed, changed, rotated and revoked by operators alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from isthmus.access.secret import digest_of
from isthmus.access.wishes import FIELDS
from keyed_gateway import Keyed, Person, keyed_gateway
from serving import running_gateway_server
from talking import Talk

KEYS = "/v1/isthmus/keys"
ROUTES = [
    ("GET", KEYS),
    ("POST", KEYS),
    ("GET", f"{KEYS}/key_1"),
    ("POST", f"{KEYS}/key_1"),
    ("DELETE", f"{KEYS}/key_1"),
    ("POST", f"{KEYS}/key_1/rotate"),
    ("GET", "/v1/isthmus/audit"),
]


@pytest.fixture
def keyed() -> Iterator[Keyed]:
    with keyed_gateway() as opened:
        yield opened


def test_a_key_is_told_once_opens_at_once_and_is_never_told_again(keyed: Keyed) -> None:
    reply = keyed.chief.post(KEYS, {"name": "ann", "team": "search", "metadata": {"a": "b"}})
    made = reply.json
    assert reply.headers["cache-control"] == "no-store"
    secret = made.pop("key")
    assert made["prefix"] == secret[:10]
    assert (made["name"], made["owner"], made["status"]) == ("ann", "team:search", "active")
    assert set(FIELDS) - {"expires_in"} <= set(made)
    ann = Person(keyed.server.url, secret)
    assert ann.get("/v1/models").status == 200
    for path in (KEYS, f"{KEYS}/{made['id']}", "/v1/isthmus/audit"):
        body = keyed.chief.get(path).body
        assert secret.encode() not in body
        assert digest_of(secret).hex().encode() not in body
    assert keyed.chief.get(f"{KEYS}/{made['id']}").json == made


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_only_operators_look_after_keys(keyed: Keyed, method: str, path: str) -> None:
    ann = keyed.person("ann")
    body = {"name": "x"} if method == "POST" else None
    assert ann.code(method, path, body) == (403, "operator_only")
    assert Talk(keyed.server.url).request(method, path, body).status == 401
    operator = keyed.person("ops", admin=True)
    assert operator.ask(method, path, body).status in (200, 400, 404)


def test_on_a_machine_of_its_own_whoever_is_there_makes_the_first_key() -> None:
    with running_gateway_server('[server]\nport = 0\n[store]\nurl = "memory:"\n') as server:
        talk = Talk(server.url)
        assert talk.get("/v1/models").status == 200
        made = talk.post(KEYS, {"name": "ops", "admin": True}).json
        assert talk.get("/v1/models").status == 401, "as soon as one key exists, a key is needed"
        operator = Person(server.url, made["key"])
        deeds = operator.get("/v1/isthmus/audit").json["data"]
        assert [(each["actor"], each["action"]) for each in deeds] == [("local", "key.create")]


def test_a_change_counts_at_once_and_a_revoked_key_opens_nothing(keyed: Keyed) -> None:
    ann = keyed.person("ann")
    assert ann.get("/v1/isthmus/traces").status == 200
    changed = keyed.chief.post(f"{KEYS}/{ann.id}", {"endpoints": ["responses"]})
    assert (changed.status, changed.json["endpoints"]) == (200, ["responses"])
    assert ann.code("GET", "/v1/isthmus/traces") == (403, "not_allowed")
    revoked = keyed.chief.ask("DELETE", f"{KEYS}/{ann.id}")
    assert (revoked.status, revoked.json["status"]) == (200, "revoked")
    assert ann.code("GET", "/v1/models") == (401, "invalid_api_key")
    again = keyed.chief.ask("DELETE", f"{KEYS}/{ann.id}")
    assert again.json == revoked.json, "asked once more, it is answered as before"
    assert keyed.chief.code("POST", f"{KEYS}/{ann.id}", {"team": "x"}) == (409, "key_changed")
    assert keyed.chief.code("POST", f"{KEYS}/{ann.id}/rotate", {}) == (409, "key_changed")


@pytest.mark.parametrize("grace", [0, 3600])
def test_a_rotated_key_keeps_what_it_made_and_the_old_one_its_grace(keyed: Keyed, grace: int) -> None:
    ann = keyed.person("ann")
    made = ann.create({"input": "hi"})
    reply = keyed.chief.post(f"{KEYS}/{ann.id}/rotate", {"grace": grace} if grace else {})
    assert reply.headers["cache-control"] == "no-store"
    new = Person(ann.url, reply.json["key"])
    assert new.secret != ann.secret
    assert new.get(f"/v1/responses/{made['id']}").json["id"] == made["id"]
    assert ann.get("/v1/models").status == (200 if grace else 401)


def test_the_list_is_paged_and_can_be_narrowed(keyed: Keyed) -> None:
    people = [keyed.person(f"p{number}", team="t" if number % 2 else "") for number in range(5)]
    keyed.chief.ask("DELETE", f"{KEYS}/{people[0].id}")
    first = keyed.chief.get(f"{KEYS}?limit=2").json
    assert [each["name"] for each in first["data"]] == ["p0", "p1"]
    assert (first["has_more"], first["last_id"]) == (True, people[1].id)
    rest = keyed.chief.get(f"{KEYS}?after={first['last_id']}").json
    assert ([each["name"] for each in rest["data"]], rest["has_more"]) == (["p2", "p3", "p4"], False)
    assert [each["name"] for each in keyed.chief.get(f"{KEYS}?team=t").json["data"]] == ["p1", "p3"]
    assert [each["name"] for each in keyed.chief.get(f"{KEYS}?status=revoked").json["data"]] == ["p0"]


def test_the_audit_is_paged_and_names_who_did_it(keyed: Keyed) -> None:
    ops = keyed.person("ops", admin=True)
    made = ops.post(KEYS, {"name": "ann", "models": ["fast"]}).json
    ops.post(f"{KEYS}/{made['id']}", {"models": None})
    ops.post("/v1/isthmus/traces/capture", {"seconds": 60, "owner": "team:x"})
    page = ops.get("/v1/isthmus/audit?limit=3").json
    assert [each["action"] for each in page["data"]] == ["trace.capture", "key.change", "key.create"]
    assert {each["actor"] for each in page["data"]} == {ops.id}
    assert page["data"][0]["details"]["seconds"] == "60"
    assert page["data"][0]["target"] == "team:x"
    assert page["data"][1]["details"] == {
        "name": "ann",
        "models": "all",
        "request": page["data"][1]["details"]["request"],
    }
    assert page["data"][1]["details"]["request"].startswith("req_")
    assert page["has_more"]
    rest = ops.get(f"/v1/isthmus/audit?before={page['last_id']}").json
    assert [each["details"]["name"] for each in rest["data"]] == ["ops"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", KEYS, {}, 400, "invalid_value"),
        ("POST", KEYS, {"name": "taken"}, 409, "key_exists"),
        ("POST", KEYS, {"name": "x", "nope": 1}, 400, "unknown_parameter"),
        ("POST", KEYS, {"name": 1}, 400, "invalid_type"),
        ("POST", KEYS, [], 400, "invalid_type"),
        ("POST", KEYS, b"{", 400, "invalid_json"),
        ("GET", f"{KEYS}/key_none", None, 404, "key_not_found"),
        ("GET", f"{KEYS}/taken", None, 404, "key_not_found"),
        ("DELETE", f"{KEYS}/key_none", None, 404, "key_not_found"),
        ("POST", f"{KEYS}/key_none/rotate", {}, 404, "key_not_found"),
        ("POST", f"{KEYS}/TAKEN/rotate", {"grace": -1}, 400, "invalid_value"),
        ("POST", f"{KEYS}/TAKEN/rotate", {"grace": "1d"}, 400, "invalid_type"),
        ("POST", f"{KEYS}/TAKEN/rotate", {"gracious": 1}, 400, "invalid_type"),
        ("GET", f"{KEYS}?limit=0", None, 400, "invalid_value"),
        ("GET", f"{KEYS}?status=gone", None, 400, "invalid_value"),
        ("GET", f"{KEYS}?after=key_none", None, 400, "invalid_value"),
        ("GET", "/v1/isthmus/audit?before=x", None, 400, "invalid_value"),
    ],
)
def test_what_is_wrong_is_refused(keyed: Keyed, method: str, path: str, body: Any, status: int, code: str) -> None:
    taken = keyed.person("taken")
    assert keyed.chief.code(method, path.replace("TAKEN", taken.id), body) == (status, code)
