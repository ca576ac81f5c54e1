"""The way to an MCP server: the SDK's HTTP client, made to send over our own wire.

In: a `Wire` to the server. Out: a transport for `httpx2`. Worth knowing: the wire looks at where a name leads and
connects to that very address; the SDK follows a redirect only within the server's own origin. Whatever goes wrong with
a request, on the way or by HTTP, reaches the SDK as an error of JSON-RPC that says so in its data (`MARK`): the SDK
itself would not tell a 401 from a 500, and one request that breaks would end the whole connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httpx2
import msgspec

from isthmus.errors import UpstreamFailed
from isthmus.upstream.mcp.results import MARK
from isthmus.upstream.wire import Incoming, Wire

_NO_METHOD, _INVALID, _INTERNAL, _CLOSED = -32601, -32600, -32603, -32000
"""What the SDK makes of the same (mcp 2.3.0, 2026-11-17): by the first it knows a server of the older kind."""
_READ: Final = frozenset({"content-type", "mcp-session-id", "location"})
"""Headers that the SDK reads. Of the others some are not true any more, such as how the body was packed."""
_WRITTEN: Final = frozenset({"host", "connection", "content-length", "accept-encoding", "user-agent"})
"""Headers that the wire writes itself."""
_MAX_ERROR: Final = 65_536


class Broken(httpx2.SSEError, httpx2.StreamError):
    """A body that ends too early or never: the SDK looks for the first kind in streams, for the second elsewhere."""


class OverWire(httpx2.AsyncBaseTransport):
    def __init__(self, wire: Wire, most: int) -> None:
        """`most`: bytes of one answer."""
        self._wire = wire
        self._most = most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        headers = {name: value for name, value in request.headers.items() if name not in _WRITTEN}
        try:
            incoming = await self._wire.send(body or None, method=request.method, url=str(request.url), headers=headers)
        except UpstreamFailed as failure:
            if request.method != "POST":
                raise httpx2.TransportError(failure.message) from None
            return _refused(request, 502, {"unreachable": failure.message}, failure.message, _CLOSED)
        if incoming.status >= 400 and request.method == "POST":
            return await self._tell_refusal(request, incoming)
        kept = {name: value for name, value in incoming.headers.items() if name.lower() in _READ}
        return httpx2.Response(incoming.status, headers=kept, stream=_Body(incoming, self._most))

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _tell_refusal(self, request: httpx2.Request, incoming: Incoming) -> httpx2.Response:
        try:
            said = await incoming.beginning(_MAX_ERROR)
        finally:
            incoming.close()
        own = _json_rpc_error(said)
        if own is not None:  # a server may well say in JSON-RPC what is wrong; that is no matter of HTTP
            return _answer(request, incoming.status, own)
        status, code = incoming.status, _INTERNAL
        if status == 404:
            code = _INVALID if "mcp-session-id" in request.headers else _NO_METHOD
        return _refused(request, status, {"status": status}, f"the server answered HTTP {status}", code)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, incoming: Incoming, most: int) -> None:
        self._incoming = incoming
        self._most = most
        self._broken = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            while piece := await self._incoming.read():
                size += len(piece)
                if size > self._most:
                    self._broken = True
                    raise Broken(f"its answer is longer than {self._most} bytes (`max_reply`)")
                yield piece
        except UpstreamFailed as failure:
            self._broken, words = True, failure.message
        else:
            return
        raise Broken(words)

    async def aclose(self) -> None:
        try:
            if not self._broken:
                await self._incoming.let_end()
        finally:
            self._incoming.close()


def _json_rpc_error(said: bytes) -> Mapping[str, Any] | None:
    try:
        value = msgspec.json.decode(said)
    except msgspec.DecodeError:
        return None
    error = value.get("error") if isinstance(value, dict) else None
    if (
        not isinstance(error, dict)
        or not isinstance(error.get("code"), int)
        or not isinstance(error.get("message"), str)
    ):
        return None
    return {name: error[name] for name in ("code", "message", "data") if name in error}


def _refused(request: httpx2.Request, status: int, known: Mapping[str, Any], words: str, code: int) -> httpx2.Response:
    return _answer(request, status, {"code": code, "message": words, "data": {MARK: known}})


def _answer(request: httpx2.Request, status: int, error: Mapping[str, Any]) -> httpx2.Response:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 0, "error": error})  # the SDK puts its own id there
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=body, request=request)
