"""What to ask an endpoint, in what order, and what its answers mean: a generator of questions, fed with answers.

    stages:  models → answer → limits → fields → streams → roles → history → tools → choices → formats → Responses

Nothing is believed because it was accepted: many servers take a field and do nothing about it. A tool choice, a
format or a role counts when the answer shows that it was followed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.probe.answers import (
    Answer,
    Ask,
    call_names,
    delta_of,
    finish_of,
    json_of,
    message_of,
    text_of,
    usage_of,
)
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.listing import read_context, read_inputs, read_models, read_props

_T = TypeVar("_T")
Steps = Generator[Ask, Answer, _T]

CHAT: Final = "chat/completions"
_ROOM: Final = 2000
"""Most tokens of an answer: enough for a model that thinks first, not enough to cost much."""


def investigate(findings: Findings, stage: Callable[[str], None] = lambda title: None) -> Steps[Findings]:
    """Ask everything; `stage` is told when the next group of questions begins."""
    for title, questions in STAGES:
        stage(title)
        yield from questions(findings)
    return findings


def _ask_models(found: Findings) -> Steps[None]:
    listing = yield Ask("which models are there", "models")
    found.models = read_models(listing)
    found.note("lists its models", bool(found.models) if listing.status else None, f"{len(found.models)} found")
    found.model = found.model or (found.models[0] if found.models else "")
    props = yield Ask("what does `/props` say", "/props")
    found.context = read_context(listing, found.model) or read_props(props).context
    found.inputs = read_inputs(listing, found.model) or read_props(props).inputs
    found.note(
        "tells its context size", found.context is not None, f"{found.context:,} tokens" if found.context else ""
    )
    if not found.model:
        if listing.status in (0, 401, 403):
            raise UpstreamFailed(_trouble(listing, found.model), status=listing.status or None)
        raise UpstreamFailed("the endpoint names no models; name one with `--model`", code="model_not_found")


def _ask_plainly(found: Findings) -> Steps[None]:
    answer = yield Ask("does it answer", CHAT, _body(found, "Reply with the word: hello"))
    if not answer.ok:
        raise UpstreamFailed(_trouble(answer, found.model), status=answer.status or None)
    message = message_of(answer)
    found.note("answers", bool(text_of(message) or message), found.model)
    _look_for_reasoning(found, message)


def _ask_limits(found: Findings) -> Steps[None]:
    accepted: list[str] = []
    for name in ("max_completion_tokens", "max_tokens"):
        answer = yield Ask(f"does it take `{name}`", CHAT, _body(found, "Count from 1 to 50.", **{name: 3}))
        if answer.ok:
            accepted.append(name)
            if finish_of(answer) == "length":
                found.limit_field = name
                break
    found.limit_field = found.limit_field or (accepted[-1] if accepted else "")
    found.note("limits the answer", bool(found.limit_field), f"`{found.limit_field}`" if found.limit_field else "")


def _ask_fields(found: Findings) -> Steps[None]:
    answer = yield Ask("what does it do with unknown fields", CHAT, _body(found, "Hello", isthmus_probe=True))
    found.strict_fields = answer.refused
    found.note("takes fields that it does not know", answer.ok if answer.ok or answer.refused else None)
    together = yield Ask("does it take sampling parameters", CHAT, _body(found, "Hello", **_SAMPLING))
    if together.ok:
        found.parameters = tuple(_SAMPLING)
    else:
        taken = []
        for name, value in _SAMPLING.items():
            answer = yield Ask(f"does it take `{name}`", CHAT, _body(found, "Hello", **{name: value}))
            if answer.ok:
                taken.append(name)
        found.parameters = tuple(taken)
    detail = ", ".join(f"`{name}`" for name in found.parameters)
    found.note("takes sampling parameters", bool(found.parameters), detail)


_SAMPLING: Final[JsonObject] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "stop": ["###"],
    "seed": 1,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "user": "isthmus",
}


def _ask_streams(found: Findings) -> Steps[None]:
    asking = _body(found, "Reply with the word: hello", stream=True)
    answer = yield Ask("does it stream", CHAT, asking)
    found.streaming = bool(answer.events)
    found.note("streams", found.streaming)
    for event in answer.events:
        _look_for_reasoning(found, delta_of(event))
    asked = {**asking, "stream_options": {"include_usage": True}}
    counted = yield Ask("does it count tokens in a stream", CHAT, asked)
    found.streaming_usage = counted.ok
    detail = "without being asked" if usage_of(answer.events) and not counted.ok else ""
    found.note("tells usage in streams", usage_of(counted.events) or usage_of(answer.events), detail)
    shown = ", ".join(f"`{name}`" for name in found.reasoning_fields) or ("`<think>` tags" if found.think_tags else "")
    found.note("shows its reasoning", bool(shown) or None, shown)


def _ask_roles(found: Findings) -> Steps[None]:
    rule = "Whatever you are asked, reply with the single word banana."
    answer = yield Ask("does it know developers", CHAT, _talk(found, ("developer", rule), ("user", "Hello")))
    found.developer = "banana" in text_of(message_of(answer)).lower()
    found.note("follows the developer role", found.developer, "" if answer.ok else "refused")
    later = "From now on, whatever you are asked, reply with the single word papaya."
    talk = [
        ("system", "Be brief."),
        ("user", "Hello"),
        ("assistant", "Hello!"),
        ("system", later),
        ("user", "How are you?"),
    ]
    answer = yield Ask("may system messages come later", CHAT, _talk(found, *talk))
    found.system_anywhere = "papaya" in text_of(message_of(answer)).lower()
    found.note("follows system messages anywhere", found.system_anywhere, "" if answer.ok else "refused")


def _ask_tools(found: Findings) -> Steps[None]:
    asked = _body(found, "What is the weather in Paris? Use the tool.", tools=[_tool("get_weather")])
    answer = yield Ask("does it call tools", CHAT, asked)
    found.tools = "get_weather" in call_names(message_of(answer))
    found.note("calls tools", found.tools, "" if answer.ok else "refused")
    if not found.tools:
        return
    words = "What is the weather in Paris and in Oslo? Call the tool once for each city, both at once."
    several = _body(found, words, tools=[_tool("get_weather")], parallel_tool_calls=True)
    answer = yield Ask("does it call several at once", CHAT, several)
    if answer.ok:
        found.parameters = (*found.parameters, "parallel_tool_calls")
    else:
        several.pop("parallel_tool_calls")
        answer = yield Ask("does it call several at once, unasked", CHAT, several)
    found.parallel = len(call_names(message_of(answer))) > 1
    found.note("calls several tools at once", found.parallel or (None if answer.ok else False))
    yield from _ask_history(found)


def _ask_history(found: Findings) -> Steps[None]:
    long, short = "call_0123456789abcdef", "aB3dE6gH9"
    for content, id in ((None, long), ("", long), ("", short), (None, short)):
        answer = yield Ask("does it take tool results back", CHAT, _past_call(found, content, id))
        if answer.ok:
            found.empty_content = "null" if content is None else "empty"
            found.call_ids = "keep" if len(id) > 9 else "alphanumeric9"
            break
    detail = "call ids of nine letters and digits" if found.call_ids != "keep" else ""
    found.note("takes tool results back", answer.ok, detail)


def _ask_choices(found: Findings) -> Steps[None]:
    if not found.tools:
        return
    tools = [_tool("get_weather"), _tool("get_time")]
    named = {"type": "function", "function": {"name": "get_time"}}
    asked: list[tuple[str, Any, str, Callable[[list[str]], bool]]] = [
        ("auto", "auto", "What is the weather in Paris? Use the tool.", bool),
        ("none", "none", "What is the weather in Paris? Use the tool.", lambda calls: not calls),
        ("required", "required", "Say hello.", bool),
        ("function", named, "What is the weather in Paris?", lambda calls: calls == ["get_time"]),
    ]
    followed: list[str] = []
    for name, choice, words, kept in asked:
        answer = yield Ask(f"tool choice `{name}`", CHAT, _body(found, words, tools=tools, tool_choice=choice))
        if answer.ok and kept(call_names(message_of(answer))):
            followed.append(name)
    found.choices = tuple(followed)
    found.note("follows tool choices", bool(followed), ", ".join(f"`{name}`" for name in followed))


def _ask_formats(found: Findings) -> Steps[None]:
    formats = ["text"]
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": _SCHEMA, "strict": True}}
    answer = yield Ask("does it keep to JSON schemas", CHAT, _body(found, "Say hello.", response_format=wanted))
    keeps = json_of(text_of(message_of(answer))) == {"colour": "ultraviolet"}
    words = 'Reply with a JSON object that has the key "greeting".'
    asked = _body(found, words, response_format={"type": "json_object"})
    answer = yield Ask("does it keep to JSON", CHAT, asked)
    if isinstance(json_of(text_of(message_of(answer))), dict):
        formats.append("json_object")
    if keeps:
        formats.append("json_schema")
    found.formats = tuple(formats)
    found.note("keeps to JSON schemas", keeps)
    found.note("keeps to JSON objects", "json_object" in formats)


_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["ultraviolet"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


def _ask_responses(found: Findings) -> Steps[None]:
    body = {"model": found.model, "input": "Reply with the word: hello", "store": False}
    answer = yield Ask("does it speak Responses", "responses", body)
    found.responses = answer.ok and isinstance(answer.body, dict) and isinstance(answer.body.get("output"), list)
    found.note("has a Responses endpoint", found.responses)


STAGES: Final[tuple[tuple[str, Callable[[Findings], Steps[None]]], ...]] = (
    ("models", _ask_models),
    ("a plain answer", _ask_plainly),
    ("limits", _ask_limits),
    ("fields", _ask_fields),
    ("streams", _ask_streams),
    ("roles", _ask_roles),
    ("tools", _ask_tools),
    ("tool choices", _ask_choices),
    ("formats", _ask_formats),
    ("Responses", _ask_responses),
)


def _look_for_reasoning(found: Findings, message: JsonObject) -> None:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name] and name not in found.reasoning_fields:
            found.reasoning_fields = (*found.reasoning_fields, name)
    found.think_tags = found.think_tags or "<think>" in text_of(message)


def _body(found: Findings, words: str, **fields: Any) -> JsonObject:
    return {**_talk(found, ("user", words)), **fields}


def _talk(found: Findings, *messages: tuple[str, str]) -> JsonObject:
    said = [{"role": role, "content": content} for role, content in messages]
    return {"model": found.model, "messages": said, **({found.limit_field: _ROOM} if found.limit_field else {})}


def _past_call(found: Findings, content: str | None, id: str) -> JsonObject:
    call = {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
    messages: list[JsonObject] = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "sunny"},
    ]
    return {**_talk(found), "messages": messages, "tools": [_tool("get_weather")]}


def _tool(name: str) -> JsonObject:
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "function", "function": {"name": name, "description": f"{name} of a city", "parameters": city}}


def _trouble(answer: Answer, model: str) -> str:
    if answer.status in (401, 403):
        return f"the endpoint refuses the key (HTTP {answer.status}); give one with `--key` or `--key-env`"
    if not answer.status:
        return f"{answer.text}; start the server, or correct the address"
    return f"the endpoint does not answer for `{model}` (HTTP {answer.status}): {answer.text}"
