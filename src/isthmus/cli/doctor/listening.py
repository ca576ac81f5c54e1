"""The place where the gateway listens: free, a gateway's of ours, or somebody else's."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from isthmus import __version__
from isthmus.cli.doctor.finding import Finding
from isthmus.cli.doctor.gateways import ask_welcome, readiness
from isthmus.config.schema import Server
from isthmus.server.listen import public_url


async def look_at_port(server: Server, within: float, *, offline: bool) -> Sequence[Finding]:
    if server.unix_socket:
        return [_look_at_socket(server.unix_socket)]
    address = public_url(server)
    facts = {"host": server.host, "port": server.port, "address": address}
    trouble = _bind(server.host, server.port)
    if trouble is None:
        return [
            Finding("port", "ok", f"`{address}` is free: no gateway runs there now", "", {**facts, "used_by": None})
        ]
    if trouble != errno.EADDRINUSE:
        words = f"cannot listen on {server.host}:{server.port}: {os.strerror(trouble)}"
        return [Finding("port", "problem", words, "choose another `server.host` or `server.port`", facts)]
    if offline:
        return [Finding("port", "skipped", f"somebody listens at `{address}`; not asked who", "", facts)]
    key = next(iter([*server.api_keys, server.admin_key]), "")
    told = await ask_welcome(address, key, within)
    if told is None:
        words = f"`{address}` is taken, and not by an Isthmus"
        remedy = f"end that program, or take another port: `isthmus serve --port {server.port + 1}`"
        return [Finding("port", "problem", words, remedy, {**facts, "used_by": "another program"})]
    running = str(told.get("version"))
    other = running != __version__
    words = f"a gateway runs at `{address}` (Isthmus {running})"
    found = Finding(
        "port",
        "warning" if other else "ok",
        f"{words}, of another version than this command ({__version__})" if other else words,
        "end it and start it anew" if other else "",
        {**facts, "used_by": "isthmus", "version": running},
    )
    return [found, await readiness(address, key, within)]


def _bind(host: str, port: int) -> int | None:
    """Why nobody could listen there now; `None`: one could."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(1)
    except OSError as error:
        # A name that leads nowhere has a code of another kind.
        return error.errno if isinstance(error.errno, int) and error.errno > 0 else errno.EADDRNOTAVAIL
    return None


def _look_at_socket(setting: str) -> Finding:
    path = Path(setting).expanduser()
    facts = {"path": str(path)}
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        words = f"`{path}`: its folder is not there, or cannot be written to"
        return Finding("socket", "problem", words, f"make `{path.parent}` writable for this user", facts)
    if not path.exists():
        return Finding("socket", "ok", f"`{path}` is free: no gateway runs there now", "", facts)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            probe.connect(str(path))
    except OSError:
        words = f"`{path}` was left behind by a gateway that is gone; the next one takes it away"
        return Finding("socket", "ok", words, "", facts)
    return Finding("socket", "ok", f"somebody listens at `{path}`", "", facts)
