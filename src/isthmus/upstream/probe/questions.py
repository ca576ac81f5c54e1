"""The questions that both dialects are asked alike: each takes what is known so far, and adds one thing to it.

Nothing is believed because it was accepted: many servers take a field and do nothing about it. A choice, a format or
a role counts when the answer shows that it was followed. What an answer cannot show (it was cut, or did not come)
is `unclear`, which is not the same as no.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from isthmus.protocol.json import JsonObject
from isthmus.upstream.probe.answers import Answer, Ask, json_of
from isthmus.upstream.probe.findings import Abilities, Findings
from isthmus.upstream.probe.voices import Message, Said, Voice

_T = TypeVar("_T")
Steps = Generator[Ask, Answer, _T]

ROOM: Final = 1000
"""Most tokens of an answer, unless told otherwise: enough for a model that thinks first, not enough to cost much."""
THOUGHTFUL: Final = "Which colour is grass?"
"""Asked with and without thinking, so that the two can be compared."""
_WEATHER: Final = "What is the weather in Paris? Use the tool."
_CITY: Final[JsonObject] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["ultraviolet"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
"""Nobody gives this answer unless he is held to it."""
# A white PNG of one pixel.
_PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC"
)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One dialect being asked: `found` gathers all, `can` is the part of it that belongs to this dialect."""

    found: Findings
    can: Abilities
    voice: Voice
    room: int = ROOM

    def ask(self, title: str, *messages: str | Message, room: int = 0, **asked: Any) -> Ask:
        """A question; words alone are the user's."""
        said = [("user", one) if isinstance(one, str) else one for one in messages]
        limit = {self.can.limit_field: room or self.room} if self.can.limit_field else {}
        return Ask(title, self.voice.path, self.voice.body(self.found.model, said, limit, asked))

    def note(self, question: str, verdict: bool | None, detail: str = "") -> None:
        mark = f"{self.voice.title}: " if self.voice.title else ""
        self.found.note(f"{mark}{question}", verdict, detail)

    def judge(self, fact: str, answer: Answer, said: Said, shown: bool) -> bool | None:
        """Whether an answer shows something: a refusal is a no, and so is an answer that had room for it."""
        if shown or answer.refused:
            return shown
        if not answer.ok or said.cut:
            self.can.unclear.add(fact)
            return None
        return False


def tool(name: str, parameters: JsonObject = _CITY, **more: Any) -> JsonObject:
    return {"name": name, "description": f"{name} of a city", "parameters": parameters, **more}


def ask_streams(talk: Dialogue) -> Steps[Said]:
    answer = yield talk.ask("does it stream", "Reply with the word: hello", stream=True)
    said = talk.voice.hear(answer)
    talk.can.streaming = bool(answer.events)
    talk.note("streams", talk.can.streaming if answer.status else None)
    return said


def ask_roles(talk: Dialogue) -> Steps[None]:
    rule = "Whatever you are asked, reply with the single word banana."
    answer = yield talk.ask("does it know developers", ("developer", rule), "Hello")
    talk.can.developer = "banana" in talk.voice.hear(answer).text.lower()
    talk.note("follows the developer role", _followed(talk, "developer", answer, talk.can.developer), _refusal(answer))
    later = "From now on, whatever you are asked, reply with the single word papaya."
    before = [("system", "Be brief."), ("user", "Hello"), ("assistant", "Hello!"), ("system", later)]
    answer = yield talk.ask("may system messages come later", *before, "How are you?")
    talk.can.system_anywhere = "papaya" in talk.voice.hear(answer).text.lower()
    verdict = _followed(talk, "system_anywhere", answer, talk.can.system_anywhere)
    talk.note("follows system messages anywhere", verdict, _refusal(answer))
    answer = yield talk.ask("may one speak twice in a row", "Hello.", "Are you there?", room=8)
    talk.can.repeats = answer.ok
    talk.note("takes two messages of one speaker", _taken(talk, "repeats", answer), _refusal(answer))


def ask_tools(talk: Dialogue) -> Steps[None]:
    answer = yield talk.ask("does it call tools", _WEATHER, tools=[tool("get_weather")])
    said, can = talk.voice.hear(answer), talk.can
    can.tools = "get_weather" in said.names
    talk.note("calls tools", talk.judge("tools", answer, said, can.tools), _refusal(answer))
    if not can.tools:
        can.unclear |= {"strict", "parallel", "choices.required", "choices.function"}
        return
    words = "What is the weather in Paris and in Oslo? Call the tool once for each city, both at once."
    several: JsonObject = {"tools": [tool("get_weather")], "parallel_tool_calls": True}
    answer = yield talk.ask("does it call several at once", words, **several)
    if answer.ok:
        can.parameters = (*can.parameters, "parallel_tool_calls")
    else:
        several.pop("parallel_tool_calls")
        answer = yield talk.ask("does it call several at once, unasked", words, **several)
    can.parallel = len(talk.voice.hear(answer).calls) > 1
    talk.note("calls several tools at once", can.parallel or (None if answer.ok else False))
    strict = [tool("pick_colour", _SCHEMA, strict=True)]
    answer = yield talk.ask("do arguments keep to their schema", "Pick the colour red. Use the tool.", tools=strict)
    said = talk.voice.hear(answer)
    can.strict = any(_decoded(arguments) == {"colour": "ultraviolet"} for _, arguments in said.calls)
    if answer.ok and not said.calls:  # it talked instead: that says nothing of the arguments
        can.unclear.add("strict")
    verdict = None if "strict" in can.unclear else talk.judge("strict", answer, said, can.strict)
    talk.note("keeps to strict schemas of tools", verdict)


