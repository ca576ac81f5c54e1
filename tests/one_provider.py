"""A gateway with one provider, `main`, from a configuration to a scripted upstream's socket.

with one_provider(upstream, 'api_keys = ["k1", "k2"]') as (talk, gateway): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from isthmus.testing import ScriptedUpstream
from own_time import turns
from serving import GatewayThread, running_gateway_server
from talking import Talk

HELLO: dict[str, Any] = {"input": "hi"}
MODEL = "main/some-model"


@contextmanager
def one_provider(
    upstream: ScriptedUpstream | str,
    settings: str = "",
    *,
    log: str = "error",
    uses: str = "openai-compatible",
    server: str = "",
) -> Iterator[tuple[Talk, GatewayThread]]:
    """`settings`: what `[providers.main]` says beside its address; sub-tables last. `server`: likewise `[server]`."""
    address = upstream if isinstance(upstream, str) else upstream.base_url
    toml = f"""
[models]
demo = false
default = "{MODEL}"
[store]
url = "memory:"
[server]
port = 0
{server}
[log]
level = "{log}"
[providers.main]
uses = "{uses}"
base_url = "{address}"
{settings}
"""
    with running_gateway_server(toml) as gateway:
        yield Talk(gateway.url), gateway


def keys(upstream: ScriptedUpstream) -> list[str]:
    """The keys that the upstream was shown, in order."""
    return [request.headers["authorization"].removeprefix("Bearer ") for request in upstream.requests]


def say(talk: Talk, body: Mapping[str, Any] = HELLO) -> str:
    """The answer's text."""
    response = talk.post("/v1/responses", body).json
    assert response.get("status") == "completed", response
    return str(response["output_text"])


def settle(gateway: GatewayThread) -> None:
    """Let everything happen that can happen without time and without the network."""
    gateway.do(turns())
