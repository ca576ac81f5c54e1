"""An answer that was cut says by which setting, and ends as one that met the model's own limit."""

from __future__ import annotations

import pytest

from isthmus.bridge.deltas import Finished, Markup
from isthmus.bridge.limits import AnswerLimits
from isthmus.upstream.cut import Setting, cut_answer


@pytest.mark.parametrize(("setting", "told"), [("max_answer", "1,000 bytes"), ("max_chunks", "20 chunks")])
def test_it_names_the_limit_and_its_setting(setting: Setting, told: str) -> None:
    said, finished = cut_answer(AnswerLimits(max_answer=1000, max_chunks=20), setting, "the rest is silence")
    assert isinstance(said, Markup)
    assert all(words in str(said) for words in (told, f"`limits.{setting}`", "the rest is silence"))
    assert finished == Finished("length")
