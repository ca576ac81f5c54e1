"""Content parts in every shape that clients send."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.history.parts import read_parts
from isthmus.bridge.types.history import Audio, File, Image, Part, Words, join_texts

SHAPES: dict[str, tuple[dict[str, Any], Part | None]] = {
    "input text": ({"type": "input_text", "text": "a"}, Words("a")),
    "output text": ({"type": "output_text", "text": "a", "annotations": []}, Words("a")),
    "plain text": ({"type": "text", "text": "a"}, Words("a")),
    "text without type": ({"text": "a"}, Words("a")),
    "empty text": ({"type": "input_text", "text": ""}, None),
    "refusal": ({"type": "refusal", "refusal": "no"}, Words("no", refusal=True)),
    "image": ({"type": "input_image", "image_url": "u", "detail": "low"}, Image("c[0]", "u", "low")),
    "image by id": ({"type": "input_image", "file_id": "f"}, Image("c[0]", file_id="f")),
    "chat image": (
        {"type": "image_url", "image_url": {"url": "u", "detail": "high"}},
        Image("c[0]", "u", "high"),
    ),
    "file": (
        {"type": "input_file", "filename": "n", "file_data": "d", "file_url": "u", "file_id": "i"},
        File("c[0]", "n", "d", "u", "i"),
    ),
    "chat file": ({"type": "file", "file": {"filename": "n", "file_data": "d"}}, File("c[0]", "n", "d")),
    "video": ({"type": "input_video", "video_url": "u"}, File("c[0]", url="u", video=True)),
    "audio": (
        {"type": "input_audio", "input_audio": {"data": "d", "format": "mp3"}},
        Audio("c[0]", "d", "mp3"),
    ),
    "flat audio": ({"type": "input_audio", "data": "d", "format": "mp3"}, Audio("c[0]", "d", "mp3")),
    "audio as data url": (
        {"type": "input_audio", "audio_url": "data:audio/wav;base64,QUJD"},
        Audio("c[0]", "QUJD", "wav"),
    ),
    "audio by address": ({"type": "input_audio", "audio_url": "https://a"}, Audio("c[0]", url="https://a")),
}


@pytest.mark.parametrize(("given", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_part_shapes(given: dict[str, Any], expected: Part | None) -> None:
    decisions: list[CompatibilityDecision] = []
    assert read_parts([given], "c", decisions) == ((expected,) if expected is not None else ())
    assert decisions == []


def test_an_unknown_part_keeps_its_text_or_is_ignored_and_says_so() -> None:
    decisions: list[CompatibilityDecision] = []
    given = [{"type": "hologram", "text": "a"}, {"type": "hologram", "data": "QUJD"}]
    assert read_parts(given, "c", decisions) == (Words("a"),)
    assert [(d.path, d.action, d.code) for d in decisions] == [
        ("c[0]", "degraded", "bridge.item.degraded"),
        ("c[1]", "ignored", "bridge.item.ignored"),
    ]


@pytest.mark.parametrize("content", [None, "", [], 7], ids=["null", "empty text", "empty list", "number"])
def test_empty_content_has_no_parts(content: object) -> None:
    assert read_parts(content, "c", []) == ()


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["Output:", "ok"], "Output:\nok"),
        (["Output:\n", "ok\n"], "Output:\nok\n"),
        (["", "a", "", "b"], "a\nb"),
        ([], ""),
    ],
    ids=["break added", "break already there", "empty parts", "nothing"],
)
def test_parts_of_one_message_are_kept_apart_by_one_line_break(texts: list[str], joined: str) -> None:
    assert join_texts(texts) == joined
