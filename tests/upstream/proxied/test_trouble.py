"""The library's errors in words of ours: which code, and nothing of the address."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import ContentEncodingError, ContentLengthError, TransferEncodingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from isthmus.upstream.proxied.connections import Malformed
from isthmus.upstream.proxied.trouble import explain
from isthmus.upstream.trouble import Trouble

HIDDEN = "http://joe:hush@h/v1?key=hush"
INFO = aiohttp.RequestInfo(URL(HIDDEN), "POST", CIMultiDictProxy(CIMultiDict()), URL(HIDDEN))
KEY = ConnectionKey("h", 80, False, True, None, None, None)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "words of the library")
    error.reason = reason
    return error


HEADS: dict[str, tuple[Exception, Trouble]] = {
    "closed": (
        aiohttp.ServerDisconnectedError(HIDDEN),
        Trouble("cannot be reached: the server closed the connection", "upstream_unreachable"),
    ),
    "a proxy": (
        aiohttp.ClientHttpProxyError(INFO, (), status=407, message=HIDDEN),
        Trouble("cannot be reached: the proxy answered HTTP 407", "upstream_unreachable"),
    ),
    "an odd answer": (
        aiohttp.ClientResponseError(INFO, (), message=HIDDEN),
        Trouble("cannot be reached: its answer is not HTTP", "upstream_unreachable"),
    ),
    "no address": (
        aiohttp.InvalidURL(HIDDEN),
        Trouble("cannot be reached: its address is not one", "upstream_unreachable"),
    ),
    "reset while writing": (
        aiohttp.ClientOSError(errno.ECONNRESET, f"Can not write request body for {HIDDEN}"),
        Trouble("cannot be reached: Connection reset by peer", "upstream_unreachable"),
    ),
    "broken without a number": (
        aiohttp.ClientOSError(None, f"Can not write request body for {HIDDEN}"),
        Trouble("cannot be reached: the connection broke", "upstream_unreachable"),
    ),
    "nobody listens": (
        aiohttp.ClientConnectorError(KEY, ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('h', 80)")),
        Trouble("cannot be reached: Connection refused at `h:80`", "upstream_unreachable"),
    ),
    "nobody listens at any of its addresses": (
        aiohttp.ClientConnectorError(
            KEY, OSError(f"Multiple exceptions: [Errno {errno.ECONNREFUSED}] x, [Errno {errno.ECONNREFUSED}] y")
        ),
        Trouble("cannot be reached: Connection refused at `h:80`", "upstream_unreachable"),
    ),
    "no such name": (
        aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
        Trouble("cannot be reached: no address for `h` (Name or service not known)", "upstream_unreachable"),
    ),
    "a proxy that is not there": (
        aiohttp.ClientProxyConnectionError(KEY, ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed")),
        Trouble("cannot be reached: Connection refused at the proxy `h:80`", "upstream_unreachable"),
    ),
    "no TLS there": (
        aiohttp.ClientConnectorSSLError(KEY, tls_error("WRONG_VERSION_NUMBER")),
        Trouble("cannot be reached: TLS failed at `h:80` (wrong version number)", "upstream_unreachable"),
    ),
    "no words": (
        aiohttp.ClientConnectionError(),
        Trouble("cannot be reached: ClientConnectionError", "upstream_unreachable"),
    ),
    "HTTP's rules": (
        Malformed("the chunks of its answer are broken"),
        Trouble("breaks the rules of HTTP: the chunks of its answer are broken", "upstream_malformed"),
    ),
}


@pytest.mark.parametrize("case", HEADS)
def test_what_keeps_an_answer_from_beginning(case: str) -> None:
    error, told = HEADS[case]
    assert explain(error, begun=False) == told
    assert "hush" not in told.words


BODIES: dict[str, tuple[Exception, Trouble]] = {
    "too short": (
        caused(aiohttp.ClientPayloadError(HIDDEN), ContentLengthError("3 of 30")),
        Trouble(
            "broke off its answer: the connection closed before it was whole, as told by its `content-length`",
            "server_error",
        ),
    ),
    "no last chunk": (
        caused(aiohttp.ClientPayloadError(HIDDEN), TransferEncodingError("x")),
        Trouble("broke off its answer: the connection closed before it was whole", "server_error"),
    ),
    "not to be unpacked": (
        caused(aiohttp.ClientPayloadError(HIDDEN), ContentEncodingError("gzip")),
        Trouble(
            "breaks the rules of HTTP: its answer is compressed, and cannot be unpacked",
            "upstream_malformed",
        ),
    ),
    "reset": (
        aiohttp.ClientOSError(errno.ECONNRESET, "x"),
        Trouble("broke off its answer: Connection reset by peer", "server_error"),
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_what_ends_an_answer_before_its_end(case: str) -> None:
    error, told = BODIES[case]
    assert explain(error, begun=True) == told


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("begun", [False, True])
def test_no_descriptor_is_our_own_trouble(number: int, begun: bool) -> None:
    for error in (
        OSError(number, "Too many open files"),
        aiohttp.ClientConnectorError(KEY, OSError(number, "Too many open files")),
    ):
        told = explain(error, begun=begun)
        assert (told.code, "`ulimit -n`" in told.words) == ("upstream_busy", True)


def test_a_certificate_is_told_with_the_reason_and_the_setting() -> None:
    class Untrusted(Exception):
        verify_message = "self-signed certificate"

    certificate: Any = Untrusted("x")
    told = explain(aiohttp.ClientConnectorCertificateError(KEY, certificate), begun=False)
    assert told.words == (
        "cannot be reached: its TLS certificate is not trusted (self-signed certificate); see `verify_tls`"
    )
