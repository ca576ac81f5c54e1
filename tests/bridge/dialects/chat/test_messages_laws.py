"""Laws of the whole way from items to messages, on random histories."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_sequence import validate_chat_sequence
from isthmus.bridge.capabilities import MessageRules
from isthmus.bridge.dialects.chat.messages import build_messages
from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.tools import ToolIdentity, ToolIdentityMap
from isthmus.errors import RequestRefused

KEY = b"k" * 32
BASE64 = "QUJDREVG" * 40
SEALED = seal(Sealed("p", "sealed thought", {"reasoning_details": [{"text": "d"}]}, {"call_0": {"s": 1}}), KEY)
COMPACTED = seal(Sealed("p", "compacted"), KEY, kind="compaction")
IDENTITIES = ToolIdentityMap((ToolIdentity("f", "function", "f", "function"),))

RULES = {
    "plain": MessageRules(),
    "deepseek": MessageRules(replay="tool_turns", replay_placeholder=" ", needs_user=True, empty_content="empty"),
    "one system message": MessageRules(system="leading", empty_content="omit", input=frozenset({"image"})),
    "mistral": MessageRules(call_ids="alphanumeric9", replay="always", replay_chunks=True, remote_images=False),
    "gemini": MessageRules(
        replay_extras="extra_content",
        replay_extras_fallback={"s": 0},
        input=frozenset({"image", "audio", "file", "video"}),
    ),
    "openrouter": MessageRules(replay="always", replay_details=True, replay_field="reasoning", developer="developer"),
}

ids = st.sampled_from(["call_0", "call_1", "call_2", "call_0_2", ""])
texts = st.sampled_from(["", "hello", "line\n", "a b"])
parts = st.one_of(
    st.builds(lambda text: {"type": "input_text", "text": text}, texts),
    st.builds(lambda text: {"type": "refusal", "refusal": text}, texts),
    st.sampled_from(
        [
            {"type": "input_image", "image_url": f"data:image/png;base64,{BASE64}", "detail": "original"},
            {"type": "input_image", "image_url": "https://x/a.png"},
            {"type": "input_image", "file_id": "file_1"},
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{BASE64}"},
            {"type": "input_file", "file_data": BASE64},
            {"type": "input_file", "file_data": f"data:video/mp4;base64,{BASE64}"},
            {"type": "input_file", "file_url": "https://x/clip.mp4"},
            {"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}},
            {"type": "hologram", "data": BASE64},
            {"type": "hologram", "text": "words"},
        ]
    ),
)
contents = st.one_of(texts, st.none(), st.lists(parts, max_size=3))
outputs = st.one_of(texts, st.lists(parts, max_size=3))


def item(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


names = st.sampled_from(["f", "other tool", "", " "])
items = st.one_of(
    item("message", role=st.sampled_from(["user", "assistant", "system", "developer"]), content=contents),
    item(
        "reasoning",
        summary=st.sampled_from([[], [{"type": "summary_text", "text": "short"}]]),
        content=st.sampled_from([None, [{"type": "reasoning_text", "text": "thought"}]]),
        encrypted_content=st.sampled_from([None, "gAAAA", SEALED]),
    ),
    item(
        "function_call",
        call_id=ids,
        name=names,
        namespace=st.sampled_from([None, "functions", "ns"]),
        arguments=st.sampled_from(["{}", '{"a": 1}', "", "{", "[]"]),
    ),
    item("function_call_output", call_id=ids, output=outputs),
    item("custom_tool_call", call_id=ids, name=names, input=texts),
    item("custom_tool_call_output", call_id=ids, output=outputs),
    item("shell_call", call_id=ids, action=st.just({"commands": ["ls"]})),
    item(
        "shell_call_output",
        call_id=ids,
        output=st.sampled_from(["x", [{"stdout": "o", "outcome": {"type": "exit", "exit_code": 1}}]]),
    ),
    item("local_shell_call", call_id=ids, action=st.just({"type": "exec", "command": ["ls"]})),
    item("local_shell_call_output", id=ids, output=texts),
    item("apply_patch_call", call_id=ids, operation=st.just({"type": "delete_file", "path": "a"})),
    item("apply_patch_call_output", call_id=ids, status=st.just("failed"), output=texts),
    item("tool_search_call", call_id=st.none() | ids, arguments=st.sampled_from([{}, "{", None])),
    item("tool_search_output", call_id=st.none() | ids, tools=st.just([{"type": "function", "name": "f"}])),
    item("computer_call_output", call_id=ids, output=st.just({"image_url": f"data:image/png;base64,{BASE64}"})),
    item("image_generation_call", result=st.just(BASE64)),
    item("mcp_call", name=names, output=st.sampled_from([None, "done", BASE64])),
    item("compaction", encrypted_content=st.sampled_from([None, "gAAAA", COMPACTED])),
    st.sampled_from(
        [
            {"type": "web_search_call", "id": "ws"},
            {"type": "file_search_call", "queries": ["q"], "results": [{"text": "t"}]},
            {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}},
            {"type": "code_interpreter_call", "code": "1", "outputs": [{"type": "image", "url": BASE64}]},
            {"type": "mcp_list_tools", "tools": []},
            {"type": "mcp_approval_request", "name": "f", "arguments": "{}"},
            {"type": "mcp_approval_response", "approve": True},
            {"type": "additional_tools", "tools": []},
            {"type": "agent_message", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "compaction_trigger"},
            {"type": "context_compaction"},
            {"type": "holodeck"},
        ]
    ),
)
histories = st.lists(items, max_size=14)


def everything(given: list[dict[str, Any]], rules: MessageRules) -> tuple[list[dict[str, Any]], list[Any]]:
    history = normalise_history(parse_request({"input": given}).items, envelope_key=KEY, provider="p")
    plan = build_messages(history, rules=rules, identities=IDENTITIES, instructions="I", preamble="P", thinking=True)
    return plan.messages, [*history.decisions, *plan.decisions]


def texts_in(messages: list[dict[str, Any]]) -> str:
    found = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            found.append(content)
        elif isinstance(content, list):
            found.extend(part["text"] for part in content if part["type"] == "text")
        found.extend(call["function"]["arguments"] for call in message.get("tool_calls", []))
    return "\n".join(found)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
@given(given_items=histories)
@settings(max_examples=120, deadline=None)
def test_any_history_becomes_a_valid_chat_sequence(given_items: list[dict[str, Any]], rules: MessageRules) -> None:
    before = json.dumps(given_items)
    messages, decisions = everything(given_items, rules)
    assert validate_chat_sequence(messages) is None
    assert BASE64[:64] not in texts_in(messages)
    assert json.dumps(messages) == json.dumps(everything(given_items, rules)[0])
    assert json.dumps(given_items) == before
    for message in messages:
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    for decision in decisions:
        assert decision.reason
        assert (decision.code == "") == (decision.action == "supported")


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
@given(given_items=histories)
@settings(max_examples=120, deadline=None)
def test_no_item_is_lost_in_silence(given_items: list[dict[str, Any]], rules: MessageRules) -> None:
    """Each item is marked with words of its own; they arrive, or a decision names the item."""
    marked = [mark(given, f"mark{index}x") for index, given in enumerate(given_items)]
    messages, decisions = everything([given for given, _ in marked], rules)
    sent = json.dumps(messages)
    paths = " ".join(decision.path for decision in decisions)
    for index, (_, word) in enumerate(marked):
        assert (word is not None and word in sent) or f"input[{index}]" in paths, (index, given_items[index])


def mark(given: dict[str, Any], word: str) -> tuple[dict[str, Any], str | None]:
    """A copy with `word` in the text that should arrive; `None` where the item has no such text."""
    match given["type"]:
        case "message" if given["content"]:
            text = {"type": "input_text", "text": word}
            extra = given["content"] if isinstance(given["content"], list) else []
            return {**given, "content": [text, *extra]}, word
        case "reasoning":
            details = {"reasoning_details": [{"text": word}]}
            envelope = seal(Sealed("p", word, details), KEY) if given["encrypted_content"] == SEALED else None
            content = [{"type": "reasoning_text", "text": word}] if given["content"] else None
            return {**given, "content": content, "encrypted_content": envelope, "summary": [{"text": word}]}, word
        case "compaction" if given["encrypted_content"] == COMPACTED:
            return {**given, "encrypted_content": seal(Sealed("q", word), KEY)}, word
        case "function_call":
            return {**given, "arguments": json.dumps({"a": word})}, word
        case "custom_tool_call":
            return {**given, "input": word}, word
        case "shell_call" | "local_shell_call":
            return {**given, "action": {"command": [word]}}, word
        case "apply_patch_call":
            return {**given, "operation": {"path": word}}, word
        case "tool_search_call":
            return {**given, "arguments": {"query": word}}, word
        case "tool_search_output":
            return {**given, "tools": [{"type": "function", "name": word}]}, word
        case kind if kind.endswith("_output") and kind != "computer_call_output":
            return {**given, "output": word}, word
    return given, None


turns = st.lists(
    st.sampled_from(
        [
            [{"type": "message", "role": "user", "content": "question"}],
            [{"type": "message", "role": "assistant", "content": "answer"}],
            [{"type": "message", "role": "developer", "content": "rule"}],
            [
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
                {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "1"},
                {"type": "function_call_output", "call_id": "call_0", "output": "0"},
            ],
        ]
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
@given(before=turns, after=turns)
@settings(max_examples=60, deadline=None)
def test_a_longer_conversation_begins_with_the_messages_of_the_shorter(
    before: list[list[dict[str, Any]]], after: list[list[dict[str, Any]]], rules: MessageRules
) -> None:
    """What prompt caches live from; the next thing said by a user is where one request ends and another begins."""
    question = {"type": "message", "role": "user", "content": "question"}
    short = [question, *(given for turn in before for given in turn)]
    whole = [*short, question, *(given for turn in after for given in turn)]
    shorter, longer = everything(short, rules)[0], everything(whole, rules)[0]
    assert longer[: len(shorter)] == shorter


@given(histories, st.integers(0, 14))
@settings(max_examples=50, deadline=None)
def test_an_unresolved_reference_is_the_only_refusal(given_items: list[dict[str, Any]], at: int) -> None:
    given_items.insert(at, {"type": "item_reference", "id": "msg_x"})
    with pytest.raises(RequestRefused, match="msg_x"):
        everything(given_items, RULES["plain"])


HOSTED = ["file_search_call", "computer_call", "computer_call_output", "code_interpreter_call", "mcp_call"]
HOSTED += ["image_generation_call", "mcp_approval_request", "mcp_approval_response", "agent_message", "holodeck"]
FIELDS = ["queries", "results", "action", "actions", "output", "outputs", "code", "error", "name", "arguments"]
FIELDS += ["content", "text", "author", "approve", "reason", "server_label", "result", "revised_prompt"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "type", *FIELDS]), inner),
    max_leaves=6,
)


@given(st.sampled_from(HOSTED), st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=5))
@settings(max_examples=200, deadline=None)
def test_items_that_nobody_checked_never_break_the_way(kind: str, fields: dict[str, Any]) -> None:
    messages, decisions = everything([{**fields, "type": kind}], RULES["gemini"])
    assert validate_chat_sequence(messages) is None
    assert [decision.path for decision in decisions][:1] == ["input[0]"]


@given(json_values, json_values)
@settings(max_examples=200, deadline=None)
def test_parts_that_nobody_checked_never_break_the_way(one: Any, other: Any) -> None:
    kinds = ["input_image", "input_file", "input_audio", "input_video", "hologram"]
    fields = ["image_url", "file_data", "file_url", "file_id", "filename", "input_audio", "audio_url", "video_url"]
    parts = [{"type": kind, **dict.fromkeys(fields, one), "detail": other} for kind in kinds]
    everything([{"type": "message", "role": "user", "content": parts}], RULES["gemini"])
    everything([{"type": "function_call_output", "call_id": "1", "output": parts}], RULES["plain"])
