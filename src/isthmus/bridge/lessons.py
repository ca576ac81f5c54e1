"""What is sent on trust, and what is learned when a server refuses it: capabilities in, capabilities out.

Of an unknown model nobody knows what it takes, so its file names fields that are *assumed*. A server that refuses one
of them by name is asked once more without it; the refusal becomes a `Lesson`, and lessons are merged into the
capabilities before anything is planned. The second asking leaves the field out altogether; the lesson says less: only
the kind of value that was refused is not sent again, so a server without `json_object` keeps its `json_schema`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.types.history import THINKING
from isthmus.bridge.types.plan import Lesson, Plan, Target
from isthmus.errors import UpstreamFailed

_LADDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "function": ("function", "required", "auto"),
    "required": ("required", "auto"),
    "json_schema": ("json_schema", "json_object"),
    "json_object": ("json_object",),
}
"""What a planner puts in the place of a value that is not taken, best first."""
FACTS: Final[Mapping[str, tuple[str, str]]] = {
    "tool_choice": ("tool_choice", "supported"),
    "response_format": ("response_formats", "supported"),
    "parallel_tool_calls": ("parameters", "parallel_tool_calls"),
}
"""Field → the section and the fact that a lesson changes: a user who states it himself is believed over the lesson."""
_ORDER: Final = ("text", "auto", "none", "required", "function", "json_object", "json_schema")


def find_refusal(failure: UpstreamFailed, plan: Plan) -> Lesson | None:
    """The field that the server refused by name, if it was sent on trust; without its time."""
    target, field = plan.target, failure.metadata.get("refused")
    known = target.capabilities
    if field == THINKING and known.dialect == "messages" and _replays_thinking(plan.body):
        return Lesson(target.provider, target.model, THINKING)
    if field not in known.assumed or field not in plan.body or known.dialect != "chat":
        return None
    return Lesson(target.provider, target.model, field, _kind(plan.body[field]))


def lasts(lesson: Lesson) -> bool:
    """Whether it holds for the model: a signature that was refused is a matter of one conversation."""
    return lesson.parameter != THINKING


def _replays_thinking(body: Mapping[str, Any]) -> bool:
    said = (message["content"] for message in body["messages"] if message["role"] == "assistant")
    return any(block["type"] in ("thinking", "redacted_thinking") for content in said for block in content)


def learn(target: Target, lessons: Iterable[Lesson]) -> Target:
    """The target as the lessons leave it; those about a field that nobody assumes any more are not believed."""
    known = tuple(lesson for lesson in lessons if lesson.parameter in target.capabilities.assumed)
    capabilities = target.capabilities
    for lesson in known:
        capabilities = _reduce(capabilities, lesson.parameter, lesson.value)
    return replace(target, capabilities=capabilities, lessons=(*target.lessons, *known)) if known else target


def leave_out(target: Target, fields: Collection[str]) -> Target:
    """The target of a second asking: nothing of these fields is sent."""
    capabilities = target.capabilities
    for field in fields:
        capabilities = _reduce(capabilities, field, "")
    return replace(target, capabilities=capabilities) if fields else target


def tell_lessons(body: Mapping[str, Any], target: Target) -> tuple[CompatibilityDecision, ...]:
    """What the lessons mean for this request: when it was learned, and the line that makes it permanent."""
    return tuple(_tell(lesson, target) for lesson in target.lessons if _concerns(lesson, target.lessons, body))


def _tell(lesson: Lesson, target: Target) -> CompatibilityDecision:
    section, fact = config_lines(lesson, target)
    day = datetime.datetime.fromtimestamp(lesson.learned_at, datetime.UTC).date().isoformat()
    value = f" = `{lesson.value}`" if lesson.value else ""
    reason = (
        f"the server refused `{lesson.parameter}`{value} on {day} and took the request without it; it is left out for "
        f"a while. To leave it out for good, write `{fact}` under `{section}`"
    )
    facts = {
        "parameter": lesson.parameter,
        "refused_value": lesson.value or None,
        "learned_at": int(lesson.learned_at),
        "config": f"{section}\n{fact}",
    }
    path = "text.format" if lesson.parameter == "response_format" else lesson.parameter
    return CompatibilityDecision(path, "degraded", reason, code="bridge.param.learned", metadata=facts)


def config_lines(lesson: Lesson, target: Target) -> tuple[str, str]:
    """The section and the fact that say the same for good."""
    capabilities = target.capabilities
    match lesson.parameter:
        case "tool_choice":
            choice = capabilities.tool_choice
            fact = f"tool_choice = {{ supported = {_list(choice.supported)}{'' if choice.sent else ', sent = false'} }}"
        case "response_format":
            fact = f"response_formats = {{ supported = {_list(capabilities.response_formats.supported)} }}"
        case _:
            fact = f"parameters = {{ {lesson.parameter} = false }}"
    provider = target.provider if re.fullmatch(r"[A-Za-z0-9_-]+", target.provider) else _quote(target.provider)
    return f"[providers.{provider}.models.{_quote(target.model)}]", fact


def _reduce(capabilities: ProviderCapabilities, field: str, value: str) -> ProviderCapabilities:
    """The capabilities without one kind of value; without the field, where no kind is given."""
    change = msgspec.structs.replace
    if field == "parallel_tool_calls":
        left = {name: rule for name, rule in capabilities.parameters.items() if name != field}
        return change(capabilities, parameters=left)
    if field == THINKING:
        return change(capabilities, messages=change(capabilities.messages, replay_extras=""))
    if field == "response_format":
        formats = capabilities.response_formats
        kept = formats.supported - {value} if value else frozenset({"text"})
        return change(capabilities, response_formats=change(formats, supported=kept))
    choice = capabilities.tool_choice
    if value in ("", "auto"):  # below `auto` there is nothing to say: the choice is made by the list and in words
        return change(capabilities, tool_choice=change(choice, supported=frozenset({"auto", "none"}), sent=False))
    thinking = None if choice.while_thinking is None else choice.while_thinking - {value}
    reduced = change(choice, supported=choice.supported - {value}, while_thinking=thinking)
    return change(capabilities, tool_choice=reduced)


def _concerns(lesson: Lesson, lessons: Iterable[Lesson], body: Mapping[str, Any]) -> bool:
    """Whether the request would have sent what was refused: as asked, or because what it asks for was refused too."""
    if lesson.parameter == "parallel_tool_calls":
        return body.get("parallel_tool_calls") is False
    if lesson.parameter == "tool_choice":
        asked = _asked_choice(body.get("tool_choice"))
    else:
        asked = _kind((body.get("text") or {}).get("format"))
    steps = _LADDERS.get(asked, ())
    refused = {each.value for each in lessons if each.parameter == lesson.parameter}
    return lesson.value in steps and refused.issuperset(steps[: steps.index(lesson.value)])


def _asked_choice(choice: Any) -> str:
    """The kind of a client's choice; `auto` holds without saying so and is not missed."""
    kind = _kind(choice)
    if kind == "allowed_tools":
        nested = choice.get("allowed_tools")
        return str((nested if isinstance(nested, Mapping) else choice).get("mode") or "auto")
    return kind if kind in ("", "auto", "none", "required") else "function"


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("type", ""))
    return value if isinstance(value, str) else ""


def _list(values: Collection[str]) -> str:
    ordered = sorted(values, key=lambda value: (_ORDER.index(value) if value in _ORDER else len(_ORDER), value))
    return f"[{', '.join(map(_quote, ordered))}]"


def _quote(text: str) -> str:
    """A basic string of TOML, which is what JSON makes of text."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007F")
