"""Nobody comes to what is somebody else's: every route, asked with another owner's ids, in every store.

The routes are those of the server's own table: one that is new and has no line in `SWEEP` turns this red. Each line is
asked by a stranger, who gets a 404 (or the 400 that calls a reference unknown) and not a word of the content; then by
the owner, and by another key of the owner's team, who get what they ask for. So no line is refused for another reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from isthmus.server.app import create_app
from keyed_gateway import Keyed, Person, keyed_gateway
from postgres import database_of
from socketing import open_socket
from talking import Talk
from waiting import until

WORD = "a-word-of-ann"
"""Stands in all that the owner makes."""
ID = "(?P<id>[^/]+)"
STORES = ("memory:", "sqlite", "postgres")
HEADERS = ("authorization", "x-api-key")


@dataclass
class Things:
    """What an owner has made, by id."""

    response: str
    item: str
    background: str
    running: str
    chat: str
    conversation: str
    said: str
    trace: str


@dataclass(frozen=True)
class Owned:
    """A route that leads to somebody's thing."""

    path: Callable[[Things], str]
    body: Any = None
    code: str = ""
    destroys: bool = False
    status: int = 404


@dataclass(frozen=True)
class Listed:
    """A route without an id: whatever it tells is the asker's own."""

    path: str
    body: Any = None


@dataclass(frozen=True)
class Nobodys:
    """A route that tells of nobody's things; why."""

    why: str


@dataclass(frozen=True)
class Refers:
    """A route whose body may refer to things: see `REFERENCES`."""

    path: str
    body: Mapping[str, Any] = field(default_factory=dict)


