"""A connection to one of a name's addresses: looked up, opened, and wrapped in TLS where the address says so.

In: scheme, host and port. Out: a `Line`. Worth knowing: several addresses are tried one behind the other, and the next
one does not wait for all the patience that the one before may take; names are remembered for some seconds, so that a
crowd of new connections asks for a name once.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from isthmus.upstream.guard import Guard, family_of
from isthmus.upstream.lean.line import Line

_REMEMBERED: Final = 10.0
"""Seconds that a name leads where it led."""
_HEAD_START: Final = 0.25
"""Seconds that an address has before the next one is tried beside it (RFC 8305 recommends as much)."""
_contexts: Final[dict[bool, ssl.SSLContext]] = {}


class Dialer:
    def __init__(self, guard: Guard, *, verify_tls: bool) -> None:
        self._guard = guard
        self._verify = verify_tls
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def open(self, make: Callable[[], Line], scheme: str, host: str, port: int, patience: float) -> Line:
        """Raises what the system says. `patience`: seconds for TLS to be agreed upon."""
        found = await self._find(host, port)
        context = None if scheme == "http" else await self._context()
        try:
            connected = await connect_first(found, port)
        except OSError:
            self._known.pop((host, port), None)  # it may lead elsewhere by now
            raise
        loop = asyncio.get_running_loop()
        if context is None:
            _, line = await loop.create_connection(make, sock=connected)
        else:
            name = host.rstrip(".")
            _, line = await loop.create_connection(
                make, sock=connected, ssl=context, server_hostname=name, ssl_handshake_timeout=patience
            )
        return line

    async def _find(self, host: str, port: int) -> list[str]:
        place, now = (host, port), asyncio.get_running_loop().time()
        until, found = self._known.get(place, (0.0, []))
        if now < until:
            return found
        asking = self._asking.get(place)
        if asking is None:
            asking = self._asking[place] = asyncio.create_task(self._guard.find(host, port))
            asking.add_done_callback(lambda task: self._remember(place, task))
        return await asyncio.shield(asking)  # one who leaves does not take the answer from the others

    def _remember(self, place: tuple[str, int], task: asyncio.Task[list[str]]) -> None:
        now = asyncio.get_running_loop().time()
        del self._asking[place]
        self._known = {each: kept for each, kept in self._known.items() if now < kept[0]}
        if not task.cancelled() and task.exception() is None:
            self._known[place] = (now + _REMEMBERED, task.result())

    async def _context(self) -> ssl.SSLContext:
        """Made in a thread: it reads the certificates of everybody whom the system trusts."""
        if self._verify not in _contexts:
            made = await asyncio.get_running_loop().run_in_executor(None, make_context, self._verify)
            _contexts.setdefault(self._verify, made)
        return _contexts[self._verify]


def make_context(verify: bool) -> ssl.SSLContext:
    """Whom the system trusts is trusted, or whom `SSL_CERT_FILE` and `SSL_CERT_DIR` name."""
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


async def connect_first(addresses: Sequence[str], port: int) -> socket.socket:
    """A socket to the first of them that answers. The next one is tried when one has failed, or has had its start."""
    if len(addresses) == 1:
        return await _connect(addresses[0], port)
    left, trying, failures = _in_turn(addresses), set[asyncio.Task[socket.socket]](), list[BaseException]()
    try:
        while left or trying:
            if left:
                trying.add(asyncio.create_task(_connect(left.pop(0), port)))
            wait = _HEAD_START if left else None
            done, trying = await asyncio.wait(trying, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is None:
                    trying |= done - {task}
                    return task.result()
            failures += [error for task in done if (error := task.exception()) is not None]
    finally:
        for task in trying:
            task.cancel()
            task.add_done_callback(_close_late)
    raise _told_together(failures)


def _in_turn(addresses: Sequence[str]) -> list[str]:
    """The first kind of address, then the other, and so on: a network may know only one of them."""
    first = [each for each in addresses if family_of(each) == family_of(addresses[0])]
    other = [each for each in addresses if each not in first]
    mixed = [each for pair in zip(first, other, strict=False) for each in pair]
    return [*mixed, *first[len(other) :], *other[len(first) :]]


async def _connect(address: str, port: int) -> socket.socket:
    made = socket.socket(family_of(address) or socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


def _close_late(task: asyncio.Task[socket.socket]) -> None:
    """It lost, or came up in the moment in which it was called off."""
    with suppress(OSError, asyncio.CancelledError):
        task.result().close()


def _told_together(failures: Sequence[BaseException]) -> BaseException:
    numbers = {getattr(each, "errno", None) for each in failures}
    if len(numbers) == 1 or not failures:
        return failures[0] if failures else OSError("no address")
    return OSError(", ".join(f"[Errno {number}]" for number in sorted(filter(None, numbers))))