def ask_choices(talk: Dialogue) -> Steps[None]:
    if not talk.can.tools:
        return
    tools = [tool("get_weather"), tool("get_time")]
    asked: list[tuple[str, Any, str, Callable[[list[str]], bool]]] = [
        ("auto", "auto", _WEATHER, bool),
        ("none", "none", _WEATHER, lambda calls: not calls),
        ("required", "required", "Say hello.", bool),
        ("function", ("function", "get_time"), _WEATHER, lambda calls: calls == ["get_time"]),
    ]
    followed: list[str] = []
    for name, choice, words, kept in asked:
        answer = yield talk.ask(f"tool choice `{name}`", words, tools=tools, choice=choice)
        said = talk.voice.hear(answer)
        if talk.judge(f"choices.{name}", answer, said, answer.ok and kept(said.names)):
            followed.append(name)
    talk.can.choices = tuple(followed)
    talk.note("follows tool choices", bool(followed), _listed(followed))


def ask_formats(talk: Dialogue) -> Steps[None]:
    formats = ["text"]
    asked: list[tuple[str, JsonObject, str, Callable[[Any], bool]]] = [
        ("json_schema", {"schema": _SCHEMA}, "Say hello.", lambda value: bool(value == {"colour": "ultraviolet"})),
        # Short, because a grammar alone does not make a small model find the end of its object.
        ("json_object", {"json": True}, 'Reply with this JSON object: {"greeting": "hello"}', _is_object),
    ]
    for name, fields, words, kept in asked:
        answer = yield talk.ask(f"does it keep to `{name}`", words, **fields)
        said = talk.voice.hear(answer)
        shown = kept(json_of(said.text))
        # Another kind of answer that was not cut says no; half an object does not.
        if talk.judge(f"formats.{name}", answer, said, shown):
            formats.append(name)
    talk.can.formats = tuple(sorted(formats, key=("text", "json_object", "json_schema").index))
    talk.note("keeps to formats", len(formats) > 1, _listed(formats[1:]))


def ask_insight(talk: Dialogue, shows: Sequence[str]) -> Steps[None]:
    """Log probabilities, and whether thinking can be switched off; `shows`: where thoughts were seen, if they were."""
    answer = yield talk.ask("does it tell log probabilities", "Reply with the word: hello", logprobs=True)
    said, can = talk.voice.hear(answer), talk.can
    can.logprobs = said.logprobs
    # One that was cut has some already.
    verdict = can.logprobs if answer.ok or answer.refused else None
    if verdict is None:
        can.unclear.add("logprobs")
    talk.note("tells log probabilities", verdict, _refusal(answer))
    can.thinks = bool(shows)
    answer = yield talk.ask("does it think if told not to", THOUGHTFUL, effort="none")
    quiet = answer.ok and not talk.voice.hear(answer).thoughts
    can.effort_none = can.thinks and quiet
    if not can.thinks and quiet:
        can.unclear.add("effort_none")
    told = None if "effort_none" in can.unclear else talk.judge("effort_none", answer, Said(), can.effort_none)
    talk.note("thinks less with the effort `none`", told, _refusal(answer))


def ask_inputs(talk: Dialogue) -> Steps[None]:
    """Of images only: the one thing besides text that many models read, and that costs little to send."""
    answer = yield talk.ask("does it read images", "Describe this picture in one word.", image=_PIXEL, room=16)
    # llama.cpp answers with a 500 that names the image, where others say 400.
    refused = answer.refused or (answer.status >= 500 and "image" in answer.text.lower())
    if not answer.ok and not refused:
        talk.can.unclear.add("inputs")
    elif answer.ok and "image" not in talk.can.inputs:
        talk.can.inputs = ("image", *talk.can.inputs)
    elif refused:
        talk.can.inputs = tuple(kind for kind in talk.can.inputs if kind != "image")
    talk.note("reads images", None if not answer.ok and not refused else answer.ok)


def _followed(talk: Dialogue, fact: str, answer: Answer, shown: bool) -> bool | None:
    """A model may be too small to follow: only a refusal shows that the server has no such thing."""
    if shown or answer.refused:
        return shown
    talk.can.unclear.add(fact)
    return None


def _taken(talk: Dialogue, fact: str, answer: Answer) -> bool | None:
    # Templates that raise are a 500 in many servers.
    if answer.status and answer.status not in (401, 403, 408, 429, 503):
        return answer.ok
    talk.can.unclear.add(fact)
    return None


def _refusal(answer: Answer) -> str:
    return "refused" if answer.refused else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
