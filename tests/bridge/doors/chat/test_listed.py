"""A stored message as it is listed."""

from __future__ import annotations

from isthmus.bridge.doors.chat.listed import listed_message

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def test_a_text_stays_a_text() -> None:
    listed = listed_message("chatcmpl-1", 3, {"role": "user", "content": "hi"})
    assert listed == {"id": "chatcmpl-1-3", "role": "user", "content": "hi", "content_parts": None}


def test_no_content_is_told_as_none() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    listed = listed_message("c", 0, {"role": "assistant", "tool_calls": [call]})
    assert listed == {"id": "c-0", "role": "assistant", "tool_calls": [call], "content": None, "content_parts": None}


def test_parts_are_told_as_text_and_as_parts() -> None:
    parts = [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]
    listed = listed_message("c", 0, {"role": "user", "content": parts})
    assert (listed["content"], listed["content_parts"]) == ("a\nb", parts)
    assert listed_message("c", 0, {"role": "user", "content": [IMAGE]})["content"] is None


def test_parts_that_a_list_has_no_word_for_are_not_in_it() -> None:
    parts = [{"type": "file", "file": {"file_id": "f"}}, {"type": "text", "text": "a"}, "odd"]
    listed = listed_message("c", 0, {"role": "user", "content": parts})
    assert listed["content_parts"] == [{"type": "text", "text": "a"}]
