"""The oracle is only worth what it refuses: one test per defect that it must see."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from wire import document, samples, sdk
from wire.defects import put
from wire.oracle import check_item, check_response

Json = dict[str, Any]
ALL = tuple(samples.ITEMS)


# What is right


@pytest.mark.parametrize("name", ALL)
def test_every_item_we_send_passes(name: str) -> None:
    check_item(samples.ITEMS[name])


RIGHT: dict[str, Json] = {
    "queued": {"status": "queued", "completed_at": None, "usage": None, "output": []},
    "cancelled with a broken last item": {
        "status": "cancelled",
        "completed_at": None,
        "output": [samples.ITEMS["reasoning"], {**samples.ITEMS["message"], "status": "incomplete"}],
    },
    "output_text": {"output_text": "Hi you"},
    "our extension": {"isthmus": {"diagnostics": [], "provider": "p"}},
    "no reasoning": {"reasoning": None},
    "echoed schema": {
        "text": {
            "format": {
                "type": "json_schema",
                "name": "n",
                "description": None,
                "schema": {"type": "object"},
                "strict": True,
            },
            "verbosity": "low",
        }
    },
    "tools of other kinds": {"tools": [{"type": "custom", "name": "c"}, {"type": "odd_vendor_tool"}]},
    "named function": {"tool_choice": {"type": "function", "name": "f"}},
    "named custom": {"tool_choice": {"type": "custom", "name": "f"}},
    "allowed tools": {
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
        }
    },
    "patch cut off": {
        "status": "incomplete",
        "completed_at": None,
        "incomplete_details": {"reason": "content_filter"},
        "output": [{**samples.ITEMS["apply_patch_call"], "status": "incomplete"}],
    },
    "file citation": {
        "output": [
            {
                **samples.ITEMS["message"],
                "content": [
                    {
                        "type": "output_text",
                        "text": "x",
                        "annotations": [{"type": "file_citation", "file_id": "f", "filename": "f", "index": 0}],
                    }
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("changes", RIGHT.values(), ids=RIGHT)
def test_a_correct_response_passes(changes: Json) -> None:
    check_response({**samples.response("message"), **changes})


# What is wrong with a response


MESSAGE = "output.0"
REASONING = "output.1"
CALL = "output.2"
RESPONSE_DEFECTS: dict[str, tuple[Callable[[Json], None], str]] = {
    "completed_at missing": (put("completed_at", ...), '"completed_at" is a required'),
    "completed_at null though completed": (put("completed_at", None), "set exactly when the status is `completed`"),
    "completed before created": (put("completed_at", 1), "before created_at"),
    "created_at a float": (put("created_at", 1_700_000_000.0), "without a fraction"),
    "temperature null": (put("temperature", None), "temperature: null"),
    "top_p missing": (put("top_p", ...), '"top_p" is a required'),
    "store missing": (put("store", ...), '"store" is a required'),
    "presence_penalty null": (put("presence_penalty", None), "presence_penalty"),
    "usage missing": (put("usage", ...), '"usage" is a required'),
    "usage without details": (put("usage.input_tokens_details", ...), "input_tokens_details"),
    "usage without cache writes": (put("usage.input_tokens_details.cache_write_tokens", ...), "cache_write_tokens"),
    "max_tool_calls missing": (put("max_tool_calls", ...), '"max_tool_calls" is a required'),
    "text without format": (put("text", {}), '"format" is a required'),
    "verbosity null": (put("text.verbosity", None), "text.verbosity"),
    "tool without strict": (put("tools.0.strict", ...), '"strict" is a required'),
    "unknown status": (put("status", "done"), "status"),
    "unknown field": (put("outputs", []), "outputs"),
    "output_text of another answer": (put("output_text", "Hi"), "not the text of the messages"),
    "usage estimated or not": (put("usage.estimated", False), "usage.estimated"),
    "unprefixed id": (put("id", "1"), "id"),
    "reasoning without effort": (put("reasoning", {"summary": None}), '"effort" is a required'),
    "effort off the list": (put("reasoning.effort", "minimal"), "reasoning.effort"),
    "metadata with a number": (put("metadata", {"a": 1}), "metadata.a"),
    "service tier the SDK cannot read": (put("service_tier", "on_demand"), "service_tier"),
    "error though completed": (put("error", {"code": "x", "message": "y"}), "set exactly when the status is `failed`"),
    "incomplete without details": (put("status", "incomplete"), "set exactly when the status is `incomplete`"),
    "phase null": (put(f"{MESSAGE}.phase", None), "phase"),
    "annotations missing": (put(f"{MESSAGE}.content.0.annotations", ...), '"annotations" is a required'),
    "logprobs null": (put(f"{MESSAGE}.content.0.logprobs", None), "logprobs"),
    "citation without title": (put(f"{MESSAGE}.content.0.annotations.0.title", ...), '"title" is a required'),
    "item without status": (put(f"{MESSAGE}.status", ...), '"status" is a required'),
    "item without id": (put(f"{CALL}.id", ...), '"id" is a required'),
    "item in progress": (put(f"{CALL}.status", "in_progress"), "unfinished in a completed response"),
    "item incomplete though completed": (put(f"{CALL}.status", "incomplete"), "unfinished in a completed response"),
    "unknown item type": (put(f"{CALL}.type", "function"), "output[2].type"),
    "ids not unique": (put(f"{CALL}.id", "msg_1"), "share an id"),
    "namespace null": (put(f"{CALL}.namespace", None), "namespace"),
    "arguments an object": (put(f"{CALL}.arguments", {}), "arguments"),
    "encrypted_content null": (put(f"{REASONING}.encrypted_content", None), "encrypted_content"),
    "summary missing": (put(f"{REASONING}.summary", ...), '"summary" is a required'),
    "reasoning content null": (put(f"{REASONING}.content", None), "content"),
}


@pytest.mark.parametrize(("defect", "complaint"), RESPONSE_DEFECTS.values(), ids=RESPONSE_DEFECTS)
def test_a_defective_response_is_refused(defect: Callable[[Json], None], complaint: str) -> None:
    broken = samples.response("message", "reasoning", "function_call")
    check_response(broken)
    defect(broken)
    with pytest.raises(AssertionError) as caught:
        check_response(broken)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("name", samples.response())
def test_no_field_of_a_response_may_be_left_out(name: str) -> None:
    broken = samples.response()
    del broken[name]
    with pytest.raises(AssertionError, match=f'"{name}" is a required'):
        check_response(broken)


def test_a_broken_item_must_be_the_last() -> None:
    broken = samples.response("message", "function_call", status="incomplete", **samples.ENDINGS["incomplete"])
    broken["output"][0]["status"] = "incomplete"
    with pytest.raises(AssertionError, match="not the last"):
        check_response(broken)


ITEM_DEFECTS: dict[str, tuple[str, Callable[[Json], None]]] = {
    "shell command a string": ("shell_call", put("action.commands", "ls")),
    "shell action missing": ("shell_call", put("action", ...)),
    "local shell without env": ("local_shell_call", put("action.env", ...)),
    "local shell user null": ("local_shell_call", put("action.user", None)),
    "patch operation unknown": ("apply_patch_call", put("operation.type", "move_file")),
    "patch without diff": ("apply_patch_call", put("operation.diff", ...)),
    "custom input missing": ("custom_tool_call", put("input", ...)),
    "custom call without call_id": ("custom_tool_call", put("call_id", ...)),
    "search without execution": ("tool_search_call", put("execution", ...)),
    "search arguments as text": ("tool_search_call", put("arguments", "{}")),
    "web search without action": ("web_search_call", put("action", ...)),
    "compaction without content": ("compaction", put("encrypted_content", ...)),
}


@pytest.mark.parametrize(("name", "defect"), ITEM_DEFECTS.values(), ids=ITEM_DEFECTS)
def test_a_defective_item_is_refused(name: str, defect: Callable[[Json], None]) -> None:
    broken = copy.deepcopy(samples.ITEMS[name])
    defect(broken)
    with pytest.raises(AssertionError):
        check_item(broken)


# Each judge alone


@pytest.mark.parametrize("place", ["model", "tool_choice", "parallel_tool_calls", "tools", "output"])
def test_the_sdk_alone_sees_a_wrong_type(place: str) -> None:
    response = samples.response("message")
    response[place] = 5 if place not in ("tools", "output") else [{"type": "message"}]
    if place == "tools":
        response[place] = [{"type": "function"}]
    assert sdk.judge_response(response)


def test_the_sdk_alone_sees_an_event_or_item_it_does_not_know() -> None:
    assert sdk.judge_event({"type": "response.reasoning_text_part.added", "sequence_number": 1})
    assert sdk.judge_item({"type": "acme:thing", "id": "x_1", "status": "completed"})


@pytest.mark.parametrize(
    "defect",
    [
        put("completed_at", ...),
        put("temperature", None),
        put("output.0.phase", None),
        put("output.1.encrypted_content", None),
    ],
    ids=["completed_at", "temperature", "phase", "encrypted_content"],
)
def test_the_document_alone_sees_what_the_published_suite_sees(defect: Callable[[Json], None]) -> None:
    response = samples.response("message", "reasoning")
    assert document.judge_response(response) == []
    defect(response)
    assert document.judge_response(response)


def test_the_document_judges_both_spellings_of_raw_reasoning() -> None:
    for spelling in ("reasoning", "reasoning_text"):
        event = {"type": f"response.{spelling}.delta", "sequence_number": 1, "item_id": "rs_1", "output_index": 0}
        assert document.judge_event({**event, "content_index": 0, "delta": "x"}) == []
        assert document.judge_event({**event, "delta": "x"})
