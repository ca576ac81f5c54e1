"""An answer that is longer than allowed ends early, as if the model had met its own limit: clients can go on then."""

from __future__ import annotations

from typing import Literal

from isthmus.bridge.deltas import Delta, Finished, Markup
from isthmus.bridge.limits import AnswerLimits

Setting = Literal["max_answer", "max_chunks"]


def cut_answer(limits: AnswerLimits, setting: Setting, rest: str = "the rest was not read") -> list[Delta]:
    most, what = getattr(limits, setting), "bytes" if setting == "max_answer" else "chunks"
    words = f"the answer is longer than {most:,} {what}, the limit `limits.{setting}` of this gateway; {rest}"
    return [Markup(words, "bridge.response.answer_cut"), Finished("length")]
