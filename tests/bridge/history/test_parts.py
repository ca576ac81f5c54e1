"""Content parts in every shape that clients send."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.history.parts import read_output, read_parts
from isthmus.bridge.types.history import Audio, File, FoundTool, FoundTools, Image, Part, Words, join_texts

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


OUTPUTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "text": ({"type": "function_call_output", "call_id": "1", "output": "ok"}, ["ok"]),
    "empty text": ({"type": "function_call_output", "call_id": "1", "output": ""}, []),
    "text parts": (
        {
            "type": "custom_tool_call_output",
            "call_id": "1",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        ["a", "b"],
    ),
    "shell chunks": (
        {
            "type": "shell_call_output",
            "call_id": "1",
            "output": [
                {"stdout": "hi\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
        ["[exit 0]\nstdout:\nhi\n[exit 2]\nstderr:\nno\n[timeout]"],
    ),
    "shell text": ({"type": "shell_call_output", "call_id": "1", "output": "raw"}, ["raw"]),
    "local shell, known by its id": (
        {"type": "local_shell_call_output", "id": "1", "output": "raw"},
        ["raw"],
    ),
    "patch": (
        {"type": "apply_patch_call_output", "call_id": "1", "status": "failed", "output": "no such file"},
        ["failed: no such file"],
    ),
    "patch without words": (
        {"type": "apply_patch_call_output", "call_id": "1", "status": "completed"},
        ["completed"],
    ),
    "output of a neighbouring type": (
        {"type": "function_call_output", "call_id": "1", "output": "ok"},
        ["ok"],
    ),
    "object from older clients": (
        {"type": "function_call_output", "call_id": "1", "output": {"content": "ok", "success": True}},
        ["ok"],
    ),
}


@pytest.mark.parametrize(("item", "texts"), OUTPUTS.values(), ids=OUTPUTS.keys())
def test_each_output_type_becomes_text(item: dict[str, Any], texts: list[str]) -> None:
    assert read_output(item, "input[0]", []) == tuple(map(Words, texts))


def test_a_tool_search_gives_what_it_found() -> None:
    inner = {"type": "function", "name": "inner", "description": "d"}
    tools = [{"type": "namespace", "name": "box", "tools": [inner]}, {"type": "mcp", "server_label": "docs"}]
    found = read_output({"type": "tool_search_output", "tools": tools}, "input[0]", [])
    assert found == (FoundTools((FoundTool("inner", "box", "d"), FoundTool("docs"))),)
