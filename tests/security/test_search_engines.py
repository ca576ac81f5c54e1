"""The way to a search engine: the operator alone says where it is, and nothing that it answers leads anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.ports.search import Query
from isthmus.providers.search import load_search, search_names
from isthmus.upstream.search.engine import Engine
from security.internet import PUBLIC, Internet, an_internet, redirect
from security.test_ways_out import PRIVATE

VENDORS: Final = tuple(name for name in search_names() if load_search(name).base_url)
KEY: Final = "the-key-of-the-operator-0123456789"


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Internet]:
    with an_internet(monkeypatch) as made:
        made.leads("searx.example", PUBLIC)
        yield made


async def refusal(name: str, url: str = "") -> str:
    made = Engine(name, load_search(name), url=url, key=KEY)
    try:
        with pytest.raises(UpstreamFailed) as failed:
            await made.ask(Query("otters"), 3)
    finally:
        await made.aclose()
    return failed.value.message


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("address", PRIVATE)
async def test_a_vendors_name_that_leads_into_a_private_place_is_not_called(
    name: str, address: str, internet: Internet
) -> None:
    """A name server that lies gets neither the question nor the key."""
    host = load_search(name).base_url.split("/")[2]
    internet.leads(host, address)
    await refusal(name)
    assert internet.looked_up == [host]
    assert internet.connected == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to", ["https://127.0.0.1/", "http://169.254.169.254/latest/meta-data", "https://elsewhere.example/", "/again"]
)
async def test_no_redirect_is_followed_wherever_it_leads(status: int, to: str, internet: Internet) -> None:
    internet.leads("elsewhere.example", PUBLIC)
    internet.answer = redirect(to, status)
    server = await internet.serve()
    async with server:
        assert f"HTTP {status}" in await refusal("searxng", "https://searx.example")
    assert internet.connected == [PUBLIC]
    assert len(internet.requests) == 1


async def test_an_address_that_the_operator_names_may_be_this_machine(internet: Internet) -> None:
    """A SearXNG of one's own stands there: it is tried."""
    await refusal("searxng", "http://127.0.0.1:8888")
    assert internet.connected == ["127.0.0.1"]
