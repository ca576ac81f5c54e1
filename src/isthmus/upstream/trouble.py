"""What went wrong on the wire, in words of ours and with a code: whichever client it happened to.

The words follow a name ("provider `x` cannot be reached: …") and hold neither the address nor anything of an answer.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from typing import Final

from isthmus.upstream.guard import Forbidden

_NO_DESCRIPTOR: Final = (errno.EMFILE, errno.ENFILE)


class Trouble(Exception):
    """A request, or its answer, that ended before its end."""

    def __init__(self, words: str, code: str) -> None:
        super().__init__(words)
        self.words = words
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trouble) and (self.words, self.code) == (other.words, other.code)

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up


class Stale(Exception):
    """Nothing came of an answer, on a connection that had served before: it was dead, and may be replaced."""


def malformed(fault: str) -> Trouble:
    return Trouble(f"breaks the rules of HTTP: {fault}", "upstream_malformed")


def unreachable(why: str) -> Trouble:
    return Trouble(f"cannot be reached: {why}", "upstream_unreachable")


def broken_off(why: str) -> Trouble:
    """Its answer had begun: it can no longer be called out of reach."""
    return Trouble(f"broke off its answer: {why}", "server_error")


def no_connection(cause: OSError, host: str | None, port: int | None, whom: str = "") -> Trouble:
    """Which address, and why not. `whom`: "the proxy ", where it is not the server itself."""
    if (ours := no_descriptor(cause)) is not None:
        return ours
    if isinstance(cause, Forbidden):
        return unreachable(cause.strerror or str(cause))  # our own words: which name leads where nobody may go
    if isinstance(cause, socket.gaierror):
        return unreachable(f"no address for {whom}`{host}` ({system_words(cause)})")
    if isinstance(cause, ssl.CertificateError):
        return unreachable(untrusted(cause))
    place = f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    if isinstance(cause, ssl.SSLError):
        return unreachable(f"TLS failed at {whom}`{place}` ({tls_reason(cause)})")
    return unreachable(f"{system_words(cause)} at {whom}`{place}`")


def no_descriptor(error: BaseException) -> Trouble | None:
    """Ours to mend: nothing is held against the place."""
    if getattr(error, "errno", None) not in _NO_DESCRIPTOR:
        return None
    words = "cannot be asked: this process has no file descriptor left; raise `ulimit -n`"
    return Trouble(words, "upstream_busy")


def untrusted(error: BaseException) -> str:
    why = getattr(error, "verify_message", "")
    return f"its TLS certificate is not trusted{f' ({why})' if why else ''}; see `verify_tls`"


def tls_reason(error: ssl.SSLError) -> str:
    return (getattr(error, "reason", None) or "no reason given").replace("_", " ").lower()


def cut_short(*, counted: bool) -> str:
    """`counted`: its length had been told."""
    return f"the connection closed before it was whole{', as told by its `content-length`' if counted else ''}"


def system_words(error: OSError) -> str:
    """As the system says it; several tries that ended alike are told once."""
    numbers = dict.fromkeys([error.errno] if error.errno else map(int, _ERRNO.findall(str(error))))
    if isinstance(error, socket.gaierror) or not numbers:
        return error.strerror or str(error) or type(error).__name__
    return ", ".join(os.strerror(number) for number in numbers)


_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
