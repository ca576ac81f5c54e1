"""What aiohttp raises, as `Trouble`.

In: its error, and whether an answer had begun. Out: a code and words of ours. Worth knowing: the library's own words
may hold the whole address, and the answer's headers; ours hold neither, as far as its errors are known.
"""

from __future__ import annotations

import os

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, ContentLengthError

from isthmus.upstream.proxied.connections import Malformed
from isthmus.upstream.trouble import (
    Trouble,
    broken_off,
    cut_short,
    malformed,
    no_connection,
    no_descriptor,
    unreachable,
    untrusted,
)


def explain(error: BaseException, *, begun: bool) -> Trouble:
    """`begun`: its answer had; then it can no longer be called out of reach."""
    if isinstance(error, Malformed):
        return malformed(str(error))
    if isinstance(error, aiohttp.ClientPayloadError) and isinstance(error.__cause__, ContentEncodingError):
        return malformed("its answer is compressed, and cannot be unpacked")
    if (ours := no_descriptor(error)) is not None:
        return ours
    if begun:
        return broken_off(_reason(error))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return unreachable(untrusted(error.certificate_error))
    if isinstance(error, aiohttp.ClientConnectorError):
        whom = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
        return no_connection(error.os_error, error.host, error.port, whom)
    return unreachable(_reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"  # the library's words may hold the answer's headers
    if isinstance(error, aiohttp.ClientPayloadError):  # in place of the HTTP library's inner words
        return cut_short(counted=isinstance(error.__cause__, ContentLengthError))
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered HTTP {error.status}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "its answer is not HTTP"  # the library's words hold the address, and that may hold a key or a password
    if isinstance(error, aiohttp.InvalidURL):
        return "its address is not one"
    if isinstance(error, aiohttp.ClientOSError):
        # A body that could not be written is told together with the whole address: the system's words are enough.
        return os.strerror(error.errno) if error.errno else "the connection broke"
    return str(error) or type(error).__name__
