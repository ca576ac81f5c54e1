"""Plans for a native Responses endpoint → the exact body that goes upstream."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities, ToolChoiceSupport
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import ask_again, plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.providers import load_provider, provider_names
from isthmus.providers.responses import responses_capabilities, serves
from isthmus.providers.schema import ResponsesFacts

Json = dict[str, Any]

TOOL: Json = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
PATCH: Json = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits.",
    "format": {"type": "grammar", "syntax": "regex", "definition": ".+"},
}
NAMESPACE: Json = {"type": "namespace", "name": "mcp__git", "tools": [{**TOOL, "name": "log"}]}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "name": "number", "schema": SCHEMA, "strict": True}
KEY = b"k" * 32


def native(name: str = "openai", model: str = "", **facts: Any) -> ProviderCapabilities:
    provider = load_provider(name)
    known = provider.responses
    assert known is not None
    if facts:
        known = ResponsesFacts(**{**{f: getattr(known, f) for f in known.__struct_fields__}, **facts})
    return responses_capabilities(provider.capabilities(model), known)


def plan(body: Json, capabilities: ProviderCapabilities | None = None) -> Plan:
    capabilities = capabilities or native()
    request = parse_request({"model": "m", "input": "hi", **body})
    return plan_request(request, Target("up", "m", capabilities), Host(), envelope_key=KEY)


def test_messages_are_items_and_nothing_is_stored_upstream() -> None:
    found = plan(
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "developer", "content": "Rules."},
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Look"}, _image("https://a.example/i.png")],
                },
                {"role": "assistant", "content": "I see."},
                {"role": "user", "content": "More"},
            ],
        }
    )
    assert found.body["store"] is False
    assert found.body["input"] == [
        _message("system", "Be brief."),
        _message("developer", "Rules."),
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {**_image("https://a.example/i.png"), "detail": "auto"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I see.", "annotations": []}],
        },
        _message("user", "More"),
    ]


def _message(role: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _image(url: str) -> Json:
    return {"type": "input_image", "image_url": url}


CUSTOM_TURN: list[Json] = [
    {"role": "user", "content": "Fix it"},
    {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": 'say "hi"\n'},
    {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"},
    {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": '{"at":1}'},
    {"type": "function_call_output", "call_id": "call_2", "output": "seen"},
]


def test_past_custom_calls_get_their_free_text_back_where_custom_tools_are_native() -> None:
    found = plan({"input": CUSTOM_TURN, "tools": [PATCH, TOOL]})
    assert found.body["input"][1:] == CUSTOM_TURN[1:]


def test_past_custom_calls_are_functions_where_custom_tools_are_refused() -> None:
    found = plan({"input": CUSTOM_TURN, "tools": [PATCH, TOOL]}, native("groq"))
    assert found.body["input"][1:3] == [
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "apply_patch",
            "arguments": '{"input":"say \\"hi\\"\\n"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ]
    assert [tool["type"] for tool in found.body["tools"]] == ["function", "function"]


def test_a_function_call_of_a_custom_tool_keeps_its_text() -> None:
    past = {"type": "function_call", "call_id": "c", "name": "apply_patch", "arguments": '{"patch": "x"}'}
    done = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    items = plan({"input": [CUSTOM_TURN[0], past, done], "tools": [PATCH]}).body["input"]
    assert items[1:] == [
        {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": '{"patch": "x"}'},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    ]


def test_tools_are_flat_custom_ones_whole_and_namespaces_opened() -> None:
    body = plan({"tools": [TOOL, PATCH, NAMESPACE, {"type": "web_search"}]}).body
    assert body["tools"][0] == {"type": "function", "strict": False, "name": "look", "parameters": TOOL["parameters"]}
    assert body["tools"][1] == PATCH
    assert (body["tools"][2]["type"], body["tools"][2]["name"]) == ("function", "mcp__git__log")
    assert body["tools"][3] == {"type": "web_search"}


CHOICES: dict[str, tuple[Any, Any]] = {
    "auto": ("auto", "auto"),
    "required": ("required", "required"),
    "function": ({"type": "function", "name": "look"}, {"type": "function", "name": "look"}),
    "custom": ({"type": "custom", "name": "apply_patch"}, {"type": "custom", "name": "apply_patch"}),
    "namespaced": (
        {"type": "function", "name": "log", "namespace": "mcp__git"},
        {"type": "function", "name": "mcp__git__log"},
    ),
}


@pytest.mark.parametrize(("asked", "sent"), CHOICES.values(), ids=list(CHOICES))
def test_a_choice_is_spelled_flat(asked: Any, sent: Any) -> None:
    assert plan({"tools": [TOOL, PATCH, NAMESPACE], "tool_choice": asked}).body["tool_choice"] == sent


def test_an_mcp_server_is_chosen_by_its_label() -> None:
    server = {"type": "mcp", "server_label": "git", "server_url": "https://mcp.example"}
    with_mcp = native(tool_choice=frozenset({"auto", "mcp"}))
    body = plan({"tools": [server], "tool_choice": {"type": "mcp", "server_label": "git"}}, with_mcp).body
    assert body["tools"] == [server]
    assert body["tool_choice"] == {"type": "mcp", "server_label": "git"}


def test_a_forced_search_is_named_by_its_type() -> None:
    forcing = native(tool_choice=frozenset({"auto", "web_search"}))
    assert forcing.tool_choice == ToolChoiceSupport(supported=frozenset({"auto", "web_search"}))
    body = plan({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, forcing).body
    assert body["tool_choice"] == {"type": "web_search"}


def test_a_format_travels_beside_verbosity() -> None:
    body = plan({"text": {"format": FORMAT, "verbosity": "low"}}).body
    assert body["text"] == {"format": FORMAT, "verbosity": "low"}
    assert "response_format" not in body


def test_a_format_that_is_refused_is_weakened_and_told() -> None:
    found = plan({"text": {"format": FORMAT}}, native("deepseek"))
    assert found.body["text"] == {"format": {"type": "json_object"}}
    assert '"n"' in found.body["input"][0]["content"][0]["text"]
    assert [d.path for d in found.diagnostics] == ["text.format"]


def test_parameters_keep_their_responses_names() -> None:
    body = plan({"max_output_tokens": 50, "reasoning": {"effort": "high", "summary": "auto"}, "stream": True}).body
    assert body["max_output_tokens"] == 50
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["stream"] is True
    assert not {"max_tokens", "max_completion_tokens", "reasoning_effort", "stream_options", "messages"} & set(body)


def test_an_endpoint_that_seals_its_reasoning_is_asked_for_it() -> None:
    assert plan({}).body["include"] == ["reasoning.encrypted_content"]
    assert "include" not in plan({}, native("deepseek")).body


def test_log_probabilities_need_to_be_included() -> None:
    body = plan({"top_logprobs": 2}, native(model="gpt-4o")).body
    assert body["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]


def test_a_strict_endpoint_gets_no_field_that_it_does_not_know() -> None:
    found = plan({"metadata": {"a": "b"}, "prompt_cache_key": "k", "user": "u"}, native("groq"))
    assert set(found.body) == {"model", "input", "store", "max_output_tokens"}
    assert {d.path for d in found.diagnostics} == {"prompt_cache_key", "user", "metadata"}


def test_asking_again_adds_the_answer_and_the_words() -> None:
    found = plan({"text": {"format": FORMAT}})
    again = ask_again(found, [("{}", "`n` is missing")])
    assert again["input"][:-2] == found.body["input"]
    assert again["input"][-2]["content"] == [{"type": "output_text", "text": "{}", "annotations": []}]
    assert again["input"][-1] == _message("user", "`n` is missing")


@pytest.mark.parametrize("name", [name for name in provider_names() if load_provider(name).responses is not None])
def test_codex_tools_survive_at_every_native_endpoint(name: str) -> None:
    tools = [TOOL, PATCH, NAMESPACE, {"type": "local_shell"}]
    found = plan({"tools": tools, "input": CUSTOM_TURN}, native(name))
    assert len(found.body["tools"]) == 4
    facts = load_provider(name).responses
    assert facts is not None
    assert {tool["type"] for tool in found.body["tools"]} <= facts.tools | {"function"}
    assert "namespace" not in {tool["type"] for tool in found.body["tools"]}
    assert found.body["store"] is False


def test_the_same_request_gives_the_same_bytes() -> None:
    body = {"input": CUSTOM_TURN, "tools": [PATCH, TOOL, NAMESPACE], "text": {"format": FORMAT}}
    assert repr(plan(body).body) == repr(plan(body).body)


@pytest.mark.parametrize(
    ("models", "model", "there"),
    [([], "any", True), (["qwen3*"], "QWEN3-max", True), (["qwen3*"], "glm-5", False)],
    ids=["all", "by glob", "not there"],
)
def test_an_endpoint_may_serve_some_models_only(models: list[str], model: str, there: bool) -> None:
    assert serves(ResponsesFacts(models=models), model) is there
    assert not serves(None, model)


def _sealed(blob: str) -> Json:
    """What this endpoint sealed, as a client carries it for us."""
    item = {"type": "reasoning", "id": f"rs_{blob}", "summary": [], "encrypted_content": blob}
    return {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": seal(Sealed("up", "", {"encrypted_content": [item]}), KEY),
    }


def _call(call_id: str) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


def _output(call_id: str, given: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": given}


ASK: Json = {"type": "message", "role": "user", "content": "Go"}


def test_each_sealed_thought_goes_back_to_its_own_place() -> None:
    items = [ASK, _sealed("a"), _call("1"), _sealed("b"), _call("2"), _output("1"), _output("2")]
    sent = plan({"input": items, "tools": [TOOL]}).body["input"][1:]
    assert [item.get("encrypted_content") or item.get("call_id") for item in sent] == ["a", "1", "b", "2", "1", "2"]
    assert sent[0] == {"type": "reasoning", "id": "rs_a", "summary": [], "encrypted_content": "a"}


def test_several_messages_stay_several_with_their_phase_and_citations() -> None:
    cited = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}
    said: list[Json] = [
        {
            "type": "message",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
        },
        {
            "type": "message",
            "role": "assistant",
            "phase": "final_answer",
            "content": [
                {"type": "output_text", "text": "Do", "annotations": [cited]},
                {"type": "refusal", "refusal": "Not that."},
            ],
        },
    ]
    assert plan({"input": [ASK, *said, ASK]}).body["input"][1:3] == said
    elsewhere = plan({"input": [ASK, *said, ASK]}, native("deepseek"))
    assert [item.get("phase") for item in elsewhere.body["input"][1:3]] == [None, None]
    assert [d.action for d in elsewhere.decisions if d.path == "input[1].phase"] == ["supported"]


def test_images_stay_inside_the_result_where_the_endpoint_takes_them() -> None:
    parts = [{"type": "input_text", "text": "Seen:"}, {**_image("https://a.example/i.png"), "detail": "low"}]
    items = [ASK, _call("1"), _output("1", parts)]
    assert plan({"input": items, "tools": [TOOL]}).body["input"][-1] == _output("1", parts)
    moved = plan({"input": items, "tools": [TOOL]}, native(tool_media=False)).body["input"]
    assert [item["type"] for item in moved] == ["message", "function_call", "function_call_output", "message"]
    assert moved[-1]["content"][-1] == parts[1]


APPROVALS: list[Json] = [
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "git", "tools": [{"name": "log", "input_schema": {}}]},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "git", "name": "log", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "git", "name": "log", "arguments": "{}", "output": "…"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
]


def test_the_endpoints_own_items_go_back_as_they_came() -> None:
    done = {"type": "message", "role": "assistant", "content": "Done."}
    found = plan({"input": [ASK, *APPROVALS, done, ASK]})
    assert found.body["input"][1:6] == APPROVALS
    assert found.diagnostics == ()


def test_elsewhere_they_are_notes_that_are_told() -> None:
    found = plan({"input": [ASK, *APPROVALS, ASK]}, native("deepseek"))
    assert {item["type"] for item in found.body["input"]} == {"message"}
    assert {d.path for d in found.diagnostics} == {f"input[{index}]" for index in range(1, 6)}


def test_parts_of_a_message_stay_apart() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert plan({"input": [{"role": "user", "content": parts}]}).body["input"][0]["content"] == parts


def test_an_empty_answer_is_not_sent_back() -> None:
    found = plan({})
    assert ask_again(found, [("", "Answer.")])["input"] == [*found.body["input"], _message("user", "Answer.")]


def test_a_name_on_a_message_is_told_to_be_lost() -> None:
    found = plan({"input": [{"role": "user", "name": "ann", "content": "hi"}]})
    assert [(d.path, d.action) for d in found.diagnostics] == [("input[0].name", "ignored")]
