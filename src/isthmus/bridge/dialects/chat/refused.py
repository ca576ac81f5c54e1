"""Which field of our request a server refuses, by name: read from the body of its 400.

In: an error object. Out: `tool_choice`, `parallel_tool_calls`, `response_format`, or nothing. A refusal names the field
and says that it is not taken, as it is or at all. A complaint about what a client wrote inside the field (a schema that
is no schema) is the client's to hear: leaving the field out would hide it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from isthmus.protocol.json import JsonObject

# What real servers say, gathered on 2026-11-16; `tests/bridge/dialects/chat/test_refused.py` has the words.
_NAMED: Final = (
    # OpenAI's words, which most gateways and hosts copy: "Unsupported parameter: 'parallel_tool_calls' is not supported
    # with this model." (evalstate/fast-agent#279). Pydantic's `loc` in vLLM, SGLang, Mistral (langgenius/dify#11795).
    ("parallel_tool_calls", re.compile(r"\bparallel[_ ]tool[_ ](calls|use)\b", re.IGNORECASE)),
    # vLLM writes "tool choice" as two words (vllm-project/vllm#9986, #30613), LM Studio "Invalid tool_choice type"
    # (lmstudio-ai/lmstudio-bug-tracker#670), llama.cpp "tool_choice param requires --jinja flag".
    ("tool_choice", re.compile(r"\btool[_ ]choice\b", re.IGNORECASE)),
    # LM Studio "'response_format.type' must be 'json_schema' or 'text'" (lmstudio-bug-tracker#169), llama.cpp
    # "response_format type must be one of", serde servers such as TGI "response_format: unknown variant". llama.cpp
    # calls it a grammar where tools are there too.
    (
        "response_format",
        re.compile(
            r"\bresponse[_ ]format\b|\bjson[_ ](schema|object|mode)\b.{0,40}\b(not|un)[ -]?(supported|available)"
            r"|custom grammar constraints with tools",
            re.IGNORECASE,
        ),
    ),
)
_NOT_TAKEN: Final = re.compile(
    r"\bnot (\w+ ){0,2}(support|permit|allow|availab|implement|recogni[sz]|enabl|accept|valid)"
    r"|n't (support|allow|accept)|unsupported|unavailable|unknown|unexpected|unrecogni[sz]ed|extra (inputs|fields)"
    r"|forbidden|must (be|either)|should be|only|requires?\b|invalid|cannot|expected|disabled",
    re.IGNORECASE,
)
# "Invalid schema for response_format 'answer': …" (OpenAI, Groq), "response_format.json_schema.schema: …".
_INSIDE: Final = re.compile(
    r"schema for (the )?response_format|invalid (json )?schema|json_schema\.(schema|name)|\bproperties\b"
    r"|required property|no tool|unknown tool|not (found|present|among|in the|one of the)"
    r"|tools? (is|are|must|cannot be) (empty|provided|set)",
    re.IGNORECASE,
)


def refused_field(error: Any) -> str | None:
    """The field that the error is about, if it says that the server does not take it."""
    words = error if isinstance(error, str) else describe(error) if isinstance(error, dict) else ""
    if not _NOT_TAKEN.search(words) or _INSIDE.search(words):
        return None
    param = error.get("param") if isinstance(error, dict) else None
    named = [field for field, pattern in _NAMED if pattern.search(str(param) if isinstance(param, str) else words)]
    return named[0] if len(named) == 1 else None


def describe(error: JsonObject) -> str:
    """The words of an error object, also where they are a list of Pydantic's: `body.tool_choice: Extra inputs …`."""
    for field in ("message", "msg", "detail", "error"):
        value = error.get(field)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list):
            told = [_spell(each) for each in value[:5] if isinstance(each, dict) and isinstance(each.get("msg"), str)]
            if told:
                return "; ".join(told)
    return ""


def _spell(problem: JsonObject) -> str:
    place = problem.get("loc")
    path = ".".join(str(part) for part in place[:10]) if isinstance(place, list) else ""
    return f"{path}: {problem['msg']}" if path else str(problem["msg"])
