"""Responses told to chat clients: one text, with its citations, streamed and whole."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.deltas import Annotation, Delta, Finished, ItemBegan, ItemEnded, PartBegan, Text
from isthmus.bridge.doors.chat.render import ChatRenderer, render_chat_completion
from isthmus.testing.fold import stream

Json = dict[str, Any]


def cite(start: int, end: int) -> Json:
    return {"type": "url_citation", "url": "u", "title": "t", "start_index": start, "end_index": end}


def both(*deltas: Delta) -> tuple[Json, Json]:
    """The message of a whole reply, and the one that a client makes of the stream."""
    events, response = stream(deltas)
    renderer = ChatRenderer()
    streamed: Json = {"content": "", "annotations": []}
    for event in events:
        for chunk in renderer.render(event):
            for choice in chunk["choices"]:
                streamed["content"] += choice["delta"].get("content") or ""
                streamed["annotations"] += choice["delta"].get("annotations") or ()
    message = render_chat_completion(response)["choices"][0]["message"]
    return {"annotations": [], **{name: message[name] for name in streamed if name in message}}, streamed


def test_a_streamed_reply_keeps_the_citations_that_a_whole_one_has() -> None:
    whole, streamed = both(Text("Sunny."), Annotation(cite(0, 5)), Finished("stop"))
    assert streamed == whole
    assert whole["annotations"][0]["url_citation"]["end_index"] == 5


def test_several_messages_are_one_text_and_their_citations_count_from_its_beginning() -> None:
    whole, streamed = both(
        *(ItemBegan("message"), Text("One."), Annotation(cite(0, 3)), ItemEnded()),
        *(
            ItemBegan("message"),
            Text("Two,"),
            PartBegan("output_text"),
            Text(" 2."),
            Annotation(cite(1, 2)),
            ItemEnded(),
        ),
        Finished("stop"),
    )
    assert streamed == whole
    assert whole["content"] == "One.\n\nTwo, 2."
    spans = [(said["url_citation"]["start_index"], said["url_citation"]["end_index"]) for said in whole["annotations"]]
    assert [whole["content"][start:end] for start, end in spans] == ["One", "2"]