R, CHATS, CONVS, TRACES = "/v1/responses", "/v1/chat/completions", "/v1/conversations", "/v1/isthmus/traces"
GONE, NO_CONV, NO_TRACE = "response_not_found", "conversation_not_found", "trace_not_found"
NO_CHAT = "not_found"
CHANGE = {"metadata": {"by": "a stranger"}}
SAYS = {"items": [{"type": "message", "role": "user", "content": "hi"}]}
OPERATORS = Nobodys("for operators alone: see the tests of `server/keys`")
SWEEP: dict[tuple[str, str], Owned | Listed | Nobodys | Refers] = {
    ("POST", R): Refers(R, {"input": "hi"}),
    ("POST", f"{R}/input_tokens"): Refers(f"{R}/input_tokens", {"input": "hi"}),
    ("POST", f"{R}/compact"): Refers(f"{R}/compact", {"input": "hi", "model": "demo/demo"}),
    ("GET", f"{R}/{ID}"): Owned(lambda a: f"{R}/{a.response}", code=GONE),
    ("DELETE", f"{R}/{ID}"): Owned(lambda a: f"{R}/{a.response}", code=GONE, destroys=True),
    ("POST", f"{R}/{ID}/cancel"): Owned(lambda a: f"{R}/{a.running}/cancel", {}, GONE, destroys=True),
    ("GET", f"{R}/{ID}/input_items"): Owned(lambda a: f"{R}/{a.response}/input_items", code=GONE),
    ("POST", CHATS): Nobodys("a chat refers to nothing that is kept"),
    ("GET", CHATS): Listed(CHATS),
    ("GET", f"{CHATS}/{ID}"): Owned(lambda a: f"{CHATS}/{a.chat}", code=NO_CHAT),
    ("POST", f"{CHATS}/{ID}"): Owned(lambda a: f"{CHATS}/{a.chat}", CHANGE, NO_CHAT),
    ("DELETE", f"{CHATS}/{ID}"): Owned(lambda a: f"{CHATS}/{a.chat}", code=NO_CHAT, destroys=True),
    ("GET", f"{CHATS}/{ID}/messages"): Owned(lambda a: f"{CHATS}/{a.chat}/messages", code=NO_CHAT),
    ("POST", "/v1/messages"): Nobodys("a message refers to nothing that is kept"),
    ("POST", "/v1/messages/count_tokens"): Nobodys("likewise"),
    ("GET", "/api/hello"): Nobodys("says hello"),
    ("POST", "/v1/embeddings"): Nobodys("vectors are not kept"),
    ("POST", "/v1/alpha/search"): Nobodys("what a search found is named within its owner: `tools/search/refs`"),
    ("POST", "/v1/images/generations"): Nobodys("images are not kept"),
    ("POST", "/v1/images/edits"): Nobodys("images come with the request"),
    ("POST", CONVS): Refers(CONVS, {}),
    ("GET", f"{CONVS}/{ID}"): Owned(lambda a: f"{CONVS}/{a.conversation}", code=NO_CONV),
    ("POST", f"{CONVS}/{ID}"): Owned(lambda a: f"{CONVS}/{a.conversation}", CHANGE, NO_CONV),
    ("DELETE", f"{CONVS}/{ID}"): Owned(lambda a: f"{CONVS}/{a.conversation}", code=NO_CONV, destroys=True),
    ("GET", f"{CONVS}/{ID}/items"): Owned(lambda a: f"{CONVS}/{a.conversation}/items", code=NO_CONV),
    ("POST", f"{CONVS}/{ID}/items"): Owned(lambda a: f"{CONVS}/{a.conversation}/items", SAYS, NO_CONV),
    ("GET", f"{CONVS}/{ID}/items/(?P<item_id>[^/]+)"): Owned(
        lambda a: f"{CONVS}/{a.conversation}/items/{a.said}", code=NO_CONV
    ),
    ("DELETE", f"{CONVS}/{ID}/items/(?P<item_id>[^/]+)"): Owned(
        lambda a: f"{CONVS}/{a.conversation}/items/{a.said}", code=NO_CONV, destroys=True
    ),
    ("GET", TRACES): Listed(TRACES),
    ("GET", f"{TRACES}/totals"): Listed(f"{TRACES}/totals?by=model"),
    ("GET", f"{TRACES}/capture"): OPERATORS,
    ("POST", f"{TRACES}/capture"): OPERATORS,
    ("GET", f"{TRACES}/{ID}"): Owned(lambda a: f"{TRACES}/{a.trace}", code=NO_TRACE),
    ("GET", f"{TRACES}/{ID}/conversation"): Owned(lambda a: f"{TRACES}/{a.trace}/conversation", code=NO_TRACE),
    ("GET", "/v1/isthmus/usage"): Listed("/v1/isthmus/usage"),
    ("GET", "/v1/isthmus/keys"): OPERATORS,
    ("POST", "/v1/isthmus/keys"): OPERATORS,
    ("GET", f"/v1/isthmus/keys/{ID}"): OPERATORS,
    ("POST", f"/v1/isthmus/keys/{ID}"): OPERATORS,
    ("DELETE", f"/v1/isthmus/keys/{ID}"): OPERATORS,
    ("POST", f"/v1/isthmus/keys/{ID}/rotate"): OPERATORS,
    ("GET", "/v1/isthmus/audit"): OPERATORS,
    ("GET", "/v1/models"): Nobodys("models are everybody's that may use them"),
    ("GET", "/v1/models/(?P<id>.+)"): Nobodys("likewise"),
    ("GET", "/health"): Nobodys("says that the process answers"),
    ("GET", "/ready"): Nobodys("says whether it can serve"),
    ("GET", "/metrics"): Nobodys("counts everybody's; needs a key of its own"),
    ("GET", "/openapi.json"): Nobodys("says what there is"),
    ("GET", "/"): Nobodys("says who answers"),
}
REFERENCES: dict[str, Callable[[Things], dict[str, Any]]] = {
    "previous_response_id": lambda a: {"previous_response_id": a.response},
    "previous_response_id of the background": lambda a: {"previous_response_id": a.background},
    "previous_response_id of a chat": lambda a: {"previous_response_id": a.chat},
    "conversation": lambda a: {"conversation": a.conversation},
    "item_reference": lambda a: {"input": [{"type": "item_reference", "id": a.item}]},
    "item_reference into a conversation": lambda a: {"input": [{"type": "item_reference", "id": a.said}]},
}
UNKNOWN = ("previous_response_not_found", "conversation_not_found", "item_not_found")


@pytest.fixture(params=STORES)
def keyed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Keyed]:
    files = {"sqlite": f"sqlite:{tmp_path / 'x.db'}"}
    store = database_of(tmp_path) if request.param == "postgres" else files.get(request.param, request.param)
    with keyed_gateway(store, server="grace = 0") as opened:
        yield opened


def test_every_route_of_the_server_has_its_line(keyed: Keyed) -> None:
    routes = create_app(keyed.server.gateway).routes
    there = {(method, path) for path, route in routes.items() for method in route if not path.startswith("/ui")}
    assert there - set(SWEEP) == set(), "say in `SWEEP` whose things these routes lead to"
    assert set(SWEEP) - there == set(), "these are no routes any more"
    with_id = {key for key in SWEEP if "(?P<" in key[1]}
    told = {key for key, line in SWEEP.items() if isinstance(line, Owned) or line is OPERATORS}
    assert with_id - told == {("GET", "/v1/models/(?P<id>.+)")}, "what has an id has an owner"


