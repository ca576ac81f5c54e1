"""The house of `limited`, as a process of its own: with a log, and with signals.

with shared(tmp_path, stored_key("ann", ...), toml='[limits]…') as house: ...
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.ports.keys import Grant
from isthmus.ports.spending import NANO
from isthmus.testing import ScriptedUpstream, chat
from keyed import stored_key
from limited import TOKEN, bearer, house_toml, keep_keys
from serving import GatewayProcess, running_gateway_process
from talking import Reply, Talk
from waiting import until

BOSS = stored_key("boss", grant=Grant(admin=True))
"""Looks at all of it."""


@dataclass
class Shared:
    process: GatewayProcess
    upstream: ScriptedUpstream
    database: Path

    @property
    def talk(self) -> Talk:
        return Talk(self.process.url)

    def ask(self, name: str = "ann", **fields: Any) -> Reply:
        plain = {"input": "hi", "store": False, "max_output_tokens": 20}
        return self.talk.post("/v1/responses", {**plain, **fields}, bearer(name))

    def reload(self, toml: str) -> None:
        """Write the configuration, say so, and wait until it is in force."""
        log, words = self.process.log, "config.reloaded"
        before = log.read_text().count(words)
        (log.parent / "isthmus.toml").write_text(house_toml(self.upstream, self.database, toml))
        self.process.process.send_signal(signal.SIGHUP)
        until(lambda: log.read_text().count(words) > before, lambda: log.read_text())

    def refusals(self, kind: str) -> list[float]:
        """What `/metrics` says of them: each series once."""
        text = self.talk.request("GET", "/metrics", None, bearer("boss")).body.decode()
        found = re.findall(rf'^isthmus_limit_refusals_total{{kind="{kind}"}} (\S+)', text, re.MULTILINE)
        return [float(each) for each in found]

    def total(self) -> tuple[int, float]:
        """Requests, and what they cost in tokens' prices, as the operator is told."""
        total = self.talk.request("GET", "/v1/isthmus/usage", None, bearer("boss")).json["total"]
        return total["requests"], round(total["cost"] * NANO / TOKEN)


@contextmanager
def shared(folder: Path, *keys: Any, toml: str = "", log_level: str = "info") -> Iterator[Shared]:
    database = folder / "limited.db"
    keep_keys(database, BOSS, *keys)
    with (
        ScriptedUpstream.running(default=chat("Hello.")) as upstream,
        running_gateway_process(house_toml(upstream, database, toml), folder, log_level=log_level) as process,
    ):
        yield Shared(process, upstream, database)
