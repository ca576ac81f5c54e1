"""One server for all these tests: it takes a second to load, and answers one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from real.models.rig import Relay, Rig, gateway_config, running_server
from serving import GatewayThread, running_gateway_server


@pytest.fixture(scope="session")
def llama() -> Iterator[str]:
    """The address of a real llama.cpp server."""
    with running_server() as address:
        yield address


@pytest.fixture(scope="session")
def _house(llama: str) -> Iterator[Rig]:
    at = urlsplit(llama)
    relay = Relay((at.hostname or "", at.port or 0))
    try:
        with running_gateway_server(gateway_config(relay.url)) as gateway:
            yield Rig(gateway, relay, llama)
    finally:
        relay.close()


@pytest.fixture(scope="session")
def _unasked(_house: Rig) -> Iterator[GatewayThread]:
    with running_gateway_server(gateway_config(_house.relay.url, ask=False)) as gateway:
        yield gateway


@pytest.fixture
def unasked(_house: Rig, _unasked: GatewayThread) -> Rig:
    """The same behind a gateway that never asked the server about itself: it knows what the file says."""
    return Rig(_unasked, _house.relay, _house.server)


@pytest.fixture
def rig(_house: Rig) -> Rig:
    return Rig(_house.gateway, _house.relay, _house.server)
