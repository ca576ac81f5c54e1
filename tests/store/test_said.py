"""What items are called in their conversation."""

from __future__ import annotations

import msgspec
import pytest

from isthmus.ports import StoredConversation
from isthmus.store.pieces import INPUT, OUTPUT
from isthmus.store.said import export_conversation, kind_of, name_said
from stored import message


@pytest.mark.parametrize(
    ("item", "place", "name"),
    [
        ({"role": "user", "content": "x"}, INPUT, "msg_1_i3"),
        ({"type": "message", "role": "assistant", "content": "x"}, OUTPUT, "msg_1_o3"),
        ({"type": "function_call"}, OUTPUT, "fc_1_o3"),
        ({"type": "function_call_output"}, INPUT, "fco_1_i3"),
        ({"type": "custom_tool_call_output"}, INPUT, "ctco_1_i3"),
        ({"type": "reasoning"}, INPUT, "rs_1_i3"),
        ({"type": "something_new"}, INPUT, "item_1_i3"),
    ],
)
def test_an_item_is_called_by_its_kind_its_response_and_its_place(item: object, place: int, name: str) -> None:
    assert name_said(msgspec.json.encode(item), "resp_1", place, 3, lambda name: False) == name


def test_a_name_that_is_taken_is_not_given_again() -> None:
    taken = {"msg_1_i0", "msg_1_i0_"}
    assert name_said(message("x"), "resp_1", INPUT, 0, taken.__contains__) == "msg_1_i0__"


def test_an_item_without_a_type_is_a_message() -> None:
    assert kind_of(b'{"role":"user","content":"x"}') == "message"


def test_a_line_of_an_export_is_one_line() -> None:
    line = export_conversation(StoredConversation("c", 1.0, b'{"a":\n"b"}'), [b'{"text":\r\n"x\\ny"}'])
    assert line.count(b"\n") == 1
    assert msgspec.json.decode(line)["items"] == [{"text": "x\ny"}]
