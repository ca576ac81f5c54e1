"""Bytes in the encodings that clients use."""

from __future__ import annotations

import gzip
import sys
import zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def packed(encoding: str, data: bytes) -> bytes:
    match encoding:
        case "gzip":
            return gzip.compress(data)
        case "deflate":
            return zlib.compress(data)
        case "zstd":
            return zstd.compress(data)
        case _:
            return data
