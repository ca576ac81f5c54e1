"""Correct objects to start from: a response, every item we send, and a correct stream for any of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

CITATION: Json = {"type": "url_citation", "url": "https://x.test", "title": "X", "start_index": 0, "end_index": 2}
LOGPROB: Json = {"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}

ITEMS: dict[str, Json] = {
    "message": {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "phase": "final_answer",
        "content": [
            {"type": "output_text", "text": "Hi you", "annotations": [CITATION], "logprobs": [LOGPROB]},
            {"type": "refusal", "refusal": "but no"},
        ],
    },
    "reasoning": {
        "type": "reasoning",
        "id": "rs_1",
        "status": "completed",
        "summary": [{"type": "summary_text", "text": "in short"}, {"type": "summary_text", "text": "and"}],
        "content": [{"type": "reasoning_text", "text": "at length"}],
        "encrypted_content": "isth1.x.y",
    },
    "function_call": {
        "type": "function_call",
        "id": "fc_1",
        "status": "completed",
        "call_id": "call_1",
        "namespace": "mcp__files",
        "name": "read",
        "arguments": '{"path":"a"}',
    },
    "custom_tool_call": {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "status": "completed",
        "call_id": "call_2",
        "name": "apply_patch",
        "input": "*** Begin Patch\n*** End Patch",
    },
    "shell_call": {
        "type": "shell_call",
        "id": "sh_1",
        "status": "completed",
        "call_id": "call_3",
        "action": {"commands": ["ls -l", "pwd"], "timeout_ms": None, "max_output_length": 100},
    },
    "local_shell_call": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "status": "completed",
        "call_id": "call_4",
        "action": {"type": "exec", "command": ["ls"], "env": {"A": "b"}, "timeout_ms": 5},
    },
    "apply_patch_call": {
        "type": "apply_patch_call",
        "id": "apc_1",
        "status": "completed",
        "call_id": "call_5",
        "operation": {"type": "update_file", "path": "a", "diff": "@@"},
    },
    "tool_search_call": {
        "type": "tool_search_call",
        "id": "tsc_1",
        "status": "completed",
        "call_id": "call_6",
        "execution": "client",
        "arguments": {"query": "files"},
    },
    "tool_search_output": {
        "type": "tool_search_output",
        "id": "tso_1",
        "status": "completed",
        "call_id": None,
        "execution": "server",
        "tools": [{"type": "function", "name": "look"}],
    },
    "web_search_call": {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "isthmus"},
    },
    "file_search_call": {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"]},
    "code_interpreter_call": {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "1 + 1",
        "container_id": "cntr_1",
        "outputs": None,
    },
    "image_generation_call": {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
    "mcp_call": {
        "type": "mcp_call",
        "id": "mcp_1",
        "status": "completed",
        "server_label": "files",
        "name": "read",
        "arguments": "{}",
        "output": "ok",
    },
    "mcp_list_tools": {
        "type": "mcp_list_tools",
        "id": "mcpl_1",
        "status": "completed",
        "server_label": "files",
        "tools": [],
    },
    "mcp_approval_request": {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "status": "completed",
        "server_label": "files",
        "name": "read",
        "arguments": "{}",
    },
    "compaction": {"type": "compaction", "id": "cmp_1", "status": "completed", "encrypted_content": "isth1.x.y"},
}


def response(*items: str, **changes: Any) -> Json:
    """A completed response with these sample items as its output; `changes` replace fields."""
    made: Json = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "completed_at": 1_700_000_001,
        "status": "completed",
        "incomplete_details": None,
        "error": None,
        "model": "some-model",
        "output": [ITEMS[name] for name in items],
        "previous_response_id": None,
        "instructions": None,
        "tools": [{"type": "function", "name": "f", "description": None, "parameters": {}, "strict": None}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "max_tool_calls": None,
        "max_output_tokens": None,
        "truncation": "disabled",
        "text": {"format": {"type": "text"}},
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "reasoning": {"effort": None, "summary": None},
        "usage": {
            "input_tokens": 3,
            "output_tokens": 4,
            "total_tokens": 7,
            "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 2},
        },
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": {"a": "b"},
        "safety_identifier": None,
        "prompt_cache_key": None,
    }
    return copy.deepcopy({**made, **changes})


ENDINGS: dict[str, Json] = {
    "completed": {},
    "incomplete": {"completed_at": None, "incomplete_details": {"reason": "max_output_tokens"}},
    "failed": {"completed_at": None, "error": {"code": "bridge.response.invalid_output_format", "message": "no"}},
}


def stream(*items: str, ending: str = "completed", spelling: str = "reasoning_text") -> list[Json]:
    """A correct stream of these items, one after another, heartbeat included."""
    final = response(*items, status=ending, **ENDINGS[ending])
    running = {**final, "status": "in_progress", "completed_at": None, "error": None, "incomplete_details": None}
    running |= {"output": [], "usage": None}
    events: list[Json] = [{"type": "response.created", "response": running}]
    for index, item in enumerate(final["output"]):
        events.append({"type": "response.in_progress", "response": running})
        events.extend(_item_events(index, item, spelling))
    if not items:
        events.append({"type": "response.in_progress", "response": running})
    if ending == "failed":
        error = {"code": None, "message": "no", "param": None}
        events.append({"type": "error", "error": {"type": "server_error", **error}, **error})
    events.append({"type": f"response.{ending}", "response": final})
    # Each event alone: a test that breaks one must not break another that shares its item.
    return renumber([copy.deepcopy(event) for event in events])


def renumber(events: list[Json]) -> list[Json]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _item_events(index: int, item: Json, spelling: str) -> Iterator[Json]:
    at = {"item_id": item["id"], "output_index": index}
    yield {"type": "response.output_item.added", "output_index": index, "item": _opening(item)}
    for number, part in enumerate(item.get("summary", ())):
        yield from _part_events({**at, "summary_index": number}, part, spelling)
    for number, part in enumerate(item.get("content", ())):
        yield from _part_events({**at, "content_index": number}, part, spelling)
    match item["type"]:
        case "function_call":
            yield from _text_events("response.function_call_arguments", at, "arguments", item["arguments"])
        case "custom_tool_call":
            yield from _text_events("response.custom_tool_call_input", at, "input", item["input"])
        case "shell_call":
            for number, command in enumerate(item["action"]["commands"]):
                here = {"output_index": index, "command_index": number}
                yield {"type": "response.shell_call_command.added", **here, "command": ""}
                yield from _text_events("response.shell_call_command", here, "command", command)
        case "compaction":
            yield {"type": "response.compaction.compacting", **at}
        case str() as kind if kind in _STAGES:
            yield {"type": f"response.{kind}.in_progress", **at}
            if kind == "code_interpreter_call":
                yield from _text_events("response.code_interpreter_call_code", at, "code", item["code"])
            if kind == "mcp_call":
                yield from _text_events("response.mcp_call_arguments", at, "arguments", item["arguments"])
            for stage in _STAGES[kind]:
                yield {"type": f"response.{kind}.{stage}", **at}
            if kind == "image_generation_call":
                piece = {"partial_image_index": 0, "partial_image_b64": "aGk="}
                yield {"type": "response.image_generation_call.partial_image", **at, **piece}
            yield {"type": f"response.{kind}.completed", **at}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


_STAGES = {
    "web_search_call": ("searching",),
    "file_search_call": ("searching",),
    "code_interpreter_call": ("interpreting",),
    "image_generation_call": ("generating",),
    "mcp_call": (),
    "mcp_list_tools": (),
}


def _opening(item: Json) -> Json:
    empty: Json = {"content": [], "summary": [], "arguments": "", "input": ""}
    opened = {
        **item,
        "status": "in_progress",
        **{key: empty[key] for key in empty if isinstance(item.get(key), (str, list))},
    }
    if item["type"] == "shell_call":
        opened["action"] = {"commands": []}
    return opened


def _part_events(at: Json, part: Json, spelling: str) -> Iterator[Json]:
    kind = part["type"]
    name = "refusal" if kind == "refusal" else "text"
    family = {"reasoning_text": spelling, "summary_text": "reasoning_summary_text"}.get(kind, kind)
    around = "response.reasoning_summary_part" if kind == "summary_text" else "response.content_part"
    opened = {"type": kind, name: "", **({"annotations": []} if kind == "output_text" else {})}
    yield {"type": f"{around}.added", **at, "part": opened}
    texts = list(_text_events(f"response.{family}", at, name, part[name]))
    if kind == "output_text":
        first, *others = texts
        texts = [{**first, "logprobs": part["logprobs"]}, *({**event, "logprobs": []} for event in others)]
        texts[-1]["logprobs"] = part["logprobs"]
    yield from texts
    for number, note in enumerate(part.get("annotations", ())):
        note_at = {"annotation_index": number, "annotation": note}
        yield {"type": "response.output_text.annotation.added", **at, **note_at}
    yield {"type": f"{around}.done", **at, "part": part}


def _text_events(family: str, at: Json, name: str, text: str) -> Iterator[Json]:
    middle = len(text) // 2
    yield {"type": f"{family}.delta", **at, "delta": text[:middle]}
    yield {"type": f"{family}.delta", **at, "delta": text[middle:]}
    yield {"type": f"{family}.done", **at, name: text}
