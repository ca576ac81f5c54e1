"""Parts → content blocks: what can be sent is, what cannot becomes a note with a decision."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.messages.blocks import write_blocks
from isthmus.bridge.history.fitting import Fitter
from isthmus.bridge.types.history import Audio, File, Image, Part, Words

Json = dict[str, Any]
RULES = MessageRules(input=frozenset({"image", "file"}), remote_files=True)
TEXT = base64.b64encode(b"hello").decode()


def written(*parts: Part) -> tuple[list[Json], list[CompatibilityDecision]]:
    decisions: list[CompatibilityDecision] = []
    fitter = Fitter(RULES, lambda name, namespace: name, decisions)
    return [block for block, _ in write_blocks(fitter.fit(parts), fitter)], decisions


def test_blank_text_is_left_out() -> None:
    assert written(Words("a"), Words(" \n"), Words("b"))[0] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            Image("i", "data:image/jpg;base64,aGk="),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}},
        ),
        (
            Image("i", "https://x.org/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
        ),
        (
            File("f", "a.pdf", "data:application/pdf;base64,JVBERi0="),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                "title": "a.pdf",
            },
        ),
        (
            File("f", data="JVBERi0="),
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
        ),
        (
            File("f", "a.txt", f"data:text/plain;base64,{TEXT}"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "hello"},
                "title": "a.txt",
            },
        ),
        (
            File("f", url="https://x.org/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf"}},
        ),
    ],
)
def test_pictures_and_documents_are_sent(part: Part, block: Json) -> None:
    assert written(part) == ([block], [])


@pytest.mark.parametrize(
    "part",
    [
        Image("p", "data:image/bmp;base64,aGk="),
        Image("p", "data:image/png,hi"),
        Image("p", file_id="file_1"),
        File("p", "a.docx", "data:application/msword;base64,aGk="),
        File("p", file_id="file_1"),
        File("p", "a.mp4", "data:video/mp4;base64,aGk="),
        Audio("p", "aGk=", "wav"),
    ],
)
def test_what_the_endpoint_does_not_read_becomes_a_note(part: Part) -> None:
    blocks, decisions = written(part)
    assert [block["type"] for block in blocks] == ["text"]
    assert "omitted" in blocks[0]["text"]
    assert "aGk=" not in blocks[0]["text"]
    assert [(one.path, one.action) for one in decisions] == [("p", "degraded")]


def test_a_wish_for_a_resolution_is_said_to_be_ignored() -> None:
    _, decisions = written(Image("i", "https://x.org/a.png", "high"), Image("j", "https://x.org/a.png", "auto"))
    assert [(one.path, one.action) for one in decisions] == [("i.detail", "ignored")]


def test_marks_of_the_client_are_found_with_their_blocks() -> None:
    decisions: list[CompatibilityDecision] = []
    fitter = Fitter(RULES, lambda name, namespace: name, decisions)
    parts: list[Any] = [Words("a"), Words("b", breakpoint={"mode": "explicit"})]
    assert [marked for _, marked in write_blocks(parts, fitter)] == [False, True]
