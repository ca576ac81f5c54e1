"""Chunks that are alike but for their words: what was found out of one holds for those that follow.

A stream says the same around each of its tokens: ids, names, times. When a chunk came to nothing but one text, the
bytes before and behind that text are remembered. A chunk that begins and ends with them is the same one with other
words, and only these are decoded, those of many chunks at once. What differs by a single byte is read as if nothing
were known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from isthmus.bridge.deltas import Delta
from isthmus.protocol.json import JsonObject

Say = Callable[[list[str], list[Delta]], None]
"""Tells the words of chunks that are alike, as the decoder told those of the first."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LONGEST: Final = 4096
"""Bytes of a chunk that is remembered."""
_TRIES: Final = 8
"""How often something is remembered in vain: some vendors put a new number into each chunk."""
_OTHER: Final = "other \\ words"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_decode_texts: Final = msgspec.json.Decoder(list[str]).decode
_OTHERS: Final = _encode(_OTHER)


class Alike:
    """What the chunks have in common, and how their words are told."""

    __slots__ = ("_left", "_words", "head", "say", "tail")

    head: bytes | tuple[()]
    say: Say
    _words: slice

    def __init__(self) -> None:
        self.forget()
        self._left = _TRIES

    @property
    def learns(self) -> bool:
        return self._left > 0

    def forget(self) -> None:
        self.head, self.tail = (), b""  # nothing begins with one of none

    def learn(self, data: bytes, event: JsonObject, place: JsonObject, name: str, say: Say) -> None:
        """`place[name]`, somewhere in the event, is all that it said. With other words there it must be the same event
        but for these: only that shows that the bytes which were found are the ones that were read."""
        text = _encode(place[name])
        head, found, tail = data.partition(text)
        if not (found and self.learns) or len(data) > _LONGEST or text == _OTHERS:
            return
        self._left -= 1
        place[name] = _OTHER
        try:
            if _decode(head + _OTHERS + tail) == event:
                self.head, self.tail, self.say = head, tail, say
                self._words = slice(len(head), -len(tail))
        except UNREADABLE:
            pass

    def tell(self, run: list[bytes], out: list[Delta]) -> bool:
        """The words of chunks that begin and end alike; `False`: one of them is another chunk after all."""
        words = self._words
        try:
            if len(run) == 1:
                texts = [_decode_text(run[0][words])]
            else:
                # No string goes on over the end of a line: what is not one each makes more of them, or none.
                texts = _decode_texts(b"[%b]" % b",\n".join([data[words] for data in run]))
        except UNREADABLE:
            return False
        if len(texts) != len(run) or "" in texts:
            return False
        self._left = _TRIES
        self.say(texts, out)
        return True
