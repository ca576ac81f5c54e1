"""How many tokens a body takes: high for those who ask for room, low for those who would be refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.tokens import least_tokens, likely_tokens, most_tokens
from written_in import KINDS, written

# Counted by the tokenizer of SmolLM2: 49 thousand tokens, nearly all of them English. Others have more.
KNOWN = {
    "prose": ("The quick brown fox jumps over the lazy dog. " * 40, 401),
    "code": ("    for index, item in enumerate(items):\n        yield index, item.name\n" * 20, 341),
    "german": ("Die Donaudampfschifffahrtsgesellschaft fährt heute nicht. " * 20, 481),
    "chinese": ("今天天气很好，我们去公园散步吧。" * 20, 620),
}


@pytest.mark.parametrize(("text", "counted"), KNOWN.values(), ids=KNOWN)
def test_a_text_lies_between_the_figures(text: str, counted: int) -> None:
    body = {"messages": [{"role": "user", "content": text}]}
    assert least_tokens(body) <= counted * 0.75, "larger vocabularies have longer tokens"
    assert counted <= most_tokens(body) <= counted * 2.5
    assert counted * 0.6 <= likely_tokens(body) <= counted * 1.4


@pytest.mark.parametrize("field", ["messages", "system", "input", "tools", "instructions", "history", "dynamicTools"])
def test_whatever_the_model_reads_counts(field: str) -> None:
    assert most_tokens({field: "word " * 300}) > 300
    assert most_tokens({"model": "word " * 300}) < 100


def test_an_image_is_no_text() -> None:
    image = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 4000).decode()
    body = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}]}
    assert 4_784 < most_tokens(body) < 6_000, "the most that a vendor counts for a picture is 4,784"
    assert 1_000 < likely_tokens(body) < 3_000
    assert least_tokens(body) < 50
    bare = {"messages": [{"source": {"media_type": "image/png", "data": image.partition(",")[2]}}]}
    assert 4_784 < most_tokens(bare) < 6_000


def test_an_image_at_an_address_counts_as_one() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    assert 2 * 4_784 < most_tokens({"messages": [{"role": "user", "content": [part, part]}]}) < 12_000


@pytest.mark.parametrize("field", ["url", "source"])
def test_a_document_counts_by_its_size(field: str) -> None:
    """A page of text is some kilobytes, and 700 tokens; as a picture it is a few thousand more."""
    data = base64.b64encode(bytes(range(256)) * 4000).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    part = {"file": {"file_data": f"data:application/pdf;base64,{data}"}} if field == "url" else {"source": source}
    assert 250_000 < most_tokens({"messages": [{"content": [{"type": "file", **part}]}]}) < 400_000


# Counted by SmolLM2, and by the two vocabularies of OpenAI (`cl100k_base`, `o200k_base`).
COUNTED = {
    "english": (21, 21, 21),
    "german": (37, 28, 22),
    "french": (39, 28, 26),
    "spanish": (34, 27, 22),
    "polish": (58, 39, 34),
    "czech": (45, 39, 32),
    "hungarian": (46, 37, 34),
    "finnish": (39, 33, 29),
    "turkish": (45, 33, 26),
    "vietnamese": (68, 47, 30),
    "russian": (67, 41, 30),
    "ukrainian": (78, 57, 38),
    "greek": (60, 62, 28),
    "hebrew": (68, 60, 26),
    "arabic": (60, 44, 23),
    "persian": (62, 46, 21),
    "hindi": (77, 69, 20),
    "bengali": (127, 90, 26),
    "tamil": (141, 111, 30),
    "thai": (109, 57, 29),
    "georgian": (92, 92, 19),
    "armenian": (116, 116, 26),
    "amharic": (117, 116, 86),
    "chinese": (44, 26, 19),
    "japanese": (59, 38, 26),
    "korean": (98, 46, 31),
    "code": (180, 149, 149),
    "json": (867, 730, 730),
    "compact json": (713, 522, 522),
    "digits": (980, 380, 380),
    "base64": (686, 609, 583),
    "hex": (695, 440, 442),
    "shouting": (55, 40, 39),
    "emoji": (65, 60, 48),
    "table": (544, 423, 423),
    "paths": (296, 206, 215),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_people_write_is_counted_high(kind: str) -> None:
    text, counted = written(kind), COUNTED[kind]
    times = 2_000 // len(text) + 1  # so that what is added for every request does not hide anything
    found = most_tokens({"messages": "\n".join([text] * times)}) - 64
    assert found >= max(counted) * times
    assert found <= max(counted) * times * 2.2


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_high_is_never_below_low(value: object) -> None:
    body = {"messages": value}
    assert 0 <= least_tokens(body) <= likely_tokens(body) <= most_tokens(body)
