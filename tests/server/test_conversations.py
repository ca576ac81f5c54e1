"""What conversations list: shapes that OpenAI's own SDK reads, and that are valid input again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.conversations import Conversation, ConversationItem, ConversationItemList
from pydantic import TypeAdapter

from flowing import PLAIN, Flow
from isthmus.bridge.parse import parse_items
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.responses import ITEM_SHAPES
from isthmus.server.listed import listed_in_conversation
from isthmus.testing import chat
from server.test_listed import SENT

WORDS = st.text(max_size=6)
PARTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["input_text", "output_text", "text"]), "text": WORDS}),
        st.fixed_dictionaries({"type": st.just("refusal"), "refusal": WORDS}),
        st.fixed_dictionaries({"type": st.just("input_image"), "image_url": WORDS}),
        st.fixed_dictionaries({"type": st.just("something_new")}),
    ),
    max_size=3,
)
VALUES: dict[str, Any] = {
    "id": st.none() | WORDS,
    "role": st.sampled_from(["user", "assistant", "system", "developer"]),
    "content": st.none() | WORDS | PARTS,
    "output": WORDS | PARTS,
    "call_id": WORDS,
    "name": WORDS,
    "namespace": st.none() | WORDS,
    "arguments": st.just("{}"),
    "input": WORDS,
    "status": st.none() | st.sampled_from(["completed", "incomplete"]),
    "summary": st.just([]),
    "encrypted_content": WORDS,
    "action": st.fixed_dictionaries({"commands": st.just(["ls"])}),
    "operation": st.fixed_dictionaries({"type": st.just("delete_file"), "path": WORDS}),
    "tools": st.just([]),
    "code": WORDS,
    "result": WORDS,
    "phase": st.sampled_from(["commentary", "final_answer"]),
}
ITEMS = st.sampled_from(
    [*(kind for kind in ITEM_SHAPES if kind != "item_reference"), "web_search_call", "new"]
).flatmap(lambda kind: st.fixed_dictionaries({"type": st.just(kind)}, optional=VALUES))


@given(ITEMS)
@settings(suppress_health_check=list(HealthCheck))
def test_every_listed_item_is_accepted_as_input(item: JsonObject) -> None:
    try:
        (accepted,) = parse_items([item], "items")
    except RequestRefused:
        return
    listed = listed_in_conversation({**accepted, "id": accepted.get("id") or "item_1"})
    (again,) = parse_items([listed], "input")
    assert listed_in_conversation(again) == listed, "and it is listed as it was"


def test_every_item_is_one_of_the_sdks_own_types_and_can_be_sent_again(flow: Flow) -> None:
    made = flow.post("/v1/conversations", {"items": SENT}).json
    Conversation.model_validate(made, strict=True)
    flow.script(chat(calls=[("c9", "f", {})]), chat("done", reasoning="hm"), chat("again"))
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}]
    id = made["id"]
    flow.create({"model": PLAIN, "input": "call it", "conversation": id, "tools": tools})
    output = {"type": "function_call_output", "call_id": "c9", "output": "x"}
    flow.create({"model": PLAIN, "input": [output], "conversation": id})
    listed = flow.get(f"/v1/conversations/{id}/items?order=asc&limit=100").json
    ConversationItemList.model_validate(listed)
    for item in listed["data"]:
        TypeAdapter(ConversationItem).validate_python(item)
        assert item["id"]
        assert item["type"] != "message" or (item["status"] and isinstance(item["content"], list))
    again = flow.create({"model": PLAIN, "input": [*listed["data"], {"role": "user", "content": "go on"}]})
    assert again["status"] == "completed"


@pytest.mark.parametrize("content", ["text", [{"type": "input_text", "text": "text"}]])
def test_a_message_is_listed_with_a_status_and_parts(content: Any) -> None:
    listed = listed_in_conversation({"type": "message", "role": "user", "content": content, "id": "m"})
    parts = [{"type": "input_text", "text": "text"}]
    assert listed == {"type": "message", "role": "user", "content": parts, "id": "m", "status": "completed"}


def test_a_message_without_content_has_an_empty_list() -> None:
    assert listed_in_conversation({"type": "message", "role": "assistant", "content": None})["content"] == []
