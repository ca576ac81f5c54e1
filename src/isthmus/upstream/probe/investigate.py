"""What to ask an endpoint, in what order: a generator of questions, fed with answers.

    models → limits → answer → fields → streams → roles → tools → choices → formats → insight → inputs → Responses

The limit comes first, so that no later answer is without one. What both dialects are asked alike is in `questions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from isthmus.bridge.capabilities import Modality
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.probe.answers import Answer, Ask, tokens_of, usage_of
from isthmus.upstream.probe.findings import Abilities, Findings
from isthmus.upstream.probe.listing import read_models, read_word
from isthmus.upstream.probe.questions import (
    ROOM,
    THOUGHTFUL,
    Dialogue,
    Steps,
    ask_choices,
    ask_formats,
    ask_inputs,
    ask_insight,
    ask_roles,
    ask_streams,
    ask_tools,
    tool,
)
from isthmus.upstream.probe.voices import CHAT, RESPONSES, Said

_CUT: Final = 3
"""Tokens that no count to fifty fits into."""
_COUNT: Final = "Count from 1 to 50."


def investigate(
    findings: Findings, stage: Callable[[str], None] = lambda title: None, *, room: int = ROOM
) -> Steps[Findings]:
    """Ask everything; `stage` is told when the next group of questions begins, `room` bounds each answer."""
    talk = Dialogue(findings, findings, CHAT, room)
    for title, questions in STAGES:
        stage(title)
        yield from questions(talk)
    return findings


def _ask_models(talk: Dialogue) -> Steps[None]:
    found = talk.found
    listing = yield Ask("which models are there", "models")
    found.models = read_models(listing)
    found.note("lists its models", bool(found.models) if listing.status else None, f"{len(found.models)} found")
    found.model = found.model or (found.models[0] if found.models else "")
    props = yield Ask("what does `/props` say", "/props")
    found.word = read_word(found.model, listing, props)
    found.context = found.word.context
    found.inputs = tuple(kind for kind in get_args(Modality) if found.word.senses.get(kind))
    found.note(
        "tells its context size", found.context is not None, f"{found.context:,} tokens" if found.context else ""
    )
    if not found.model:
        if listing.status in (0, 401, 403):
            raise UpstreamFailed(_trouble(listing, found.model), status=listing.status or None)
        raise UpstreamFailed("the endpoint names no models; name one with `--model`", code="model_not_found")


def _ask_limits(talk: Dialogue) -> Steps[None]:
    found, accepted = talk.found, []
    for name in ("max_completion_tokens", "max_tokens"):
        answer = yield talk.ask(f"does it take `{name}`", _COUNT, **{name: _CUT})
        if answer.ok:
            accepted.append(name)
            found.tells_length = talk.voice.hear(answer).cut
            if found.tells_length or 0 < tokens_of(answer) <= _CUT:
                found.limit_field = name
                break
        elif not answer.refused:
            break  # trouble, and the plain question will say which
    found.limit_field = found.limit_field or (accepted[-1] if accepted else "")
    found.note("limits the answer", bool(found.limit_field), f"`{found.limit_field}`" if found.limit_field else "")
    found.note("tells that the limit was met", found.tells_length if found.limit_field else None)


def _ask_plainly(talk: Dialogue) -> Steps[None]:
    answer = yield talk.ask("does it answer", THOUGHTFUL)
    if not answer.ok:
        raise UpstreamFailed(_trouble(answer, talk.found.model), status=answer.status or None)
    said = talk.voice.hear(answer)
    talk.note("answers", bool(said.text or said.thoughts or answer.body), talk.found.model)
    _look_for_reasoning(talk.found, said)


def _ask_fields(talk: Dialogue) -> Steps[None]:
    found = talk.found
    answer = yield talk.ask("what does it do with unknown fields", "Hello", isthmus_probe=True)
    found.strict_fields = answer.refused
    found.note("takes fields that it does not know", answer.ok if answer.ok or answer.refused else None)
    together = yield talk.ask("does it take sampling parameters", "Hello", **_SAMPLING)
    if together.ok:
        found.parameters = tuple(_SAMPLING)
    else:
        taken = []
        for name, value in _SAMPLING.items():
            answer = yield talk.ask(f"does it take `{name}`", "Hello", **{name: value})
            if answer.ok:
                taken.append(name)
        found.parameters = tuple(taken)
    detail = ", ".join(f"`{name}`" for name in found.parameters)
    found.note("takes sampling parameters", bool(found.parameters), detail)
    if "stop" in found.parameters:
        answer = yield talk.ask("does it stop where told to", _COUNT, stop=["2"], room=64)
        heeded = answer.ok and "2" not in talk.voice.hear(answer).text
        found.note("heeds `stop`", heeded if answer.ok else None)
        if answer.ok and not heeded:
            found.parameters = tuple(name for name in found.parameters if name != "stop")


_SAMPLING: Final[JsonObject] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "stop": ["###"],
    "seed": 1,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "user": "isthmus",
}


def _ask_streams(talk: Dialogue) -> Steps[None]:
    found = talk.found
    said = yield from ask_streams(talk)
    _look_for_reasoning(found, said)
    options: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
    counted = yield talk.ask("does it count tokens in a stream", "Reply with the word: hello", **options)
    found.streaming_usage = counted.ok
    detail = "without being asked" if said.usage and not counted.ok else ""
    found.note("tells usage in streams", usage_of(counted.events) or said.usage, detail)
    shown = ", ".join(f"`{name}`" for name in found.reasoning_fields) or ("`<think>` tags" if found.think_tags else "")
    found.note("shows its reasoning", bool(shown) or None, shown)


def _ask_tools(talk: Dialogue) -> Steps[None]:
    yield from ask_tools(talk)
    if talk.can.tools:
        yield from _ask_history(talk)


def _ask_history(talk: Dialogue) -> Steps[None]:
    found = talk.found
    long, short = "call_0123456789abcdef", "aB3dE6gH9"
    for content, id in ((None, long), ("", long), ("", short), (None, short)):
        answer = yield Ask("does it take tool results back", CHAT.path, _past_call(talk, content, id))
        if answer.ok:
            found.empty_content = "null" if content is None else "empty"
            found.call_ids = "keep" if len(id) > 9 else "alphanumeric9"
            break
    detail = "call ids of nine letters and digits" if found.call_ids != "keep" else ""
    found.note("takes tool results back", answer.ok if answer.status else None, detail)
    if answer.ok:
        body = _past_call(talk, content, id)
        body["messages"].append({"role": "user", "content": "Thank you. And in Oslo?"})
        answer = yield Ask("may the user speak after a tool", CHAT.path, body)
        found.after_tool = answer.ok
        if not answer.status:
            found.unclear.add("after_tool")
        found.note("takes a user's message after a tool's", answer.ok if answer.status else None)


def _past_call(talk: Dialogue, content: str | None, id: str) -> JsonObject:
    call = {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
    body = talk.ask("", "What is the weather in Paris?", tools=[tool("get_weather")], room=16).body or {}
    asked: list[JsonObject] = body["messages"]
    answered: JsonObject = {"role": "assistant", "content": content, "tool_calls": [call]}
    return {**body, "messages": [*asked, answered, {"role": "tool", "tool_call_id": id, "content": "sunny"}]}


def _ask_insight(talk: Dialogue) -> Steps[None]:
    yield from ask_insight(talk, talk.found.reasoning_fields or (("think",) if talk.found.think_tags else ()))


def _ask_responses(talk: Dialogue) -> Steps[None]:
    """The same of the endpoint's own Responses, where it has one."""
    can = Abilities(limit_field="max_output_tokens")
    own = Dialogue(talk.found, can, RESPONSES, talk.room)
    answer = yield own.ask("does it speak Responses", THOUGHTFUL)
    speaks = answer.ok and isinstance(answer.body, dict) and isinstance(answer.body.get("output"), list)
    talk.found.note("has a Responses endpoint", speaks if answer.status else None)
    if not speaks:
        return
    talk.found.native = can
    can.inputs = talk.found.inputs
    thoughts = own.voice.hear(answer).thoughts
    answer = yield own.ask("does it take `max_output_tokens`", _COUNT, room=_CUT)
    said = own.voice.hear(answer)
    can.tells_length = said.cut
    if not (said.cut or 0 < tokens_of(answer) <= _CUT):
        can.limit_field = ""
    own.note("limits the answer", bool(can.limit_field) if answer.status else None)
    own.note("tells that the limit was met", can.tells_length if can.limit_field else None)
    streamed = yield from ask_streams(own)
    can.streaming_usage = streamed.usage
    own.note("tells usage in streams", can.streaming_usage)
    together = yield own.ask("does it take sampling parameters", "Hello", temperature=0.5, top_p=0.9)
    can.parameters = ("temperature", "top_p") if together.ok else ()
    yield from ask_roles(own)
    yield from ask_tools(own)
    yield from ask_choices(own)
    yield from ask_formats(own)
    yield from ask_insight(own, thoughts)
    yield from ask_inputs(own)


STAGES: Final[tuple[tuple[str, Callable[[Dialogue], Steps[None]]], ...]] = (
    ("models", _ask_models),
    ("limits", _ask_limits),
    ("a plain answer", _ask_plainly),
    ("fields", _ask_fields),
    ("streams", _ask_streams),
    ("roles", ask_roles),
    ("tools", _ask_tools),
    ("tool choices", ask_choices),
    ("formats", ask_formats),
    ("insight", _ask_insight),
    ("images", ask_inputs),
    ("Responses", _ask_responses),
)


def _look_for_reasoning(found: Findings, said: Said) -> None:
    found.reasoning_fields = tuple(dict.fromkeys((*found.reasoning_fields, *said.thoughts)))
    found.think_tags = found.think_tags or "<think>" in said.text


def _trouble(answer: Answer, model: str) -> str:
    if answer.status in (401, 403):
        return f"the endpoint refuses the key (HTTP {answer.status}); give one with `--key` or `--key-env`"
    if answer.late:
        return f"{answer.text}; give it more time with `--timeout`, or less to write with `--max-tokens`"
    if not answer.status:
        return f"{answer.text}; start the server, or correct the address"
    return f"the endpoint does not answer for `{model}` (HTTP {answer.status}): {answer.text}"
