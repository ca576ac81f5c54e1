"""Every route of the table, asked by everybody: without a key, with a wrong one, with somebody else's, a narrow one, an
operator's. Seeded, like the rest of the fuzzer.

What must hold: nothing of ours fails; who shows no key that opens a route is refused with the documented status; and no
word of what one owner has stored is ever told to another.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import quote, urlsplit

from bench.fuzz.case import Case
from bench.fuzz.grammar import make_body
from bench.fuzz.house import HANG, House, running_house

from isthmus.access.secret import digest_of, new_key, new_key_id
from isthmus.errors import FAILURES
from isthmus.ports.keys import Deed, Grant, StoredKey
from isthmus.server.routes import all_routes

MARKER: Final = "the-words-of-ann"
OPEN: Final = ("/health", "/api/hello")
PAGE: Final = "/ui"
NARROW: Final = "models"
"""The one endpoint that the narrow key opens."""
WHO: Final = ("nobody", "wrong", "config", "ann", "bob", "narrow", "operator")
QUERIES: Final = (
    *("", "?stream=true", "?limit=9999999", "?after=x&order=asc", "?limit=-1", "?order=%00", "?%ff=%fe"),
    "?q=" + "x" * 999,
)


@dataclass(slots=True)
class Town:
    """A house with keys, and something of Ann's in it."""

    house: House
    keys: dict[str, str]
    ids: list[str] = field(default_factory=list)
    """Of what Ann has stored."""
    routes: dict[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Swept:
    asked: int = 0
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    reached: set[tuple[str, str]] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)


@contextmanager
def running_town() -> Iterator[Town]:
    keys = {"config": "config-key", "operator": "operator-key", "wrong": "ik_" + "x" * 43, "nobody": ""}
    keys |= {name: new_key() for name in ("ann", "bob", "narrow")}
    with running_house(key=keys["config"], operator=keys["operator"], counts=False) as house:
        for name in ("ann", "bob", "narrow"):
            grant = Grant(endpoints=frozenset({NARROW})) if name == "narrow" else Grant()
            key = StoredKey(new_key_id(), name, digest_of(keys[name]), keys[name][:10], time.time(), name, grant)
            house.do(house.gateway.store.add_key(key, Deed(time.time(), "cli", "key.create", key.id)))
        parts = SimpleNamespace(vitals=None, meters=None, keys=None)
        town = Town(house, keys, routes=dict(all_routes(house.gateway, parts, parts)))  # type: ignore[arg-type]
        _until_known(town)
        _store_something(town)
        yield town


def sweep(town: Town, *, seed: int, rounds: int | None = None, seconds: float | None = None, enough: int = 10) -> Swept:
    """Each round asks every method of every route once, as everybody."""
    chance, swept = random.Random(seed), Swept()
    deadline = None if seconds is None else time.monotonic() + seconds
    while (rounds is None or rounds > 0) and len(swept.findings) < enough:
        rounds = None if rounds is None else rounds - 1
        for path, route in town.routes.items():
            for method in (*route, chance.choice(("PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"))):
                for who in WHO:
                    if deadline is not None and time.monotonic() > deadline:
                        return swept
                    _ask(town, swept, chance, path, route, method, who)
    return swept


def tell(swept: Swept) -> str:
    counted = ", ".join(f"{who} {status}: {count}" for (who, status), count in sorted(swept.statuses.items()))
    return "\n".join([f"{swept.asked:,} requests to {len(swept.reached)} routes; {counted}", *swept.findings])


def _ask(
    town: Town, swept: Swept, chance: random.Random, path: str, route: Mapping[str, Any], method: str, who: str
) -> None:
    target = _fill(path, town, chance)
    if (method, path) == ("GET", f"{PAGE}/live"):
        return  # a stream without an end
    body = _body(chance) if method in ("POST", "PUT", "PATCH") else None
    status, headers, answer = exchange(town.house, method, target, body, town.keys[who], chance)
    swept.asked += 1
    swept.statuses[who, status] += 1
    swept.reached.add((method, path))
    where = f"{who}: {method} {target[:120]} → {status} {answer[:200]!r}"
    swept.findings += [f"{problem}: {where}" for problem in judge(path, route, method, who, status, headers, answer)]


