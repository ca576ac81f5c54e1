"""Requests for the demo model, and its replies, in the shapes that its tests share."""

from __future__ import annotations

import json
from typing import Any

from isthmus.demo.model import answer
from isthmus.demo.wire import whole

STRING = {"type": "string"}


def tool(name: str, description: str = "", required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER = tool(
    "get_weather",
    "Get the weather for a city.",
    ["city"],
    city=STRING,
    unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
)
TIME = tool("get_time", "Tell the time in a place.", place=STRING)
SHELL = tool(
    "exec_command",
    "Runs a command in a PTY, returning output or a session ID for ongoing interaction.",
    ["cmd"],
    cmd=STRING,
    login={"type": "boolean"},
)
PATCH = tool("apply_patch", "Edits files. Call it with one argument, `input`.", input=STRING)
CODEX = [
    SHELL,
    tool("write_stdin", "Writes characters to an existing exec session.", session_id={"type": "number"}),
    PATCH,
    tool("view_image", "View a local image file from the filesystem.", path=STRING),
    tool("get_goal", "Get the current goal for this thread."),
    tool("create_goal", "Start a new goal.", objective=STRING),
    tool("update_goal", "Change the goal.", status={"type": "string", "enum": ["complete", "blocked"]}),
    tool("web_search", "Search the web and get the best results with their addresses.", query=STRING),
]


def request(text: Any, *tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": text}]}
    return {**body, **({"tools": list(tools)} if tools else {}), **fields}


def ask(text: Any, *tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The message of the whole reply."""
    message: dict[str, Any] = choice(text, *tools, **fields)["message"]
    return message


def choice(text: Any, *tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    chosen: dict[str, Any] = whole(answer(request(text, *tools, **fields)))["choices"][0]
    return chosen


def say(text: Any, *tools: dict[str, Any], **fields: Any) -> str:
    content = ask(text, *tools, **fields)["content"]
    assert isinstance(content, str)
    return content


def calls(message: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name and decoded arguments of each call."""
    made = message.get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in made]


def with_results(message: dict[str, Any], *outputs: str) -> list[dict[str, Any]]:
    """The messages that carry a reply's calls back with what they gave."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": output}
        for call, output in zip(message["tool_calls"], outputs, strict=True)
    ]
    return [message, *results]
