"""Whether a server can be reached at all: a connection is opened and closed, nothing is sent, nothing is paid."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"https": 443, "wss": 443}


async def reach(url: str, patience: float) -> str | None:
    """What keeps us from connecting, in words without the address's secrets; `None`: nothing."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 80)
    where = f"{parts.hostname}:{port}"
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except TimeoutError:
        return f"cannot be reached: no connection to {where} within {patience:g} s"
    except OSError as error:
        return f"cannot be reached: {where}: {error.strerror or type(error).__name__}"
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return None
