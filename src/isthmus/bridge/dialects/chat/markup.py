"""Tool markup that leaked into the text → tool calls, for models whose data says so and only when tools were offered.

In: text as it comes. Out: `Text` for words, calls for markup that is complete and names an offered tool, and a
`Markup` notice. Incremental: text may be cut anywhere and gives the same result. What could still become an
opening is held back, nothing else; a block that is not (or never becomes) such a call comes out as the text it was.
A block must be closed before it counts: models also talk about their own syntax.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Markup, Text
from isthmus.bridge.dialects.chat.markup_families import FAMILIES, HEAD, LONGEST, MORE, Family, Schemas
from isthmus.protocol.json import JsonObject

_MAX_BLOCK: Final = 1 << 20
"""Characters that a block may have before it is taken for text after all."""


class LeakedTools:
    """Reads the text of one reply. Slots of leaked calls are negative: the vendor's own count from zero."""

    __slots__ = (
        "_after",
        "_block",
        "_family",
        "_head",
        "_held",
        "_inside",
        "_read",
        "_schemas",
        "_size",
        "_slots",
        "_space",
        "_tail",
        "_told",
    )

    def __init__(self, family: str, schemas: Mapping[str, JsonObject | None]) -> None:
        self._family: Family = FAMILIES[family]
        self._schemas: Schemas = schemas
        self._held = ""
        """An opening that is not whole yet."""
        self._space = ""
        """White space that belongs to a block if one follows, and to the text otherwise."""
        self._inside = ""
        """The opening tag of the block that is being collected."""
        self._block: list[str] = []
        self._head = self._tail = ""
        self._size = self._read = 0
        self._after = False
        self._slots = 0
        self._told = False

    def feed(self, text: str, out: list[Delta]) -> None:
        while text:
            text = self._collect(text, out) if self._inside else self._look(text, out)

    def end(self, out: list[Delta]) -> None:
        """The text is over (or something else begins): a block that is still open was text."""
        while self._inside:
            self.feed(self._release(out), out)
        held, self._held = self._held, ""
        self._say(held, out)
        if not self._after:
            space, self._space = self._space, ""
            if space:
                out.append(Text(space))
        self._space = ""

    def _look(self, text: str, out: list[Delta]) -> str:
        """Outside: words go out, an opening begins a block. Gives what is left to read."""
        text = self._held + text
        self._held = ""
        found = self._family.opening.search(text)
        if found is None:
            keep = self._family.partial(text)
            self._held = text[len(text) - keep :] if keep else ""
            self._say(text[: len(text) - keep], out)
            return ""
        self._say(text[: found.start()], out)
        if self._after and self._family.stray(found[0]):
            return text[found.end() :]
        self._inside = found[0]
        self._head = self._tail = ""
        self._size = self._read = 0
        return text[found.end() :] or self._collect("", out)

    def _collect(self, text: str, out: list[Delta]) -> str:
        """Inside: more of the block, until it is closed, or cannot be a call any more."""
        self._block.append(text)
        self._size += len(text)
        if len(self._head) < HEAD:
            self._head = (self._head + text)[:HEAD]
            if not self._family.plausible(self._inside, self._head, self._schemas):
                return self._release(out)
        window = self._tail + text
        self._tail = window[-LONGEST:]
        closing = self._family.closing(self._inside)
        if ">" in text and closing.search(window) is not None:
            block = "".join(self._block)
            self._block = [block]
            while (found := closing.search(block, self._read)) is not None:
                calls = self._family.read(self._inside, block[: found.start()], self._schemas)
                if calls is None:
                    return self._release(out)
                if calls is not MORE:
                    self._inside = self._space = ""
                    self._block = []
                    self._tell(calls, out)
                    return block[found.end() :]
                self._read = found.end()
        return self._release(out) if self._size > _MAX_BLOCK else ""

    def _release(self, out: list[Delta]) -> str:
        """The block was text: its opening is said, the rest is read anew."""
        opening, block = self._inside, "".join(self._block)
        self._inside = ""
        self._block = []
        self._say(opening, out)
        return block

    def _tell(self, calls: list[tuple[str, str]], out: list[Delta]) -> None:
        if not self._told:
            self._told = True
            out.append(Markup("tool calls that leaked into the text as markup were read as calls"))
        for name, arguments in calls:
            self._slots -= 1
            out.append(CallOpened(self._slots, None, name))
            out.append(CallArguments(self._slots, arguments))
        self._after = True

    def _say(self, text: str, out: list[Delta]) -> None:
        """Words, with the white space at their end held until it is known what follows."""
        if not text:
            return
        if self._after:
            text = text.lstrip()
            if not text:
                return
            self._after = False
        text = self._space + text
        words = text.rstrip()
        self._space = text[len(words) :]
        if words:
            out.append(Text(words))
