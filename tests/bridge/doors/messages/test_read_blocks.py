"""Content blocks and the parts that they become."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.messages.read_blocks import MARK, BlockReader
from isthmus.errors import RequestRefused

Json = dict[str, Any]
PATH = "messages[0].content"
PNG = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}


def read(*blocks: Json) -> tuple[list[Json], list[tuple[str, str]]]:
    reader = BlockReader()
    parts = [one.part for one in reader.read(list(blocks), PATH)]
    return parts, [(decision.path.removeprefix(PATH), decision.action) for decision in reader.decisions]


@pytest.mark.parametrize(
    ("block", "parts", "decided"),
    [
        ({"type": "text", "text": "hi"}, [{"type": "input_text", "text": "hi"}], []),
        (
            {"type": "image", "source": PNG},
            [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}],
            [],
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            [{"type": "input_image", "image_url": "https://x/y.png"}],
            [],
        ),
        (
            {"type": "document", "source": PDF, "title": "Plan"},
            [{"type": "input_file", "filename": "Plan", "file_data": "data:application/pdf;base64,JVBERi0="}],
            [],
        ),
        (
            {"type": "document", "source": PDF},
            [{"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}],
            [],
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
            [{"type": "input_file", "file_url": "https://x/y.pdf"}],
            [],
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "T"},
            [{"type": "input_text", "text": "[document T]\nwords"}],
            [],
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}},
            [{"type": "input_text", "text": "[document]"}, {"type": "input_text", "text": "words"}],
            [],
        ),
        (
            {"type": "document", "source": PDF, "context": "old", "citations": {"enabled": True}},
            [
                {"type": "input_text", "text": "[about the document that follows]\nold"},
                {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            ],
            [("[0].citations", "ignored")],
        ),
        (
            {"type": "search_result", "title": "T", "source": "u", "content": [{"type": "text", "text": "found"}]},
            [{"type": "input_text", "text": "[search result: T u]\nfound"}],
            [("[0]", "degraded")],
        ),
        (
            {"type": "tool_reference", "tool_name": "WebSearch"},
            [{"type": "input_text", "text": "loaded: WebSearch"}],
            [("[0]", "degraded")],
        ),
        ({"type": "hologram", "text": "words"}, [{"type": "input_text", "text": "words"}], [("[0]", "degraded")]),
        ({"type": "hologram", "data": "x"}, [], [("[0]", "ignored")]),
    ],
)
def test_each_kind_of_block(block: Json, parts: list[Json], decided: list[tuple[str, str]]) -> None:
    assert read(block) == (parts, decided)


def test_a_mark_stays_on_the_last_part_of_its_block() -> None:
    marked = {"type": "document", "source": PDF, "context": "c", "cache_control": {"type": "ephemeral"}}
    parts, decided = read({"type": "text", "text": "a"}, marked)
    assert [part.get("prompt_cache_breakpoint") for part in parts] == [None, None, MARK]
    assert decided == []


def test_the_longest_life_of_a_mark_counts() -> None:
    reader = BlockReader()
    hour = {"type": "ephemeral", "ttl": "1h"}
    reader.read([{"type": "text", "text": "a", "cache_control": hour}], PATH)
    reader.read([{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}], PATH)
    assert reader.ttl == "1h"


@pytest.mark.parametrize(
    ("block", "param", "words"),
    [
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, "[0].source", "stored files"),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, "[0].source", "base64"),
        ({"type": "image"}, "[0].source", "object"),
        ({"type": "image", "source": {"type": "base64"}}, "[0].source.data", "missing"),
        ({"type": "text"}, "[0].text", "missing"),
        ({"type": "text", "text": 3}, "[0].text", "string"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(block: Json, param: str, words: str) -> None:
    with pytest.raises(RequestRefused, match=words) as refused:
        read(block)
    assert refused.value.param == f"{PATH}{param}"


@pytest.mark.parametrize("content", [3, {"type": "text", "text": "a"}, ["a"]])
def test_content_is_a_text_or_a_list_of_blocks(content: Any) -> None:
    with pytest.raises(RequestRefused, match="must be"):
        BlockReader().read(content, PATH)


def test_a_bare_text_is_one_part_and_nothing_is_none() -> None:
    reader = BlockReader()
    assert [tuple(one) for one in reader.read("hi", PATH)] == [({"type": "input_text", "text": "hi"}, PATH)]
    assert reader.read("", PATH) == []