@pytest.mark.parametrize("header", HEADERS)
def test_a_stranger_finds_nothing_and_changes_nothing(keyed: Keyed, header: str) -> None:
    ann, eve = keyed.person("ann"), keyed.person("eve", header)
    things = make_things(keyed, ann)
    before = all_that_is(ann, things)
    # Lists first: what a stranger tried in vain is in her own list of traces afterwards.
    for (method, path), line in sorted(SWEEP.items(), key=lambda entry: not isinstance(entry[1], Listed)):
        if isinstance(line, Owned):
            reply = eve.ask(method, line.path(things), line.body)
            assert reply.status == line.status, (method, path, reply.body)
            assert reply.error["code"] == line.code, (method, path)
            assert WORD.encode() not in reply.body, (method, path)
        elif isinstance(line, Listed):
            reply = eve.ask(method, line.path, line.body)
            assert reply.status == 200
            assert WORD.encode() not in reply.body, (method, path)
            assert [id for id in vars(things).values() if id.encode() in reply.body] == [], (method, path)
            assert reply.json["data"] == [], (method, path)
    assert all_that_is(ann, things) == before


@pytest.mark.parametrize("whose", ["the owner", "one of the team"])
def test_the_owner_and_the_team_find_all_of_it(keyed: Keyed, whose: str) -> None:
    """The same lines: a stranger was not refused because the question was wrong."""
    ann, bob = keyed.person("ann", team="search"), keyed.person("bob", team="search")
    asks = ann if whose == "the owner" else bob
    things = make_things(keyed, ann)
    owned = [(method, line) for (method, _), line in SWEEP.items() if isinstance(line, Owned)]
    for line in SWEEP.values():
        if isinstance(line, Listed):
            assert asks.get(line.path).json["data"], line
    destroying = [each for each in owned if each[1].destroys]
    # What an item is in goes last.
    for method, line in [*(each for each in owned if not each[1].destroys), *reversed(destroying)]:
        reply = asks.ask(method, line.path(things), line.body)
        assert reply.status == 200, (method, line.path(things), reply.body)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("door", [R, f"{R}/input_tokens", f"{R}/compact", "socket", "background", "stream"])
def test_a_reference_to_a_strangers_thing_is_unknown(keyed: Keyed, door: str, reference: str) -> None:
    ann, bob, eve = keyed.person("ann", team="t"), keyed.person("bob", team="t"), keyed.person("eve")
    things = make_things(keyed, ann, running=False)
    body = {"input": "Go on.", "model": "demo/demo", **REFERENCES[reference](things)}
    if door == "socket":
        with open_socket(keyed.server.url, headers=eve.headers) as socket:
            status, code, _ = socket.refused(body)
        seen = json.dumps(socket.seen)
    else:
        sent = {
            **body,
            **({"background": True} if door == "background" else {"stream": True} if door == "stream" else {}),
        }
        reply = eve.post(door if door.startswith("/") else R, sent)
        status, code, seen = reply.status, reply.error["code"], reply.body.decode()
    assert code in UNKNOWN, (status, code)
    assert status in (400, 404)
    assert WORD not in seen
    if reference != "previous_response_id of a chat":  # a completion is no parent, for nobody
        assert bob.post(R, body).status == 200, "those of one team go on from each other's"


def test_a_conversation_takes_in_no_items_of_others(keyed: Keyed) -> None:
    ann, eve = keyed.person("ann"), keyed.person("eve")
    things = make_things(keyed, ann, running=False)
    reference = {"items": [{"type": "item_reference", "id": things.item}]}
    reply = eve.post(CONVS, reference)
    assert (reply.status, WORD.encode() in reply.body) in ((400, False), (404, False)), reply.body
    own = eve.post(CONVS, {}).json["id"]
    assert eve.post(f"{CONVS}/{own}/items", reference).status in (400, 404)


def test_what_a_socket_remembers_is_its_own(keyed: Keyed) -> None:
    """Not stored, and continued on the same socket only: no other socket goes on from it, whoever it is."""
    ann, eve = keyed.person("ann"), keyed.person("eve")
    with (
        open_socket(keyed.server.url, headers=ann.headers) as hers,
        open_socket(keyed.server.url, headers=eve.headers) as other,
    ):
        made = hers.answer({"input": f"say {WORD}", "model": "demo/demo", "store": False})
        follow = {"input": "Go on.", "model": "demo/demo", "store": False, "previous_response_id": made["id"]}
        assert other.refused(follow)[1] == "previous_response_not_found"
        assert hers.answer(follow)["status"] == "completed"
        assert WORD not in json.dumps(other.seen)