def judge(
    path: str, route: Mapping[str, Any], method: str, who: str, status: int, headers: Mapping[str, str], answer: bytes
) -> list[str]:
    found: list[str] = []
    if MARKER.encode() in answer and who not in ("ann", "operator"):
        found.append("somebody else's words were told")
    if status == 0:
        found.append("no answer")
    if status >= 500 and not _is_theirs(answer):
        found.append("a failure of ours")
    if method not in route:
        return found
    endpoint = getattr(route, "endpoint", None)
    is_page = path == "/" or path.startswith(PAGE)  # a browser is led to the login, and its assets are nobody's
    if who in ("nobody", "wrong") and path not in OPEN and not is_page and status != 401:
        found.append("it was let in without a key")
    inside = is_page and path != "/" and "static" not in path and not path.endswith("/login")
    if who in ("nobody", "wrong") and inside and status < 300:
        found.append("a page was shown without a key")
    closed = endpoint not in (None, NARROW, "open") and path not in OPEN and not is_page
    if who == "narrow" and closed and status not in (401, 403, 404):
        found.append("a narrow key opened it")
    return found


def exchange(
    house: House, method: str, target: str, body: bytes | None, key: str, chance: random.Random
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(house.url).netloc, timeout=HANG)
    shown = {} if not key else chance.choice([{"authorization": f"Bearer {key}"}, {"x-api-key": key}])
    try:
        connection.request(method, target, body, {"content-type": "application/json", **shown})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, {}, repr(error).encode()
    finally:
        connection.close()


def _is_theirs(answer: bytes) -> bool:
    """A provider's failure has its place; nothing else does."""
    try:
        error = json.loads(answer)["error"]
        return error["code"] in FAILURES and FAILURES[error["code"]].turn == "provider"
    except (ValueError, KeyError, TypeError):
        return False


def _fill(path: str, town: Town, chance: random.Random) -> str:
    """The path with ids in it: Ann's most of the time."""
    junk = ("x", "resp_none", "%00", "..", "a" * 300, "ü", "1' OR '1'='1", "{id}")

    def name(found: re.Match[str]) -> str:
        given = chance.choice(town.ids) if chance.random() < 0.7 else chance.choice(junk)
        return quote(given, safe="/" if ".+" in found[0] else "")

    return re.sub(r"\(\?P<\w+>[^)]*\)", name, path) + chance.choice(QUERIES)


def _body(chance: random.Random) -> bytes:
    if chance.random() < 0.2:
        return chance.choice((b"", b"{", b"[]", b"null", b'{"a":', b"\xff\xfe", b'{"input":1}', b"x" * 9_000))
    made = make_body(chance, chat=chance.random() < 0.4)
    made["model"] = "up/model"
    made.pop("stream", None)
    return json.dumps(made, default=str).encode("utf-8", "replace")


def _until_known(town: Town) -> None:
    """Keys of the store are known to the gateway within a second."""
    deadline, chance = time.monotonic() + HANG, random.Random(0)
    while exchange(town.house, "GET", "/v1/models", None, town.keys["narrow"], chance)[0] == 401:
        if time.monotonic() > deadline:
            raise TimeoutError("the keys of the store do not open anything")
        time.sleep(0.05)


def _store_something(town: Town) -> None:
    chance, house = random.Random(0), town.house
    said = {"choices": [{"message": {"role": "assistant", "content": f"you said {MARKER}"}, "finish_reason": "stop"}]}
    house.answer_with(Case(False, {}, (said,)))
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/v1/responses", {"input": MARKER, "metadata": {"said": MARKER}}),
        ("/v1/chat/completions", {"store": True, "messages": [{"role": "user", "content": MARKER}]}),
        ("/v1/conversations", {"metadata": {"said": MARKER}, "items": [{"role": "user", "content": MARKER}]}),
    ]
    for path, body in asked:
        raw = json.dumps({**({} if "conv" in path else {"model": "up/model"}), **body}).encode()
        status, headers, answer = exchange(house, "POST", path, raw, town.keys["ann"], chance)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer!r}")
        town.ids += [json.loads(answer)["id"], headers["x-request-id"]]
