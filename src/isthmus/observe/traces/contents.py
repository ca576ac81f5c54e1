"""What of a request's content is kept: nothing, or all of it within a limit, without credentials.

In: bodies. Out: the same as JSON beside their hashes. Credentials of MCP servers go as everywhere; the secrets that we
know, and the patterns that the operator names, are taken out of the whole trace later (`cleaning`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.bridge.tools.credentials import showable_body
from isthmus.observe.traces.draft import Draft
from isthmus.ports.traced import TracedBody

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class _Wish(msgspec.Struct):
    store: Any = None


def may_keep(draft: Draft, *, unstored: bool) -> bool:
    """Whether its content is wanted, and its client has not said `store: false`. Chat and Messages are stored only if
    they ask for it: there only the client's own word counts."""
    if not draft.full or unstored:
        return draft.full
    received, planned = draft.received, draft.planned
    if received is not None and received.raw is not None:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(received.raw, type=_Wish).store is not False
    elif received is not None and not received.path.startswith("/v1/responses"):
        return True
    return planned is None or planned.asked.get("store") is not False


def showable(value: Any) -> Any:
    """Without the credentials of tools, wherever those are declared: in the body, in items, in namespaces."""
    match value:
        case dict():
            return {name: showable(inner) for name, inner in showable_body(value).items()}
        case list() | tuple():
            return [showable(inner) for inner in value]
    return value


class Contents:
    """Of one trace: what its bodies take is counted together."""

    __slots__ = ("_left", "_most", "kept")

    def __init__(self, *, kept: bool, most: int) -> None:
        self.kept = kept
        self._most = self._left = most

    def keep(self, traced: TracedBody, value: Any) -> TracedBody:
        if not self.kept:
            return traced
        return self._put(traced, _encode(showable(value)))

    def keep_raw(self, traced: TracedBody, raw: bytes | bytearray) -> TracedBody:
        """What a client sent, which may be anything."""
        if not self.kept:
            return traced
        try:
            value = _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._put(traced, _encode(bytes(raw[: self._left]).decode("utf-8", "replace")))
        return self.keep(traced, value)

    def missed(self, traced: TracedBody) -> TracedBody:
        """What is longer than all that is kept was not even taken along."""
        return self._cut(traced) if self.kept and traced.bytes > self._most else traced

    def _cut(self, traced: TracedBody) -> TracedBody:
        return replace(traced, cut=f"longer than is left of {self._most:,} bytes (`trace.max_content`)")

    def _put(self, traced: TracedBody, data: bytes) -> TracedBody:
        if len(data) > self._left:
            return self._cut(traced)
        self._left -= len(data)
        return replace(traced, bytes=traced.bytes or len(data), content=msgspec.Raw(data))


NO_CONTENTS: Final = Contents(kept=False, most=0)
"""For all whose content nobody wants."""
