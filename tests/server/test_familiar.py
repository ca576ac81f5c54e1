"""What is remembered of clients: never what they may do."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.types.clients import ANY_CLIENT, CODEX
from isthmus.config.schema import Server
from isthmus.errors import RequestRefused
from isthmus.server.callers import Keys
from isthmus.server.cors import VARY
from isthmus.server.familiar import LONGEST, MOST, Familiar
from isthmus.server.options import ServerOptions


def asking(*more: tuple[str, str], path: str = "/v1/responses", host: str = "localhost", version: str = "1.1") -> Any:
    headers = [(b"host", host.encode()), *((name.encode(), value.encode()) for name, value in more)]
    return {"path": path, "headers": headers, "http_version": version}


def test_a_foreign_page_is_refused_however_often_it_asks() -> None:
    familiar = Familiar(ServerOptions(local_only=True))
    for _ in range(3):
        with pytest.raises(RequestRefused, match="may not call"):
            familiar.page(asking(("origin", "https://evil.example")))
        assert familiar.page(asking()) == [VARY]


def test_a_host_that_is_named_twice_is_refused_although_it_is_known_alone() -> None:
    familiar = Familiar(ServerOptions(local_only=True))
    familiar.page(asking())
    with pytest.raises(RequestRefused, match="2 `Host`"):
        familiar.page(asking(("host", "localhost")))


def test_a_page_that_is_known_is_told_its_own_name() -> None:
    familiar = Familiar(ServerOptions(local_only=True, allow_origins=frozenset({"https://a.example"})))
    for origin in ("https://a.example", "http://localhost:3000") * 2:
        assert (b"access-control-allow-origin", origin.encode()) in familiar.page(asking(("origin", origin)))


def test_the_client_is_remembered_and_the_key_is_looked_at_every_time() -> None:
    familiar = Familiar(ServerOptions(keys=Keys(["one"])))
    codex, key = ("originator", "codex_cli_rs"), ("x-api-key", "one")
    for _ in range(2):
        assert familiar.caller(asking(codex, key)).client is CODEX
        assert familiar.caller(asking(key)).client is ANY_CLIENT
        with pytest.raises(RequestRefused, match="no API key"):
            familiar.caller(asking(codex))
        with pytest.raises(RequestRefused, match="not known"):
            familiar.caller(asking(codex, ("x-api-key", "two")))


@pytest.mark.parametrize("name", ["isthmus-compat", "isthmus-thinking"])
def test_a_wish_that_cannot_be_read_is_refused_every_time(name: str) -> None:
    familiar = Familiar(ServerOptions())
    for _ in range(2):
        with pytest.raises(RequestRefused, match="must be"):
            familiar.caller(asking((name, "klingon")))


def test_wishes_of_one_request_are_not_those_of_the_next() -> None:
    familiar = Familiar(ServerOptions(server=Server(compat="openai")))
    for _ in range(2):
        assert familiar.caller(asking(("isthmus-compat", "open-responses"))).client.specified
        assert not familiar.caller(asking()).client.specified


def test_so_many_are_remembered_and_no_long_ones() -> None:
    familiar = Familiar(ServerOptions())
    for number in range(MOST + 10):
        familiar.caller(asking(("user-agent", f"agent/{number}")))
        familiar.page(asking(host=f"host-{number}"))
    familiar.caller(asking(("user-agent", "x" * (LONGEST + 1))))
    assert (len(familiar._clients), len(familiar._pages)) == (MOST, MOST)
    assert not any(key[1] and len(key[1]) > LONGEST for key in familiar._clients)
