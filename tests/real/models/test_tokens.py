"""What we call the most tokens of a text is never fewer than a real tokenizer counts: that of the model behind the real
server, whose vocabulary is small, and the two of OpenAI, which are large."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.bridge.tokens import least_tokens, most_tokens
from real.models.rig import Rig, real
from written_in import KINDS, written

pytestmark = real

Count = Callable[[str], int]
# The fixture is the same server every time: nothing of one example is left for the next.
EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def pages(draw: st.DrawFn) -> str:
    """Texts of several kinds, whole, cut anywhere and repeated, one behind the other."""
    pieces = []
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6)):
        text = written(kind)
        start = draw(st.integers(0, len(text) // 2))
        end = draw(st.integers(start + 1, len(text)))
        pieces.append(text[start:end] * draw(st.integers(1, 8)))
    return draw(st.sampled_from([" ", "\n", "\n\n", ", ", ""])).join(pieces)


@pytest.fixture(scope="session", params=["smollm2", "cl100k_base", "o200k_base"])
def tokenizer(request: pytest.FixtureRequest) -> Count:
    if request.param != "smollm2":
        openai = pytest.importorskip("rs_bpe").openai
        vocabulary = getattr(openai, request.param)()
        return lambda text: int(vocabulary.count(text))
    house: Rig = request.getfixturevalue("_house")
    return lambda text: len(house.ask_server("/tokenize", {"content": text})["tokens"])


@EXAMPLES
@given(text=pages())
def test_no_text_takes_more_tokens_than_we_say(tokenizer: Count, text: str) -> None:
    counted = tokenizer(text)
    body = {"messages": [{"role": "user", "content": text}]}
    assert most_tokens(body) >= counted
    assert least_tokens(body) <= max(counted * 1.5, 40)


@pytest.mark.parametrize("kind", KINDS)
def test_nor_do_many_pages_of_one_kind(tokenizer: Count, kind: str) -> None:
    text = "\n".join([written(kind)] * 20)
    assert most_tokens({"messages": text}) - 64 >= tokenizer(text)
