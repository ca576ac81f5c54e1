"""Where refused content stands, in the words of whoever sent it."""

from __future__ import annotations

import pytest

from isthmus.bridge.history.locate import locate_content

IMAGE = {"type": "input_image", "image_url": "https://h/x.png"}
AUDIO = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
FILE = {"type": "input_file", "file_data": "data:application/pdf;base64,aGk="}
TEXT = {"type": "input_text", "text": "hi"}
ITEMS = [
    {"type": "message", "role": "user", "content": "hi"},
    {"type": "message", "role": "user", "content": [TEXT, AUDIO]},
    {"type": "function_call_output", "call_id": "c", "output": [TEXT, TEXT, IMAGE]},
]


@pytest.mark.parametrize(
    ("kind", "path"), [("audio", "input[1].content[1]"), ("image", "input[2].output[2]"), ("file", None)]
)
def test_the_first_of_its_kind_is_found(kind: str, path: str | None) -> None:
    assert locate_content(kind, ITEMS, []) == path


def test_the_requests_own_comes_before_that_of_earlier_turns() -> None:
    past = [{"type": "message", "role": "user", "content": [IMAGE, FILE]}]
    assert locate_content("image", ITEMS, past) == "input[2].output[2]"
    assert locate_content("file", ITEMS, past) == "history[0].content[1]"
