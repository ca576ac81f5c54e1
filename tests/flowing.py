"""Whole requests over real sockets: a client, the real server, a scripted upstream, as one object to talk to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from isthmus.testing import ScriptedUpstream, Step
from serving import GatewayThread, running_gateway_server
from talking import Talk
from waiting import until

Json = dict[str, Any]

FULL = "full/gpt-4o"
"""A model with native schemas, strict tools, images, every tool choice."""
DEEPSEEK = "deepseek/deepseek-v4-pro"
"""Knows `json_object` only, and thinks when asked to."""
PLAIN = "plain/some-model"
"""A server that is known to take nothing special: no formats, no images, no forced choice."""
ZHIPU = "zhipu/glm-5"
"""Searches the web itself."""
PROVIDERS = {"full": "openai", "deepseek": "deepseek", "plain": "openai-compatible", "zhipu": "zhipu"}
"""Provider names in the configuration, and the provider files they use."""


_PLAIN_FACTS = """
[providers.plain.models."*"]
tool_choice = { supported = ["auto"] }
response_formats = { supported = ["text"] }
parameters = { parallel_tool_calls = false }
messages = { input = [] }
"""


class Flow(Talk):
    """One test's view: it speaks to the gateway, scripts the upstream, and sees what that was sent."""

    def __init__(
        self, gateway: GatewayThread, upstream: ScriptedUpstream, database: Path | None, store_url: str = ""
    ) -> None:
        super().__init__(gateway.url)
        self.store_url = store_url or f"sqlite:{database}"
        self.server = gateway
        self.upstream = upstream
        self.database = database
        self._before = len(upstream.requests)

    def script(self, *steps: Step) -> None:
        self.upstream.push(*steps)

    @property
    def sent(self) -> list[Json]:
        """The bodies that the upstream got during this test."""
        return [request.json for request in self.upstream.requests[self._before :]]

    def wait_sent(self, count: int = 1) -> Any:
        """Block until the upstream got so many requests in this test, and give the last of them."""
        return self.upstream.wait_received(self._before + count)

    def stored_bytes(self) -> bytes:
        """Everything that is on disk, log included."""
        assert self.database is not None
        return b"".join(path.read_bytes() for path in sorted(self.database.parent.iterdir()) if path.suffix != ".key")

    def rows(self) -> dict[str, int]:
        """How many rows each table of the SQLite file has, read from the file itself; without the sums of usage, which
        are written a moment later."""
        assert self.database is not None
        with closing(sqlite3.connect(self.database)) as connection:
            query = "select name from sqlite_master where type = 'table' and name != 'uses'"
            names = [row[0] for row in connection.execute(query)]
            return {name: connection.execute(f'select count(*) from "{name}"').fetchone()[0] for name in names}

    def check(self) -> None:
        assert self.upstream.remaining == 0, f"{self.upstream.remaining} step(s) were never asked for"
        self.upstream.check()
        until(lambda: not len(self.server.gateway.runs), "a run is still going")


@contextmanager
def running_flow(
    folder: Path, *, store: str = "sqlite", extra: str = "", provider: str = "", keep: str = ""
) -> Iterator[Flow]:
    """A gateway with all `PROVIDERS` at one scripted upstream.

    `extra`: more sections; `provider`: more keys for each provider; `keep`: more keys for the store. Nothing is
    tried twice, so that a script says what the upstream is sent; `provider="retries = …"` changes that. However often
    it fails, it is asked: the tests before this one are no reason to leave it alone.
    """
    database = folder / "flow.db" if store == "sqlite" else None
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream.running())
        url = store_url(store, folder)
        once = "" if "retries" in provider else "retries = 0\n"
        once += "" if "breaker" in provider else "breaker = { failures = 0 }\n"
        providers = "".join(
            f"[providers.{name}]\nuses = {uses!r}\nbase_url = {upstream.base_url!r}\napi_key = 'sk-upstream-secret'\n"
            f"dialect = 'chat'\n{once}{provider}\n"
            for name, uses in PROVIDERS.items()
        )
        models = f'[models]\ndemo = false\ndefault = "{PLAIN}"\n[models.aliases]\n"gpt-alias" = "{DEEPSEEK}"\n'
        store_and_log = f'[store]\nurl = "{url}"\n{keep}\n[log]\nlevel = "error"\n'
        toml = f"{models}{providers}{_PLAIN_FACTS}{store_and_log}{_with_port(extra)}"
        gateway = stack.enter_context(running_gateway_server(toml))
        flow = Flow(gateway, upstream, database, url)
        yield flow
        flow.check()


def store_url(store: str, folder: Path) -> str:
    """Where a store of this kind keeps what belongs to a folder."""
    match store:
        case "sqlite":
            return f"sqlite:{folder / 'flow.db'}"
        case "postgres":
            from postgres import database_of  # not every flow needs a server

            return database_of(folder)
        case _:
            return "memory:"


def _with_port(extra: str) -> str:
    return extra.replace("[server]", "[server]\nport = 0") if "[server]" in extra else f"[server]\nport = 0\n{extra}"


@contextmanager
def lent(house: Flow) -> Iterator[Flow]:
    """A shared gateway for one test, which must leave nothing behind."""
    mine = Flow(house.server, house.upstream, house.database)
    try:
        yield mine
        mine.check()
    finally:
        house.upstream._script.clear()
        house.upstream.unexpected.clear()
        house.upstream.failures.clear()
