"""One place decides who carries requests: our own client, or aiohttp where a proxy is in the way."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.upstream.client import open_client
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.lean.client import LeanClient
from isthmus.upstream.proxied.client import ProxiedClient
from isthmus.upstream.wire import Wire


@pytest.mark.parametrize(("proxy", "chosen"), [(None, LeanClient), ("http://127.0.0.1:1", ProxiedClient)])
def test_only_a_proxy_needs_the_other_one(proxy: str | None, chosen: type[Any]) -> None:
    assert isinstance(open_client(Endpoint("mine", "https://h/v1"), {"": {}}, proxy), chosen)


def test_it_is_decided_once_by_where_the_environment_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert isinstance(Wire(Endpoint("mine", "https://h/v1"))._client, ProxiedClient)
    assert isinstance(Wire(Endpoint("mine", "https://h/v1", trust_env=False))._client, LeanClient)
    assert isinstance(Wire(Endpoint("mine", "http://h/v1"))._client, LeanClient)
