"""What a gateway says of its own parts; the rest is asked in `test_doctor_command` and `test_elsewhere`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.cli.doctor.gateways import ask_welcome, readiness
from isthmus.testing import ScriptedUpstream, error, reply

KEY = "ik-open-sesame-0123456789"


@pytest.mark.parametrize(
    ("step", "state", "words"),
    [
        (reply({"status": "ready", "store": "ok", "providers": {"a": "ok"}}), "ok", "it is ready"),
        (reply({"status": "degraded", "store": "ok", "providers": {"a": "down"}}), "warning", "providers.a: down"),
        (reply({"status": "not ready", "store": "locked"}, status=503), "problem", "not ready: store: locked"),
        (error(401, "no API key", code="missing_api_key"), "skipped", "only who shows a key"),
        (reply(b"<html>"), "warning", "tells nothing"),
    ],
)
def test_parts_that_are_in_trouble_are_named(step: Any, state: str, words: str) -> None:
    with ScriptedUpstream.running([step]) as gateway:
        found = asyncio.run(readiness(gateway.url, KEY, 5.0))
        assert gateway.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert found.state == state
    assert words in found.told


def test_a_gateway_that_shows_itself_only_to_keys_is_known_by_how_it_refuses() -> None:
    closed = error(401, "no API key", code="missing_api_key")
    routes = {"/": closed, "/health": reply({"status": "ok", "version": "1.2.3"})}
    with ScriptedUpstream.running(routes=routes) as gateway:
        assert asyncio.run(ask_welcome(gateway.url, KEY, 5.0)) == {"status": "ok", "version": "1.2.3"}
        assert "authorization" not in gateway.requests[-1].headers
    with ScriptedUpstream.running(routes={"/": reply({"name": "another"})}) as other:
        assert asyncio.run(ask_welcome(other.url, "", 5.0)) is None
