"""What the system says of a connection, in words of ours: which code, and nothing of the address but its place."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from isthmus.upstream.guard import Forbidden
from isthmus.upstream.trouble import Trouble, cut_short, no_connection, no_descriptor


def tls_error(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "words of the library")
    if reason is not None:
        error.reason = reason
    return error


class Untrusted(ssl.SSLCertVerificationError):
    verify_message = "self-signed certificate"


CASES: dict[str, tuple[OSError, str]] = {
    "nobody listens": (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "Connection refused at `h:80`"),
    "several tries, alike": (OSError("[Errno 111] x, [Errno 111] y"), "Connection refused at `h:80`"),
    "several tries": (OSError("[Errno 111], [Errno 113]"), "Connection refused, No route to host at `h:80`"),
    "no name": (socket.gaierror(socket.EAI_NONAME, "Name not known"), "no address for `h` (Name not known)"),
    "no TLS there": (tls_error("WRONG_VERSION_NUMBER"), "TLS failed at `h:80` (wrong version number)"),
    "no reason": (tls_error(None), "TLS failed at `h:80` (no reason given)"),
    "forbidden": (Forbidden(errno.EACCES, "`h` may not be called"), "`h` may not be called"),
    "not trusted": (
        Untrusted(1, "x"),
        "its TLS certificate is not trusted (self-signed certificate); see `verify_tls`",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_keeps_a_connection_from_being_there(case: str) -> None:
    error, why = CASES[case]
    assert no_connection(error, "h", 80) == Trouble(f"cannot be reached: {why}", "upstream_unreachable")


def test_an_ipv6_address_stands_in_brackets_and_a_proxy_is_called_so() -> None:
    told = no_connection(ConnectionRefusedError(errno.ECONNREFUSED, "x"), "::1", 80, "the proxy ")
    assert told.words == "cannot be reached: Connection refused at the proxy `[::1]:80`"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_no_descriptor_is_our_own_trouble(number: int) -> None:
    told = no_connection(OSError(number, "Too many open files"), "h", 80)
    assert (told.code, "`ulimit -n`" in told.words) == ("upstream_busy", True)
    assert no_descriptor(OSError(errno.EPIPE, "x")) is None


def test_a_length_that_was_told_is_named() -> None:
    assert cut_short(counted=True) == f"{cut_short(counted=False)}, as told by its `content-length`"


def test_troubles_are_alike_by_what_they_say() -> None:
    assert Trouble("a", "b") == Trouble("a", "b") != Trouble("a", "c")
    assert Trouble("a", "b") != "a"
