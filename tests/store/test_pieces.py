from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.ports import StoredResponse
from isthmus.store.pieces import FIELD, OUTPUT, join, split

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=1200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
items = st.lists(st.dictionaries(st.sampled_from(["id", "type", "text"]), json_values), max_size=4)
responses = st.dictionaries(st.text(max_size=8), json_values, max_size=6)


@given(fields=responses, output=st.none() | items | json_values, before=st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_is_split_joins_to_the_same_bytes(fields: dict[str, Any], output: Any, before: bool) -> None:
    body = {"output": output, **fields} if before else {**fields, "output": output}
    if isinstance(body["output"], list) and not all(isinstance(item, dict) for item in body["output"]):
        body["output"] = []
    response = msgspec.json.encode(body)
    skeleton, pieces = split(StoredResponse("r", response))
    made = [piece.data for piece in pieces if piece.place == OUTPUT]
    assert join(skeleton, made, [(piece.position, piece.data) for piece in pieces if piece.place == FIELD]) == response
