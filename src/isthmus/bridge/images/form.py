"""A form with files in it (`multipart/form-data`), as SDKs send images: bytes in, its parts out, or a 400.

The body is here as a whole, so it is cut at its boundary and nothing is copied but the parts themselves. Written the
other way round, too: an images endpoint takes what it is to change as such a form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from isthmus.errors import REQUEST_TOO_LARGE, RequestRefused

FORM: Final = "multipart/form-data"
MAX_PARTS: Final = 100
_MAX_HEAD: Final = 4096
_PARAMETER: Final = re.compile(r';\s*([!#$%&\'*+.^_`|~A-Za-z0-9-]+)=(?:"((?:\\.|[^"\\])*)"|([^\s;]*))')


class Part(msgspec.Struct, frozen=True):
    name: str
    data: bytes
    kind: str = ""
    """Its media type; empty: a plain text."""
    filename: str = ""


def is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == FORM


def read_form(raw: bytes | bytearray, content_type: str) -> list[Part]:
    """Raises `RequestRefused` for what is no such form."""
    boundary = _parameters(content_type).get("boundary", "")
    if not boundary or len(boundary) > 70 or not boundary.isascii():
        raise _broken("its `Content-Type` names no boundary")
    return list(_cut(raw, b"--" + boundary.encode()))


def write_form(parts: Sequence[Part]) -> tuple[str, bytes]:
    """The content type, and the body. The boundary is made of what it separates, so it stands nowhere inside."""
    digest = sha256()
    for part in parts:
        digest.update(part.data)
    boundary = f"isthmus-{digest.hexdigest()[:40]}"
    pieces: list[bytes] = []
    for part in parts:
        about = f'form-data; name="{_quoted(part.name)}"'
        if part.filename:
            about += f'; filename="{_quoted(part.filename)}"'
        kind = f"content-type: {part.kind}\r\n" if part.kind else ""
        pieces += [f"--{boundary}\r\ncontent-disposition: {about}\r\n{kind}\r\n".encode(), part.data, b"\r\n"]
    return f"{FORM}; boundary={boundary}", b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _cut(raw: bytes | bytearray, line: bytes) -> Iterator[Part]:
    at = 0 if raw.startswith(line) else raw.find(b"\r\n" + line) + 2
    if at == 1:
        raise _broken("its boundary does not stand in it")
    count = 0
    while True:
        at += len(line)
        if raw[at : at + 2] == b"--":
            return
        start = raw.find(b"\r\n", at, at + 64) + 2
        head_end = raw.find(b"\r\n\r\n", start - 2, start + _MAX_HEAD)
        end = raw.find(b"\r\n" + line, head_end)
        if start == 1 or head_end < 0 or end < 0:
            raise _broken("a part of it has no head, or no end")
        count += 1
        if count > MAX_PARTS:
            words = f"the form has more than {MAX_PARTS} parts; send fewer"
            raise RequestRefused(words, code=REQUEST_TOO_LARGE)
        yield _part(bytes(raw[start:head_end]), bytes(raw[head_end + 4 : end]))
        at = end + 2


def _part(head: bytes, data: bytes) -> Part:
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    about = _parameters(headers.get("content-disposition", ""))
    if "name" not in about:
        raise _broken("a part of it has no name")
    # `image[]` and `image[0]` are how SDKs spell a list.
    name = re.sub(r"\[\d*\]$", "", about["name"])
    return Part(name, data, headers.get("content-type", ""), about.get("filename", ""))


def _parameters(value: str) -> dict[str, str]:
    found = _PARAMETER.finditer(value)
    return {each[1].lower(): re.sub(r"\\(.)", r"\1", each[2]) if each[2] is not None else each[3] for each in found}


def _quoted(text: str) -> str:
    return re.sub(r'[\r\n"\\]', "_", text)


def _broken(why: str) -> RequestRefused:
    return RequestRefused(f"the request body is no form, as its `Content-Type` says: {why}", code="invalid_body")
