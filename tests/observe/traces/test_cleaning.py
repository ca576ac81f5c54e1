"""What is hidden in a trace, what is not, and what becomes of one that cannot be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from isthmus.errors import WorkNotDone
from isthmus.observe.traces import cleaning as module
from isthmus.observe.traces.cleaning import WITHHELD, Cleaner, withhold
from isthmus.observe.traces.patterns import decode_scrub, encode_scrub, run_scrub
from isthmus.ports.packed import Pattern, pack, pack_all, plain, unpack, unpack_summary
from isthmus.ports.traced import Piece, Trace, TracedBody, TracedDecision, TracedError
from isthmus.scrub import Scrubber, Secret
from traced import patterned, traced

SECRET = "sk-0123456789abcdef"


def cleaned(cleaner: Cleaner, *traces: Trace) -> list[Trace]:
    return [unpack(unpack_summary(each.head), each.detail) for each in cleaner.clean(pack_all(traces))]


def with_words(*, word: str) -> Trace:
    body = TracedBody(
        9,
        (Piece(f"tools.{word}", 1, "f0e1d2c3b4a59687", word),),
        content=msgspec.Raw(msgspec.json.encode({word: [word]})),
    )
    return msgspec.structs.replace(
        traced("1", path=f"/v1/{word}", asked_model=word, client_id=word),
        request=body,
        decisions=(TracedDecision(word, "ignored", f"no {word} here"),),
        diagnostics=({"code": "c", "message": word, "metadata": {word: word}},),
        error=TracedError("broken", f"it said {word}", word),
        traceparent=word,
    )


def test_a_known_secret_is_hidden_in_every_word_and_every_name_of_others() -> None:
    (clean,) = cleaned(Cleaner(Scrubber([Secret(SECRET, "api_key")])), with_words(word=SECRET))
    data = msgspec.json.encode(clean)
    assert SECRET[:8].encode() not in data
    assert data.count(b"<redacted>") == 15
    assert clean.summary.id == "req_1"
    assert clean.request.pieces[0].hash == "f0e1d2c3b4a59687"


@pytest.mark.parametrize(
    "spelled", [SECRET.upper(), SECRET.replace("-", "%2D"), "\\u0073k-0123456789abcdef", SECRET[:12]]
)
def test_in_whatever_spelling(spelled: str) -> None:
    (clean,) = cleaned(Cleaner(Scrubber([Secret(SECRET, "api_key")])), with_words(word=f"x {spelled} y"))
    assert "<redacted>" in clean.summary.asked_model
    assert clean.error is not None
    assert spelled not in clean.error.message


def test_a_trace_without_any_is_the_very_same() -> None:
    for trace in (pack(with_words(word="harmless")), patterned(pack(with_words(word="harmless")))):
        (clean,) = Cleaner(Scrubber([Secret(SECRET, "api_key")])).clean([trace])
        assert clean is trace


def test_also_in_what_it_has_in_common_with_others_and_in_what_is_its_own() -> None:
    cleaner = Cleaner(Scrubber([Secret(SECRET, "api_key")]))
    common, own, none = (patterned(pack(each)) for each in (with_words(word=SECRET), traced("2"), traced("3")))
    assert common.pattern is not None
    assert own.pattern is not None
    marked = Pattern((*own.pattern.head[:-1], b',"asked_model":', own.pattern.head[-1]), own.pattern.detail)
    own = replace(own, head=own.head + b'"%b"\n' % SECRET.encode(), pattern=marked)
    clean = cleaner.clean([common, own, none])
    assert [each.pattern is None for each in clean] == [True, True, False]
    assert not any(SECRET.encode() in plain(each).head + plain(each).detail for each in clean)
    assert unpack_summary(clean[1].head).asked_model == "<redacted>"
    assert cleaner.clean([none]) == [none]


def test_what_becomes_a_secret_is_looked_for_also_in_patterns_that_had_none() -> None:
    cleaner = Cleaner(Scrubber([Secret("another-secret", "api_key")]))
    trace = patterned(pack(with_words(word=SECRET)))
    assert cleaner.clean([trace]) == [trace]
    cleaner.learn([Secret(SECRET, "api_key")])
    (clean,) = cleaner.clean([trace])
    assert SECRET.encode() not in clean.head + clean.detail
    assert clean.pattern is None


def test_few_patterns_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SOUND", 3)
    cleaner = Cleaner(Scrubber([Secret(SECRET, "api_key")]))
    for number in range(10):
        trace = patterned(pack(with_words(word=f"word {number}")))
        assert cleaner.clean([trace]) == [trace]
        assert len(cleaner._sound) <= 3


def finder(*patterns: str) -> Any:
    def find(texts: Sequence[str]) -> Sequence[str]:
        return decode_scrub(run_scrub(encode_scrub(patterns, texts)))

    return find


def test_patterns_are_looked_for_in_what_others_said_and_not_in_our_own_words() -> None:
    trace = with_words(word="number 4711")
    cleaner = Cleaner(Scrubber(), finder(r"\d+", "completed", "responses"))
    (clean,) = cleaned(cleaner, trace)
    assert cleaner.clean([patterned(pack(trace))]) == cleaner.clean([pack(trace)])
    assert (clean.summary.id, clean.summary.outcome, clean.summary.door) == ("req_1", "completed", "responses")
    assert clean.request.pieces[0].hash == "f0e1d2c3b4a59687"
    assert b"4711" not in msgspec.json.encode(clean)
    assert clean.summary.asked_model == "number <redacted>"
    assert clean.summary.input_tokens == 10


def test_where_they_cannot_be_looked_for_only_that_ones_words_are_left_out() -> None:
    def find(texts: Sequence[str]) -> Sequence[str]:
        if any("slow" in text for text in texts):
            raise WorkNotDone("it took too long")
        return [text.replace("quick", "<redacted>") for text in texts]

    cleaner = Cleaner(Scrubber(), find)
    slow, quick = cleaned(cleaner, with_words(word="slow one"), with_words(word="quick one"))
    assert cleaner.withheld == 1
    assert slow == withhold(with_words(word="slow one"))
    assert b"slow" not in msgspec.json.encode(slow)
    assert (slow.summary.asked_model, slow.summary.input_tokens, slow.batches) == (WITHHELD, 10, 3)
    assert quick.summary.asked_model == "<redacted> one"
