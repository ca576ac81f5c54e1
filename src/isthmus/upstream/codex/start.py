"""Starts the Codex process that serves a provider, and learns what its threads need to know.

In: options. Out: a running process that is logged in, and the thread settings that make it only a model. A
process that has no login counts as one that failed to start: it is tried again now and then, because a
running one does not notice a later `codex login`.
"""

from __future__ import annotations

import logging
import os
import shlex
from pathlib import Path
from typing import Final

from isthmus.errors import CredentialsRefused
from isthmus.log import tell
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.catalog import with_plain_catalog
from isthmus.upstream.codex.failures import RpcRefused
from isthmus.upstream.codex.options import CodexOptions, find_binary
from isthmus.upstream.codex.process import CodexProcess, Listener, start_process

log = logging.getLogger("isthmus.codex")

_GLOBAL_DOCS: Final = ("AGENTS.override.md", "AGENTS.md")


class Starter:
    """Start after start with the same options; `thread_config` belongs to the process that runs now."""

    def __init__(self, provider: str, options: CodexOptions, listener: Listener, *, folder: Path) -> None:
        self.thread_config: JsonObject = {}
        self._provider = provider
        self._options = options
        self._listener = listener
        self._folder = folder
        """Where the plain model catalog is written."""

    async def start(self) -> CodexProcess:
        options = self._options
        if not options.own_tools:
            options = await with_plain_catalog(options, self._folder / "models.json")
        process = await start_process(options, self._listener)
        try:
            await self._check_login(process)
            self.thread_config = {} if options.own_tools else await self._read_thread_config(process)
        except BaseException:
            await process.close()
            raise
        tell(log, "info", "codex.started", provider=self._provider, pid=process.pid, agent=process.user_agent)
        return process

    async def _check_login(self, process: CodexProcess) -> None:
        account = await _ask(process, "account/read")
        if account.get("requiresOpenaiAuth") and account.get("account") is None:
            home = f"CODEX_HOME={shlex.quote(str(self._options.home))} " if self._options.home else ""
            program = shlex.quote(str(find_binary(self._options.binary)))
            raise CredentialsRefused(
                f"codex is not logged in; run `{home}{program} login` as the user that runs the gateway, and try again",
                status=401,
                metadata={"provider": self._provider},
            )

    async def _read_thread_config(self, process: CodexProcess) -> JsonObject:
        """MCP servers of the user's own Codex would add their tools to every conversation."""
        settings = (await _ask(process, "config/read")).get("config") or {}
        self._warn_of_documents()
        servers = settings.get("mcp_servers") or {}
        return {"mcp_servers": {name: {"enabled": False} for name in servers}} if servers else {}

    def _warn_of_documents(self) -> None:
        """There is no setting against these: Codex puts them before every conversation."""
        home = self._options.home or Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        for name in _GLOBAL_DOCS:
            if (home / name).is_file():
                tell(
                    log,
                    "warning",
                    "codex.document",
                    path=home / name,
                    hint="every conversation sees it; use own `home`",
                )


async def _ask(process: CodexProcess, method: str) -> JsonObject:
    """A question that older binaries may not know: then nothing is known."""
    try:
        return await process.request(method, {})
    except RpcRefused as refusal:
        if refusal.unknown_method:
            return {}
        raise
