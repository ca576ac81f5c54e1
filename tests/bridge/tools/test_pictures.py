"""Images of a conversation: the latest ones may be changed, and one that was made is told in words and shown."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.tools.pictures import IMAGE_MADE, image_made, image_url, latest_images

PICTURE = "data:image/png;base64,iVBORw0KGgo="
SHOWN = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": PICTURE}]}
DRAWN = {"type": "image_generation_call", "result": "/9j/4AAQ", "status": "completed"}
FAR = {"type": "function_call_output", "output": [{"type": "input_image", "image_url": "https://x/y.png"}]}
SCREEN = {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": PICTURE}}


@pytest.mark.parametrize(
    ("items", "most", "found"),
    [
        ([SHOWN, DRAWN, FAR], 5, [PICTURE, "data:image/jpeg;base64,/9j/4AAQ"]),
        ([SHOWN, DRAWN, FAR], 1, ["data:image/jpeg;base64,/9j/4AAQ"]),
        ([SCREEN], 5, [PICTURE]),
        ([SHOWN], 0, []),
        ([{"type": "message", "content": "hi"}, {"type": "reasoning"}, {**DRAWN, "result": None}], 5, []),
    ],
)
def test_the_latest_images_of_a_conversation_are_what_may_be_changed(items: Any, most: int, found: list[str]) -> None:
    assert latest_images(items, most) == found


@pytest.mark.parametrize(
    ("start", "kind"), [("iVBORw0K", "png"), ("/9j/4AAQ", "jpeg"), ("UklGRgAA", "webp"), ("R0lGODlh", "gif")]
)
def test_an_image_is_shown_as_what_it_is(start: str, kind: str) -> None:
    assert image_url(start) == f"data:image/{kind};base64,{start}"
    words, shown = image_made(start)
    assert words == {"type": "input_text", "text": IMAGE_MADE}
    assert shown == {"type": "input_image", "image_url": image_url(start)}
