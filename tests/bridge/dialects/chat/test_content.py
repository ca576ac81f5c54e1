"""Media go to models that can take them; others get a note, never base64."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.chat.messages import write_content
from isthmus.bridge.history.fitting import Fitter
from isthmus.bridge.history.parts import read_parts

DATA = base64.b64encode(b"words in a file").decode()
EVERYTHING = MessageRules(input=frozenset({"image", "audio", "file", "video"}))
NOTHING = MessageRules()


def write(part: dict[str, Any], rules: MessageRules) -> tuple[Any, list[CompatibilityDecision]]:
    decisions: list[CompatibilityDecision] = []
    fitter = Fitter(rules, lambda name, namespace: name, decisions)
    return write_content(fitter.fit(read_parts([part], "input[0].content", decisions))), decisions


TAKEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "image": (
        {"type": "input_image", "image_url": "https://x/a.png"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
    ),
    "image with detail": (
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "auto"}},
    ),
    "image as a file": (
        {"type": "input_file", "file_data": "data:image/png;base64,QUJD"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ),
    "pdf": (
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
    ),
    "video data": (
        {"type": "input_file", "file_data": "data:video/mp4;base64,QUJD"},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,QUJD"}},
    ),
    "video address": (
        {"type": "input_file", "file_url": "https://x/a.MP4?t=1", "detail": "low"},
        {"type": "video_url", "video_url": {"url": "https://x/a.MP4?t=1", "detail": "low"}},
    ),
    "audio": (
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
    ),
    "audio as a file": (
        {"type": "input_file", "file_data": "data:audio/mpeg;base64,QUJD"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
    ),
}


@pytest.mark.parametrize(("part", "expected"), TAKEN.values(), ids=TAKEN.keys())
def test_a_model_that_can_gets_the_media(part: dict[str, Any], expected: dict[str, Any]) -> None:
    assert write(part, EVERYTHING) == ([expected], [])


@pytest.mark.parametrize("part", [part for part, _ in TAKEN.values()], ids=TAKEN.keys())
def test_a_model_that_cannot_gets_a_note_without_data(part: dict[str, Any]) -> None:
    content, decisions = write(part, NOTHING)
    assert isinstance(content, str)
    assert content.startswith("[")
    assert "QUJD" not in content
    assert [(d.path, d.action, d.code) for d in decisions] == [
        ("input[0].content[0]", "degraded", "bridge.item.degraded")
    ]


NOTES: dict[str, tuple[dict[str, Any], MessageRules, str]] = {
    "blind model": (
        {"type": "input_image", "image_url": "https://x/a.png"},
        NOTHING,
        "[image omitted: https://x/a.png; this model reads no images]",
    ),
    "image by file id": (
        {"type": "input_image", "file_id": "file_1"},
        EVERYTHING,
        "[image omitted: file_1; only images given by `image_url` can be sent]",
    ),
    "remote image where only data goes": (
        {"type": "input_image", "image_url": "https://x/a.png"},
        MessageRules(input=frozenset({"image"}), remote_images=False),
        "[image omitted: https://x/a.png; this provider takes images as data URLs only]",
    ),
    "file by address": (
        {"type": "input_file", "file_url": "https://x/a.pdf"},
        EVERYTHING,
        "[file omitted: https://x/a.pdf; only files given by `file_data` can be sent]",
    ),
    "file by id": (
        {"type": "input_file", "file_id": "file_1", "filename": "a.pdf"},
        NOTHING,
        "[file omitted: a.pdf file_1; this model reads no files]",
    ),
    "bare base64": (
        {"type": "input_file", "filename": "a.pdf", "file_data": DATA},
        NOTHING,
        "[file omitted: a.pdf; this model reads no files]",
    ),
    "text file": (
        {"type": "input_file", "filename": "a.md", "file_data": f"data:text/markdown;base64,{DATA}"},
        NOTHING,
        "[file a.md]\nwords in a file",
    ),
    "broken text file": (
        {"type": "input_file", "filename": "a.md", "file_data": "data:text/plain;base64,%%%"},
        NOTHING,
        "[file omitted: a.md; this model reads no files]",
    ),
    "video without address": (
        {"type": "input_video"},
        EVERYTHING,
        "[video omitted: only videos given by address or data can be sent]",
    ),
    "audio by address": (
        {"type": "input_audio", "audio_url": "https://x/a.mp3"},
        EVERYTHING,
        "[audio omitted: https://x/a.mp3; only audio given as data can be sent]",
    ),
}


@pytest.mark.parametrize(("part", "rules", "note"), NOTES.values(), ids=NOTES.keys())
def test_notes_say_what_is_missing_and_why(part: dict[str, Any], rules: MessageRules, note: str) -> None:
    content, decisions = write(part, rules)
    assert content == note
    assert len(decisions) == 1


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [({"video"}, "video_url"), ({"video", "file"}, None)],
    ids=["videos are the only files", "it might be any file"],
)
def test_an_address_without_an_ending_is_a_video_only_where_nothing_else_goes(inputs: set[Any], kind: Any) -> None:
    part = {"type": "input_file", "file_url": "https://x/watch"}
    content, _ = write(part, MessageRules(input=frozenset(inputs)))
    assert (content[0]["type"] if isinstance(content, list) else None) == kind


@pytest.mark.parametrize(("detail", "sent"), [("original", "high"), ("sharp", None)])
def test_an_unknown_detail_is_mapped_or_dropped_and_told(detail: str, sent: str | None) -> None:
    content, decisions = write({"type": "input_image", "image_url": "https://x", "detail": detail}, EVERYTHING)
    assert content[0]["image_url"].get("detail") == sent
    assert [d.path for d in decisions] == ["input[0].content[0].detail"]


def test_text_around_an_image_keeps_its_place() -> None:
    decisions: list[CompatibilityDecision] = []
    fitter = Fitter(EVERYTHING, lambda name, namespace: name, decisions)
    given = [
        {"type": "input_text", "text": "before"},
        {"type": "input_image", "image_url": "https://x"},
        {"type": "input_text", "text": "after"},
    ]
    content = write_content(fitter.fit(read_parts(given, "c", decisions)))
    assert [part["type"] for part in content if isinstance(part, dict)] == ["text", "image_url", "text"]


def test_a_system_message_carries_text_only() -> None:
    decisions: list[CompatibilityDecision] = []
    fitter = Fitter(EVERYTHING, lambda name, namespace: name, decisions)
    given = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "https://x"}]
    text = fitter.text(read_parts(given, "c", decisions))
    assert text == "look\n[image omitted: https://x; a system message carries text only]"
    assert [d.path for d in decisions] == ["c[1]"]
