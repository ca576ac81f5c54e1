"""Everything that was asked of one call or run, frozen; and the Responses request that it makes.

In: options, a route, the conversation. Out: a request body. The same options and messages give the same bytes, so
that the provider's prompt cache holds from turn to turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict

from isthmus.client.items import write_items
from isthmus.client.limits import Limits, OnLimit
from isthmus.client.output import OutputFormat
from isthmus.client.retry import Retry
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.tools.messages import Message
from isthmus.tools.toolset import Ask, ToolSet

ToolChoice = Literal["auto", "none", "required"] | str
"""…or the name of the tool that must be called first."""


class Parameters(TypedDict, total=False):
    """What a model call can be told besides its messages. What a provider cannot do becomes a diagnostic."""

    instructions: str
    """What the model is told before everything else."""
    temperature: float
    """How freely it chooses its words."""
    top_p: float
    """Of which share of likely words it chooses."""
    max_output_tokens: int
    """Tokens that one answer may have, thinking included."""
    reasoning_effort: str
    """`none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`."""
    parallel_tool_calls: bool
    """Whether one answer may hold several calls."""
    seed: int
    """For answers that can be repeated, where the provider can."""
    stop: str | list[str]
    """Words that end an answer when it comes to them."""
    user: str
    """Whom the provider shall count it for."""
    hosted: Sequence[Mapping[str, Any]]
    """Tools that the provider, the gateway or this process runs, as a Responses request declares them:
    `{"type": "web_search"}`. Their calls are no calls of yours: what they found is in the answer."""
    extra: Mapping[str, Any]
    """Other fields of a Responses request, as they are."""


_APART: Final = ("extra", "hosted", "reasoning_effort")
"""What is no field of a request by its own name."""


@dataclass(frozen=True, slots=True)
class Asked:
    model: str | None
    tools: ToolSet
    tool_choice: ToolChoice = "auto"
    parameters: Parameters = field(default_factory=lambda: Parameters())
    output: OutputFormat | None = None
    limits: Limits = field(default_factory=Limits)
    on_limit: OnLimit = "return"
    deps: Any = None
    ask: Ask | None = None
    retry: Retry = field(default_factory=Retry)
    stream: bool = True
    output_retries: int = 1


def build_request(asked: Asked, model: str, messages: Sequence[Message], tool_choice: ToolChoice) -> JsonObject:
    """The request for one turn."""
    extra = asked.parameters.get("extra") or {}
    effort = asked.parameters.get("reasoning_effort")
    given = {name: value for name, value in asked.parameters.items() if name not in _APART}
    hosted = [dict(tool) for tool in asked.parameters.get("hosted") or ()]
    request: JsonObject = {
        "model": model,
        "input": write_items(messages),
        "stream": asked.stream,
        "store": False,
        # Vendor state comes back inside the messages, since nobody else keeps the conversation.
        "include": ["reasoning.encrypted_content"],
        **given,
    }
    if effort is not None:
        request["reasoning"] = {"effort": effort}
    if len(asked.tools) or hosted:
        request["tools"] = [*asked.tools.declarations(), *hosted]
        request["tool_choice"] = _choice(tool_choice, asked.tools)
    if asked.output is not None:
        request["text"] = {"format": asked.output.format()}
    return _merge(request, extra)


def _choice(choice: ToolChoice, tools: ToolSet) -> str | JsonObject:
    if choice in ("auto", "none", "required"):
        return choice
    if tools.get(choice) is None:
        known = ", ".join(one.name for one in tools)
        raise RequestRefused(
            f"`tool_choice` names `{choice}`, which is not among the tools ({known})",
            code="invalid_value",
            param="tool_choice",
        )
    return {"type": "function", "name": choice}


def _merge(request: JsonObject, extra: Mapping[str, Any]) -> JsonObject:
    """Extra fields join the request; of `text`, `reasoning` and other objects they add what is not there."""
    made = dict(request)
    for key, value in extra.items():
        known = made.get(key)
        made[key] = {**value, **known} if isinstance(known, dict) and isinstance(value, Mapping) else value
    return made
