"""Turns → Responses items, in the order in which they happened."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import MessageRules, ToolSupport
from isthmus.bridge.dialects.items import ItemWriter, message
from isthmus.bridge.types.history import (
    Acted,
    Audio,
    File,
    Image,
    Kept,
    PastCall,
    PastResult,
    PastTurn,
    Said,
    Spoken,
    Thought,
    Words,
)
from isthmus.testing.fold import plan_for

Json = dict[str, Any]
SEES = frozenset({"image", "file", "audio", "video"})


def write(*turns: PastTurn, tools: list[Json] | None = None, **rules: Any) -> tuple[list[Json], list[tuple[str, str]]]:
    native = ToolSupport(native=frozenset({"function", "custom"}), as_is=True)
    plan = plan_for({"tools": tools or []}, dialect="responses", tools=native, messages=MessageRules(**rules))
    writer = ItemWriter(plan)
    writer.write(turns)
    return writer.items, [(said.path, said.action) for said in writer.decisions]


def said(text: str) -> Json:
    return message("assistant", [{"type": "output_text", "text": text, "annotations": []}])


def user(*parts: Json) -> Json:
    return message("user", [*parts])


def text(words: str) -> Json:
    return {"type": "input_text", "text": words}


def test_every_kind_of_part_has_its_spelling() -> None:
    parts = (
        Words("look"),
        Image("p", "data:image/png;base64,QQ=="),
        File("p", "a.pdf", "data:application/pdf;base64,QQ=="),
        File("p", url="https://a.example/b.mp4", video=True),
        Audio("p", "QQ==", "wav"),
    )
    [item], told = write(Said("user", parts, "input[0]"), input=SEES)
    assert item == user(
        text("look"),
        {"type": "input_image", "image_url": "data:image/png;base64,QQ==", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="},
        {"type": "input_video", "video_url": "https://a.example/b.mp4"},
        {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
    )
    assert told == []


def test_a_name_has_no_place_and_that_is_told() -> None:
    items, told = write(Said("developer", (Words("a"), Words("b")), "input[0]", name="ann"))
    assert items == [message("developer", [text("a\nb")])]
    assert told == [("input[0].name", "ignored")]


@pytest.mark.parametrize("known", [False, True])
def test_a_cache_breakpoint_travels_where_it_is_known(known: bool) -> None:
    mark = {"type": "default"}
    parts = (Words("a", breakpoint=mark), Words("b"))
    [system], _ = write(Said("system", parts, "p"), cache_breakpoints=known)
    marked = [{**text("a"), "prompt_cache_breakpoint": mark}, text("b")]
    assert system["content"] == (marked if known else [text("a\nb")])


CALL = PastCall("c1", "f", '{"a":1}', "p", free_text="a")
RESULT = PastResult((Words("ok"),), "p")


def acted(*steps: Any, results: tuple[PastResult, ...] = ()) -> Acted:
    return Acted(
        "p",
        steps,
        tuple(step for step in steps if isinstance(step, Thought)),
        tuple(step.text for step in steps if isinstance(step, Spoken)),
        tuple(step for step in steps if isinstance(step, PastCall)),
        results,
    )


def test_steps_stay_apart_and_in_place_and_results_follow_them() -> None:
    kept = {"type": "web_search_call", "id": "w"}
    steps = (Thought("t", "hm"), Spoken("s", "a", phase="commentary"), Kept("k", kept), CALL, Spoken("s", "b"))
    items, told = write(acted(*steps, results=(RESULT,)), Kept("k", kept), replay="always", phases=True)
    assert items == [
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {**said("a"), "phase": "commentary"},
        kept,
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
        said("b"),
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        kept,
    ]
    assert told == []


def test_a_native_custom_call_gets_its_free_text_back() -> None:
    items, _ = write(acted(CALL, results=(RESULT,)), tools=[{"type": "custom", "name": "f"}])
    assert items == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "a"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    ]


def test_sealed_reasoning_goes_back_first_and_unwanted_reasoning_is_left_out() -> None:
    sealed = {"type": "reasoning", "id": "rs", "encrypted_content": "x"}
    own = Thought("t", extras={"encrypted_content": [sealed]})
    items, told = write(acted(Spoken("s", "a"), own), replay_extras="encrypted_content")
    assert (items, told) == ([sealed, said("a")], [])
    items, told = write(acted(Spoken("s", "a"), Thought("t", "hm")))
    assert (items, told) == ([said("a")], [("t", "supported")])


def test_a_turn_that_broke_off_while_thinking_is_left_out_and_told() -> None:
    assert write(acted(Thought("t", "hm")), replay="always") == ([], [("t", "ignored")])


def test_media_that_a_result_cannot_carry_follow_in_a_user_message() -> None:
    image = Image("p", "data:image/png;base64,QQ==")
    turn = acted(CALL, results=(PastResult((Words("see"), image), "p"),))
    shown = {"type": "input_image", "image_url": image.url, "detail": "auto"}
    inside, _ = write(turn, input=SEES, tool_media=True)
    assert inside[1]["output"] == [text("see"), shown]
    behind, told = write(turn, input=SEES)
    assert isinstance(behind[1]["output"], str)
    assert behind[2] == user(text("[from the output of `f`]"), shown)
    assert told == [("p", "degraded")]


def test_a_refusal_stays_one() -> None:
    [item], _ = write(acted(Spoken("s", "No", (Words("No", refusal=True),))))
    assert item["content"] == [{"type": "refusal", "refusal": "No"}]
