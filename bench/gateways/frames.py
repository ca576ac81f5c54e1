"""As much of the WebSocket protocol as the load needs: text frames, whole, and masked with nothing."""

from __future__ import annotations

import struct
from typing import Final

HANDSHAKE: Final = (
    b"GET %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def frame(text: bytes) -> bytes:
    """A client's frame. Its mask is zero: the bytes stay as they are."""
    size = len(text)
    if size < 126:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    return head + b"\0\0\0\0" + text


def unframed(data: bytes | bytearray) -> tuple[list[bytes], bytes]:
    """The texts of a server's frames, and what is left of one that is not whole."""
    found, at = [], 0
    while len(data) - at >= 2:
        size, start = data[at + 1] & 0x7F, at + 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(data) < start + width:
                break
            size = int.from_bytes(data[start : start + width], "big")
            start += width
        if len(data) < start + size:
            break
        found.append(bytes(data[start : start + size]))
        at = start + size
    return found, bytes(data[at:])
