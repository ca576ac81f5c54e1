"""Text that comes in pieces, broken between words as it comes.

In: pieces of any size, cut anywhere. Out: the same text, with line breaks where the terminal would break a word. A word
is held until it is whole, and no longer. What stands in a code block stays as it is: whoever copies it wants it so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from rich.cells import cell_len

_FENCE: Final = re.compile(r"(`{3,}|~{3,})")
_TAB: Final = 8
_JOINER: Final = "\u200d"


class Flow:
    def __init__(self, out: Callable[[str], object], width: Callable[[], int]) -> None:
        """`width` is asked for each word: a window may change while somebody reads."""
        self._out = out
        self._width = width
        self._column = 0
        self._word = ""
        self._space = ""
        """Between the last word and the next; left out where the line is broken."""
        self._first = True
        """Whether nothing but space stands in this line of the text so far."""
        self._fence = ""
        """The signs that the code block began with; empty outside of one."""

    def write(self, text: str) -> None:
        for sign in text:
            if sign == "\n":
                self._end_word()
                self._out(f"{self._space}\n")
                self._column, self._space, self._first = 0, "", True
            elif sign in " \t":
                self._end_word()
                self._space += sign
            elif cell_len(sign) > 1 and not self._fence:
                # Between two wide signs (Chinese, Japanese, Korean, pictures) a line may always end.
                if self._word and self._word[-1] != _JOINER and not _CLOSING.match(sign):
                    self._end_word()
                self._word += sign
            else:
                if self._word and cell_len(self._word[-1]) > 1 and not _JOINING.match(sign):
                    self._end_word()
                self._word += sign

    def flush(self) -> None:
        """Nothing follows for now."""
        self._end_word()

    def end(self) -> None:
        """The text is over: what comes next begins on a line of its own, outside of any block."""
        self._end_word()
        self._column, self._space, self._first, self._fence = 0, "", True, ""

    def _end_word(self) -> None:
        if not self._word:
            return
        word, self._word = self._word, ""
        if self._first:
            self._look_for_fence(word)
        space = self._space.expandtabs(_TAB)
        long = cell_len(word)
        if not self._fence and self._column and self._column + len(space) + long > self._width():
            self._out("\n")
            self._column, space = 0, ""
        self._out(space + word)
        self._column = (self._column + len(space) + long) % max(self._width(), 1) or self._column + len(space) + long
        self._space, self._first = "", False

    def _look_for_fence(self, word: str) -> None:
        found = _FENCE.match(word)
        if found is None or len(self._space) > 3:
            return
        if not self._fence:
            self._fence = found[1]
        elif word.startswith(self._fence):
            self._fence = ""


_CLOSING: Final = re.compile(r"[、。，．・：；？！）］｝」』】〉》”’ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ]")
"""Signs that no line begins with."""
_JOINING: Final = re.compile(r"[\u200d\ufe00-\ufe0f\u0300-\u036f.,:;!?)\]}%…]")
"""What belongs to the wide sign before it: parts of a picture, accents, and signs that end something."""
