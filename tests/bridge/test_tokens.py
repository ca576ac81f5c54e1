"""How many tokens a body takes: high for those who ask for room, low for those who would be refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.tokens import least_tokens, likely_tokens, most_tokens

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
    assert 1_000 < most_tokens(body) < 3_000
    assert least_tokens(body) < 50
    bare = {"messages": [{"source": {"data": image.partition(",")[2]}}]}
    assert 1_000 < most_tokens(bare) < 3_000


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_high_is_never_below_low(value: object) -> None:
    body = {"messages": value}
    assert 0 <= least_tokens(body) <= likely_tokens(body) <= most_tokens(body)
