"""A gateway whose callers have keys, limits and budgets, before a provider with a price: a dollar for a million tokens,
so that each token is a thousand nano-dollars.

    with limited(tmp_path, stored_key("ann", grant=...), toml='[teams.t]…') as house: ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from isthmus.ports.keys import StoredKey
from isthmus.ports.spending import NANO, Use
from isthmus.store.open import open_store
from isthmus.testing import ScriptedUpstream, chat
from keyed import deed, secret_of
from serving import GatewayThread, running_gateway_server
from talking import Reply, Talk

TOKENS = 15
"""What an answer of the upstream uses: ten that were sent, five that it made."""
TOKEN = 1000
"""Nano-dollars."""


def dollars(tokens: float) -> float:
    return tokens * TOKEN / NANO


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret_of(name)}"}


@dataclass
class Limited:
    gateway: GatewayThread
    upstream: ScriptedUpstream
    talk: Talk

    def ask(self, name: str, body: Mapping[str, Any] = {}, path: str = "/v1/responses") -> Reply:
        """A request with somebody's key."""
        plain: dict[str, Any] = {"max_output_tokens": 20, "store": False}
        plain["input"] = "hi"
        return self.talk.post(path, {**plain, **body} if path == "/v1/responses" else body, bearer(name))

    def uses(self, **asked: Any) -> list[Use]:
        """What was noted, once all of it is written."""
        found: list[Use] = []

        async def look() -> None:
            admission: Any = self.gateway.gateway.gates.admission
            await admission.ledger.flush()
            day = datetime.now(UTC).strftime("%Y-%m-%d")
            found.extend(await self.gateway.gateway.store.uses(**{"since": "2026-01-01", "until": day, **asked}))

        self.gateway.do(look())
        return found

    def held(self, purse: str) -> int:
        found: list[int] = []

        async def look() -> None:
            found.append(await self.gateway.gateway.store.held(purse))

        self.gateway.do(look())
        return found[0]


def store_url(database: Path | str) -> str:
    """A file is named by its path."""
    return f"sqlite:{database}" if isinstance(database, Path) else database


def house_toml(upstream: ScriptedUpstream, database: Path | str, toml: str = "") -> str:
    return f"""
[models]
demo = false
default = "main/some-model"
refresh = 0
[store]
url = "{store_url(database)}"
[server]
port = 0
[log]
level = "error"
[providers.main]
uses = "openai-compatible"
base_url = "{upstream.base_url}"
retries = 0
[providers.main.models."*"]
cost = {{ input = 1.0, output = 1.0 }}
{toml}
"""


@contextmanager
def limited(folder: Path, *keys: StoredKey, toml: str = "", upstream: Any = None) -> Iterator[Limited]:
    database = folder / "limited.db"
    keep_keys(database, *keys)
    with (
        ScriptedUpstream.running(default=upstream or chat("Hello.")) as scripted,
        running_gateway_server(house_toml(scripted, database, toml)) as gateway,
    ):
        yield Limited(gateway, scripted, Talk(gateway.url))


def keep_keys(database: Path | str, *keys: StoredKey) -> None:
    async def keep() -> None:
        store = open_store(store_url(database))
        for key in keys:
            await store.add_key(key, deed())
        await store.aclose()

    asyncio.run(keep())