def test_the_same_name_of_a_request_is_another_one_for_another_owner(keyed: Keyed) -> None:
    ann, eve = keyed.person("ann"), keyed.person("eve")
    body = {"input": f"say {WORD}", "model": "demo/demo"}
    named = {"idempotency-key": "the-same"}
    hers = ann.ask("POST", R, body, named).json
    other = eve.ask("POST", R, body, named)
    assert other.status == 200
    assert other.json["id"] != hers["id"]
    assert ann.ask("POST", R, body, named).json["id"] == hers["id"]


def test_what_was_sealed_for_one_owner_is_nothing_to_another(keyed: Keyed) -> None:
    """A compacted conversation is an item that its owner brings back; in other hands it says nothing."""
    ann, eve = keyed.person("ann"), keyed.person("eve")
    compacted = ann.post(f"{R}/compact", {"input": f"say {WORD}", "model": "demo/demo"}).json["output"]
    reply = eve.post(R, {"input": [*compacted[-1:], {"role": "user", "content": "Go on."}], "model": "demo/demo"})
    assert WORD.encode() not in reply.body


def make_things(keyed: Keyed, owner: Person, *, running: bool = True) -> Things:
    said = {"input": f"say {WORD}", "model": "demo/demo", "store": True}
    first = owner.post(R, said)
    response = first.json
    items = owner.get(f"{R}/{response['id']}/input_items").json["data"]
    background = owner.create({**said, "background": True})["id"]
    until(lambda: owner.get(f"{R}/{background}").json["status"] == "completed")
    slow = f"say {WORD} [[demo: slow 600]]"
    late = owner.create({**said, "input": slow, "background": True})["id"] if running else ""
    chat = owner.post(CHATS, {"messages": [{"role": "user", "content": WORD}], "model": "demo/demo", "store": True})
    conversation = owner.post(CONVS, {"items": [{"type": "message", "role": "user", "content": WORD}]}).json["id"]
    inside = owner.get(f"{CONVS}/{conversation}/items").json["data"]
    tracing = keyed.server.gateway.tracing
    assert tracing is not None
    keyed.server.do(tracing.settle())
    trace = first.headers["x-request-id"]
    made = response["output"][-1]["id"]
    assert items
    ids = (chat.json["id"], conversation, inside[0]["id"], trace)
    return Things(response["id"], made, background, late or "resp_none", *ids)


def all_that_is(owner: Person, things: Things) -> list[Any]:
    paths = [f"{R}/{things.response}", f"{R}/{things.response}/input_items", f"{R}/{things.background}", CHATS]
    paths += [f"{CHATS}/{things.chat}", f"{CONVS}/{things.conversation}", f"{CONVS}/{things.conversation}/items"]
    found = [owner.get(path).json for path in paths]
    assert WORD in json.dumps(found)
    assert owner.get(f"{R}/{things.running}").json["status"] in ("queued", "in_progress")
    return found


def test_a_page_shows_nobody_elses_requests(keyed: Keyed) -> None:
    ann, eve = keyed.person("ann"), keyed.person("eve")
    things = make_things(keyed, ann, running=False)
    for person, status in ((ann, 200), (eve, 404)):
        cookie = {"cookie": log_in(person), "accept": "text/html"}
        for path in (f"/ui/requests/{things.trace}", f"/ui/requests/{things.trace}/replay"):
            seen = person.ask("GET", path, None, cookie)
            assert seen.status == status, (path, seen.body[:300])
            assert (WORD.encode() in seen.body) is (person is ann and not path.endswith("replay")), path
        rows = person.ask("GET", "/ui/requests", None, cookie).body
        assert (things.trace.encode() in rows) is (person is ann)
        for path in ("/ui", "/ui/overview", "/ui/keys", "/ui/playground?from=" + things.trace):
            seen = person.ask("GET", path, None, cookie)
            assert seen.status == 200, path
            assert person is ann or WORD.encode() not in seen.body, path


def log_in(person: Person) -> str:
    form = {"content-type": "application/x-www-form-urlencoded", "origin": person.url, "authorization": ""}
    page = Talk(person.url).request("GET", "/ui/login", None, {"accept": "text/html"}).body.decode()
    token = re.search(r'name="token" value="([0-9a-f]+)"', page)
    assert token is not None
    body = urlencode({"token": token[1], "key": person.secret}).encode()
    reply = Talk(person.url).request("POST", "/ui/login", body, form)
    assert reply.status == 303, reply.body
    return reply.headers["set-cookie"].partition(";")[0]
