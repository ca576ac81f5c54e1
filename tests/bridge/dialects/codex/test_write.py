"""The body of the `codex` dialect, from whole requests: what a thread is born with, and what its turn begins with."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.dialects.codex.resume import read_outputs
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import ask_again, plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.providers import load_provider

PIXEL = "data:image/png;base64,iVBORw0KGgo="
LOOK: dict[str, Any] = {
    "type": "function",
    "name": "look",
    "description": "Look at it.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "sky"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "blue"}


def plan(model: str = "gpt-5.5", strict: bool = False, **fields: Any) -> Plan:
    target = Target("codex", model, load_provider("codex").capabilities(model))
    request = parse_request({"model": f"codex/{model}", "input": "Hello?", **fields})
    return plan_request(request, target, Host(strict=strict))


def body(**fields: Any) -> dict[str, Any]:
    return plan(**fields).body


def said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def test_a_plain_question_is_a_turn_on_an_empty_thread() -> None:
    assert body() == {"model": "gpt-5.5", "baseInstructions": "", "input": [{"type": "text", "text": "Hello?"}]}


def test_instructions_are_the_base_and_later_system_messages_stay_in_their_place() -> None:
    items = [said("developer", "Dev"), said("user", "One"), said("system", "Sys"), said("user", "Two")]
    built = body(instructions="Base", input=items)
    assert built["baseInstructions"] == "Base"
    assert built["history"] == [said("developer", "Dev"), said("user", "One"), said("developer", "Sys")]
    assert built["input"] == [{"type": "text", "text": "Two"}]


def test_a_chat_callers_system_message_is_the_base() -> None:
    assert body(input=[said("system", "Sys"), said("user", "Hi")])["baseInstructions"] == "Sys"


def test_calls_and_outputs_are_history_and_nothing_is_input() -> None:
    built = body(tools=[LOOK], input=[said("user", "Look up"), said("assistant", "Wait"), CALL, OUTPUT])
    assert built["input"] == []
    assert built["history"] == [said("user", "Look up"), said("assistant", "Wait"), CALL, OUTPUT]


def test_tools_are_declared_with_all_that_the_binary_insists_on() -> None:
    built = body(tools=[LOOK, {"type": "function", "name": "bare"}])
    assert built["dynamicTools"] == [
        {"type": "function", "name": "look", "description": "Look at it.", "inputSchema": LOOK["parameters"]},
        {
            "type": "function",
            "name": "bare",
            "description": "",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ]
    assert built["toolNames"] == {"look": "look", "bare": "bare"}


def test_names_that_codex_would_shadow_are_changed_also_in_the_past() -> None:
    shell = {"type": "function", "name": "exec_command", "parameters": {"type": "object", "properties": {}}}
    items = [said("user", "Run"), {**CALL, "name": "exec_command"}, OUTPUT, said("user", "Again")]
    built = body(tools=[shell], input=items)
    assert [tool["name"] for tool in built["dynamicTools"]] == ["client_exec_command"]
    assert built["toolNames"] == {"client_exec_command": "exec_command"}
    assert built["history"][1]["name"] == "client_exec_command"


def test_a_past_call_of_a_tool_that_is_not_offered_any_more_keeps_its_name() -> None:
    assert body(input=[said("user", "Look"), CALL, OUTPUT])["history"][1] == CALL


@pytest.mark.parametrize(
    ("choice", "names", "words"),
    [
        pytest.param("auto", ["look", "listen"], "", id="auto"),
        pytest.param("none", [], "", id="none"),
        pytest.param({"type": "function", "name": "listen"}, ["listen"], "call the tool `listen`", id="forced"),
        pytest.param("required", ["look", "listen"], "call at least one", id="required"),
    ],
)
def test_a_choice_is_carried_out_by_offering_less(choice: Any, names: list[str], words: str) -> None:
    built = body(tools=[LOOK, {**LOOK, "name": "listen"}], tool_choice=choice)
    assert [tool["name"] for tool in built.get("dynamicTools", [])] == names
    assert words in built["baseInstructions"]
    assert "tool_choice" not in built


def test_free_text_tools_become_functions() -> None:
    built = body(tools=[{"type": "custom", "name": "note", "description": "Write it down."}])
    (tool,) = built["dynamicTools"]
    assert tool["type"] == "function"
    assert tool["inputSchema"]["required"] == ["input"]


def test_effort_summary_verbosity_and_schema_go_where_codex_reads_them() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    built = body(
        stream=True,
        reasoning={"effort": "minimal", "summary": "auto"},
        text={"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}},
    )
    assert built["effort"] == "low"
    assert built["summary"] == "auto"
    assert built["config"] == {"model_verbosity": "low"}
    assert built["outputSchema"] == schema
    assert not {"stream", "stream_options", "reasoning"} & set(built)


def test_an_open_schema_is_told_in_words_because_codex_would_enforce_it_strictly() -> None:
    built = body(text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}})
    assert "outputSchema" not in built
    assert "JSON Schema" in built["baseInstructions"]


def test_everything_that_codex_cannot_be_told_is_said_to_the_client() -> None:
    asked = {"temperature": 0.2, "top_p": 0.5, "max_output_tokens": 9, "parallel_tool_calls": False, "stop": ["x"]}
    planned = plan(**asked)
    assert {decision.path for decision in planned.decisions if decision.action == "ignored"} == set(asked)
    with pytest.raises(RequestRefused):
        plan(temperature=0.2, strict=True)


@pytest.mark.parametrize("detail", [None, "auto"])
def test_an_image_opens_the_turn(detail: str | None) -> None:
    image = {"type": "input_image", "image_url": PIXEL} | ({"detail": detail} if detail else {})
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "See"}, image]}
    built = body(input=[message])
    assert built["input"] == [{"type": "text", "text": "See"}, {"type": "image", "url": PIXEL}]
    assert "history" not in built


def test_an_image_with_a_detail_is_injected_because_a_turn_cannot_carry_it() -> None:
    image = {"type": "input_image", "image_url": PIXEL, "detail": "low"}
    built = body(input=[{"type": "message", "role": "user", "content": [image]}])
    assert built["input"] == []
    assert built["history"] == [{"type": "message", "role": "user", "content": [image]}]


def test_a_remote_image_is_a_note_and_a_decision() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/a.png"}
    planned = plan(input=[{"type": "message", "role": "user", "content": [image]}])
    assert "data URLs only" in planned.body["input"][0]["text"]
    assert any(decision.path == "input[0].content[0]" for decision in planned.decisions)


def test_asking_again_puts_the_question_the_answer_and_the_complaint_behind_each_other() -> None:
    planned = plan()
    again = ask_again(planned, [("bad", "Try again."), ("worse", "Once more.")])
    assert again["history"] == [
        said("user", "Hello?"),
        said("assistant", "bad"),
        said("user", "Try again."),
        said("assistant", "worse"),
    ]
    assert again["input"] == [{"type": "text", "text": "Once more."}]
    assert planned.body["input"] == [{"type": "text", "text": "Hello?"}]
    going_on = plan(tools=[LOOK], input=[said("user", "Look"), CALL, OUTPUT])
    assert ask_again(going_on, [("a", "b")])["history"][3:] == [said("assistant", "a")]
    assert ask_again(going_on, [("", "b")])["history"] == going_on.body["history"]


def test_the_same_request_gives_the_same_bytes() -> None:
    fields: dict[str, Any] = {"tools": [LOOK], "input": [said("user", "x"), CALL, OUTPUT], "instructions": "I"}
    assert list(body(**fields).items()) == list(body(**fields).items())


KEY = b"k" * 32


def sealed(blob: str) -> dict[str, Any]:
    item = {"type": "reasoning", "summary": [], "encrypted_content": blob}
    envelope = seal(Sealed("codex", "", {"encrypted_content": [item]}), KEY)
    return {"type": "reasoning", "summary": [], "encrypted_content": envelope}


def test_a_rebuilt_thread_gets_its_sealed_reasoning_back_in_place() -> None:
    second, done = {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}
    items = [said("user", "Look"), sealed("a"), CALL, sealed("b"), second, OUTPUT, done, said("user", "And?")]
    target = Target("codex", "gpt-5.5", load_provider("codex").capabilities("gpt-5.5"))
    request = parse_request({"model": "codex/gpt-5.5", "input": items, "tools": [LOOK]})
    history = plan_request(request, target, Host(), envelope_key=KEY).body["history"]
    seen = [item.get("encrypted_content") or item.get("call_id") for item in history[1:]]
    assert seen == ["a", "c1", "b", "c2", "c1", "c2"]


def test_images_stay_inside_the_result_and_the_turn_can_go_on() -> None:
    parts = [{"type": "input_text", "text": "Seen"}, {"type": "input_image", "image_url": PIXEL}]
    built = body(tools=[LOOK], input=[said("user", "Look"), CALL, {**OUTPUT, "output": parts}])
    assert built["history"][-1]["output"] == parts
    outputs = read_outputs(built)
    assert outputs is not None
    assert outputs.outputs == {"c1": parts}


def test_several_messages_stay_several() -> None:
    items = [said("user", "Hi"), said("assistant", "One"), said("assistant", "Two"), said("user", "Go")]
    assert body(input=items)["history"] == items[:3]
