"""What went wrong on the wire: the library's error in, a code and words of ours out.

In: whatever aiohttp raised, and whether an answer had begun. Out: `Trouble`. Worth knowing: the library's own words
may hold the whole address, and the answer's headers; ours hold neither, as far as its errors are known.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, ContentLengthError

from isthmus.upstream.connections import Forbidden, Malformed

_NO_DESCRIPTOR: Final = (errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Words that follow a name: "provider `x` cannot be reached: …"."""

    words: str
    code: str


def explain(error: BaseException, *, begun: bool) -> Trouble:
    """`begun`: its answer had; then it can no longer be called out of reach."""
    fault = _fault(error)
    if fault is not None:
        return Trouble(f"breaks the rules of HTTP: {fault}", "upstream_malformed")
    if getattr(error, "errno", None) in _NO_DESCRIPTOR:
        words = "cannot be asked: this process has no file descriptor left; raise `ulimit -n`"
        return Trouble(words, "upstream_busy")  # ours to mend: nothing is held against the place
    if begun:
        return Trouble(f"broke off its answer: {_reason(error)}", "server_error")
    return Trouble(f"cannot be reached: {_reason(error)}", "upstream_unreachable")


def _fault(error: BaseException) -> str | None:
    if isinstance(error, Malformed):
        return str(error)
    if isinstance(error, aiohttp.ClientPayloadError) and isinstance(error.__cause__, ContentEncodingError):
        return "its answer is compressed, and cannot be unpacked"
    return None


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"  # the library's words may hold the answer's headers
    if isinstance(error, aiohttp.ClientPayloadError):  # in place of the HTTP library's inner words
        short = isinstance(error.__cause__, ContentLengthError)
        return f"the connection closed before it was whole{', as told by its `content-length`' if short else ''}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered HTTP {error.status}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "its answer is not HTTP"  # the library's words hold the address, and that may hold a key or a password
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "")
        return f"its TLS certificate is not trusted{f' ({why})' if why else ''}; see `verify_tls`"
    if isinstance(error, aiohttp.InvalidURL):
        return "its address is not one"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _no_connection(error)
    if isinstance(error, aiohttp.ClientOSError):
        # A body that could not be written is told together with the whole address: the system's words are enough.
        return os.strerror(error.errno) if error.errno else "the connection broke"
    return str(error) or type(error).__name__


def _no_connection(error: aiohttp.ClientConnectorError) -> str:
    """Which address, and why not, in place of the library's account of its own inside."""
    cause = error.os_error
    whom = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    if isinstance(cause, Forbidden):
        return cause.strerror or str(cause)  # our own words: which name leads where nobody may go
    if isinstance(cause, socket.gaierror):
        return f"no address for {whom}`{error.host}` ({_system_words(cause)})"
    place = f"[{error.host}]:{error.port}" if ":" in str(error.host) else f"{error.host}:{error.port}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed at {whom}`{place}` ({(cause.reason or 'no reason given').replace('_', ' ').lower()})"
    return f"{_system_words(cause)} at {whom}`{place}`"


def _system_words(error: OSError) -> str:
    """As the system says it; several tries that ended alike are told once."""
    numbers = dict.fromkeys([error.errno] if error.errno else map(int, _ERRNO.findall(str(error))))
    if isinstance(error, socket.gaierror) or not numbers:
        return error.strerror or str(error) or type(error).__name__
    return ", ".join(os.strerror(number) for number in numbers)


_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
