"""Who may call, and as whom."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.types.plan import CODEX
from isthmus.errors import RequestRefused
from isthmus.server.callers import ADMIN, Keys

KEYS = Keys(["first", "second"], "chief")


def asking(path: str = "/v1/models", **headers: str) -> Any:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "path": path, "headers": named}


def test_without_keys_everybody_is_local() -> None:
    caller = Keys().identify(asking(authorization="Bearer whatever"))
    assert (caller.owner, caller.key, caller.scopes) == ("local", "", frozenset())


@pytest.mark.parametrize(
    "headers", [{"authorization": "Bearer second"}, {"authorization": "bearer  second "}, {"x_api_key": "second"}]
)
def test_a_known_key_is_local_too_and_has_a_name(headers: dict[str, str]) -> None:
    caller = KEYS.identify(asking(**headers))
    assert caller.owner == "local"
    assert len(caller.key) == 8
    assert "second" not in repr(caller)
    assert caller.key != KEYS.identify(asking(authorization="Bearer first")).key


def test_the_admin_key_opens_everything() -> None:
    assert KEYS.identify(asking(x_api_key="chief")).scopes == ADMIN


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_api_key"),
        ({"authorization": "Basic Zmlyc3Q6"}, "missing_api_key"),
        ({"authorization": "Bearer "}, "missing_api_key"),
        ({"authorization": "Bearer third"}, "invalid_api_key"),
        ({"x_api_key": "firs"}, "invalid_api_key"),
    ],
)
def test_anybody_else_is_refused(headers: dict[str, str], code: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        KEYS.identify(asking(**headers))
    assert (refused.value.code, refused.value.meaning.status) == (code, 401)


def test_the_keys_are_not_kept() -> None:
    assert "second" not in str(vars(KEYS))


def test_health_needs_no_key() -> None:
    assert KEYS.identify(asking("/health")).owner == "local"


def test_the_client_is_recognised_on_the_way() -> None:
    assert KEYS.identify(asking(x_api_key="first", originator="codex_cli_rs")).client is CODEX


def test_a_key_for_metrics_opens_these_and_nothing_else() -> None:
    keys = Keys(["first"], "chief", "watch")
    assert keys.identify(asking("/metrics", x_api_key="watch")).scopes == frozenset()
    assert keys.identify(asking("/metrics", x_api_key="chief")).scopes == ADMIN
    for path, key in (("/v1/models", "watch"), ("/metrics", "first")):
        with pytest.raises(RequestRefused) as refused:
            keys.identify(asking(path, x_api_key=key))
        assert refused.value.code == "invalid_api_key"
    assert "`metrics.key`" in refused.value.message


def test_without_such_a_key_the_operators_opens_metrics_and_else_any() -> None:
    assert Keys(["first"]).identify(asking("/metrics", x_api_key="first")).owner == "local"
    assert Keys().identify(asking("/metrics")).owner == "local"
    with pytest.raises(RequestRefused, match="no API key"):
        Keys(["first"]).identify(asking("/metrics"))
    with pytest.raises(RequestRefused, match="does not open `/metrics`"):
        Keys(["first"], "chief").identify(asking("/metrics", x_api_key="first"))


def test_metrics_may_have_a_key_where_nothing_else_has() -> None:
    keys = Keys(metrics="watch")
    assert keys.identify(asking("/v1/models")).owner == "local"
    with pytest.raises(RequestRefused, match="no API key"):
        keys.identify(asking("/metrics"))
