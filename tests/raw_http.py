"""Bytes to a gateway and what comes back, until it closes: for what no HTTP library would send."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60.0


@dataclass(frozen=True)
class RawAnswer:
    status: int
    """0: it closed without a word."""
    headers: Mapping[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = json.loads(self.body)["error"]
        return error


def connect(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), timeout=PATIENCE)


def send_raw(url: str, *pieces: bytes) -> RawAnswer:
    """Send these, and read to the end. What the other side no longer takes is not sent."""
    with connect(url) as connection:
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
        return read_to_end(connection)


def read_to_end(connection: socket.socket) -> RawAnswer:
    told = b""
    with suppress(ConnectionError):  # a reset behind the answer is an end too
        while came := connection.recv(65536):
            told += came
    return parse(told)


def parse(told: bytes) -> RawAnswer:
    """The first answer in these bytes."""
    if not told:
        return RawAnswer(0, {}, b"")
    head, _, body = told.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    return RawAnswer(int(line.split()[1]), headers, body)
