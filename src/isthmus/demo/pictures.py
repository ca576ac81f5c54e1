"""Says what can be known of an image without looking: its type, its size, where it lies."""

from __future__ import annotations

import base64
import binascii
import struct
from urllib.parse import urlsplit


def describe_picture(url: str) -> str:
    if not url.startswith("data:"):
        return f"I see an image at {urlsplit(url).netloc or 'an address that I cannot read'}."
    head, _, data = url.removeprefix("data:").partition(",")
    kind = head.split(";")[0] or "an unknown type"
    size = len(data.rstrip("=")) * 3 // 4
    return f"I see an image of type {kind}, {size} bytes{_dimensions(data)}."


def _dimensions(data: str) -> str:
    """Width and height of a PNG or GIF, which stand at its start."""
    try:
        head = base64.b64decode(data[:64])
    except (binascii.Error, ValueError):
        return ""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
    elif head[:3] == b"GIF" and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
    else:
        return ""
    return f", {width} by {height} pixels"
