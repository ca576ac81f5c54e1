"""A gateway whose clients show keys, made by its operator over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from serving import GatewayThread, running_gateway_server
from talking import Reply, Talk

CHIEF = "chief-key-0123456789"
TOML = """
[server]
port = 0
admin_key = "{chief}"
{server}
[models]
demo = true
{models}
[store]
url = "{store}"
[trace]
capture = "{trace}"
{extra}
"""


@dataclass
class Person:
    """Asks with one key."""

    url: str
    secret: str
    header: str = "authorization"
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        return {self.header: f"Bearer {self.secret}" if self.header == "authorization" else self.secret}

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        return Talk(self.url).request(method, path, body, {**self.headers, **(headers or {})})

    def get(self, path: str) -> Reply:
        return self.ask("GET", path)

    def post(self, path: str, body: Any = None) -> Reply:
        return self.ask("POST", path, body)

    def create(self, body: Any) -> dict[str, Any]:
        reply = self.post("/v1/responses", body)
        assert reply.status == 200, reply.body
        made: dict[str, Any] = reply.json
        return made

    def code(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Status and code of a refusal."""
        reply = self.ask(method, path, body)
        error = reply.json.get("error", {})
        return reply.status, str(error.get("code", ""))


@dataclass
class Keyed:
    server: GatewayThread

    @property
    def chief(self) -> Person:
        return Person(self.server.url, CHIEF)

    def person(self, name: str, header: str = "authorization", **fields: Any) -> Person:
        reply = self.chief.post("/v1/isthmus/keys", {"name": name, **fields})
        assert reply.status == 200, reply.body
        facts = reply.json
        return Person(self.server.url, facts.pop("key"), header, facts)


@contextmanager
def keyed_gateway(
    store: str = "memory:", *, server: str = "", models: str = "", trace: str = "full", extra: str = ""
) -> Iterator[Keyed]:
    toml = TOML.format(chief=CHIEF, store=store, server=server, models=models, trace=trace, extra=extra)
    with running_gateway_server(toml) as running:
        yield Keyed(running)
