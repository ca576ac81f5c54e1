"""How one parameter travels, by its `ParameterRule`; and the words for those that have none.

In: a path, its value, the rule. Out: one decision. A `map` without `values` is a translation (the provider
says the same thing in another word: supported); with `values` it is a substitution (degraded).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from isthmus.bridge.capabilities import ParameterRule
from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.bridge.resolve import nearest_name
from isthmus.protocol.chat import CreateChatCompletion
from isthmus.protocol.json import nest
from isthmus.protocol.messages import CreateMessage
from isthmus.protocol.responses import CreateResponse, ReasoningOptions, TextOptions


def apply_rule(
    path: str, value: Any, rule: ParameterRule, *, thinking: bool, streams_tools: bool = False
) -> CompatibilityDecision:
    """Carry a parameter over: renamed, mapped, clamped, or left out where the rule says so."""
    if hindered := hindrance(rule, thinking=thinking, streams_tools=streams_tools):
        return ignored(path, hindered)
    to, key = rule.to or path, _map_key(value) if rule.map else None
    mapped = rule.map.get(key, value) if key is not None else value
    action: Action = "supported"
    reason = "" if to == path else f"sent as `{to}`"
    if rule.values is not None and not any(_same(value, one) for one in rule.values):
        accepted = f"the provider takes only {', '.join(f'`{_word(one)}`' for one in rule.values)}"
        if key not in rule.map:
            return ignored(path, accepted)
        used, action, reason = mapped, "degraded", f"{accepted}; sent as `{_word(mapped)}`"
    elif rule.values is None and key in rule.map:
        used = mapped
    elif (used := clamp(value, rule.low, rule.high)) != value:
        action, reason = "degraded", f"the provider takes {_range(rule.low, rule.high)}; {value} is sent as {used}"
    return CompatibilityDecision(path, action, reason, used, nest(to, used))


def hindrance(rule: ParameterRule, *, thinking: bool, streams_tools: bool) -> str:
    """Why a parameter that the provider knows cannot go with this request; empty: it can."""
    if thinking and not rule.while_thinking:
        return "the provider does not take it while the model thinks"
    if streams_tools and not rule.in_tool_streams:
        return "the provider does not take it in a stream that offers tools"
    return ""


def without_rule(path: str, value: Any) -> CompatibilityDecision:
    if asks_nothing(path, value):
        return supported(path, _ANYWAY)
    if path in _SERVICES:
        return _SERVICES[path](path, value)
    if path in _INDISPENSABLE:
        return rejected(path, _INDISPENSABLE[path])
    reason = _REASONS.get(path) or _suggest(path)
    return ignored(path, reason or "the provider has no counterpart for it", harmless=path in _HARMLESS)


KEPT_AHEAD: Final = "nothing is asked yet; the input is kept for the response that continues this one"
_ANYWAY: Final = "asks for what happens anyway; nothing to send"


def _suggest(path: str) -> str:
    """A field that nobody knows is often one that somebody knows, with a slip in it."""
    parent, _, name = path.rpartition(".")
    groups = _FIELDS.get(parent, ())
    if any(name in known for known in groups):
        return ""
    near = next(filter(None, (nearest_name(name, known, likeness=0.8) for known in groups)), None)
    return f"there is no such parameter; did you mean `{f'{parent}.{near}' if parent else near}`?" if near else ""


def asks_nothing(path: str, value: Any) -> bool:
    """Whether the value is the one that holds without saying so."""
    nothing = _NOTHING.get(path)
    if nothing is None:
        return False
    if path == "stream_options":
        value = {name: one for name, one in value.items() if one is not None}
        return all(pair in nothing for pair in value.items())
    return any(_same(value, one) for one in nothing)


def supported(path: str, reason: str = "", **facts: Any) -> CompatibilityDecision:
    return CompatibilityDecision(path, "supported", reason, **facts)


def ignored(path: str, reason: str, **facts: Any) -> CompatibilityDecision:
    return CompatibilityDecision(path, "ignored", reason, **facts)


def rejected(path: str, reason: str, **facts: Any) -> CompatibilityDecision:
    return CompatibilityDecision(path, "rejected", reason, **facts)


def clamp(value: Any, low: float | None, high: float | None) -> Any:
    """A number moved into the range, kept whole where it was whole; anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    bound = low if low is not None and value < low else value
    bound = high if high is not None and value > high else bound
    if bound == value:
        return value
    return int(bound) if isinstance(value, int) and float(bound).is_integer() else bound


def _map_key(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case _:
            return None


def _same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: `true` is not `1`."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _word(value: Any) -> str:
    return _map_key(value) or str(value)


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


# Services around the model for which the provider has no rule: what guards somebody (a filter that must block, a
# programme that must be granted) is refused rather than dropped; what only reports is left out.


def _moderation(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    policy = value.get("policy") or {}
    blocks = [side for side in ("input", "output") if (policy.get(side) or {}).get("mode") not in (None, "score")]
    if blocks:
        names = " and ".join(f"`moderation.policy.{side}.mode`" for side in blocks)
        return rejected(path, f"nothing here can block by moderation, as {names} asks; moderate before and after it")
    return ignored(path, "nothing here moderates; the response's `moderation` holds errors in place of scores")


def _access_programs(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    other = sorted(name for name, one in value.items() if one not in (None, "standard"))
    if not other:
        return supported(path, _ANYWAY)
    names = ", ".join(f"`access_programs.{name}`" for name in other)
    return rejected(path, f"the provider grants no access programs; send `standard` for {names}, or leave it out")


def _image(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    if value.get("context_compression") != "enabled":
        return supported(path, "images are sent as they are")
    return rejected(path, "nothing here compresses images; send `auto` or `disabled` as `image.context_compression`")


def _multi_agent(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    if not value.get("enabled"):
        return supported(path, _ANYWAY)
    return rejected(path, "no agents run beside the model here; leave `multi_agent` out")


def _prompt_cache(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    if value.get("mode") in (None, "implicit") and not (set(value) - {"mode", "prewarm"}):
        return supported(path, KEPT_AHEAD if value.get("prewarm") else _ANYWAY)
    return ignored(path, "the provider decides by itself what it caches, and for how long")


_SERVICES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], CompatibilityDecision]]] = {
    "moderation": _moderation,
    "access_programs": _access_programs,
    "image": _image,
    "multi_agent": _multi_agent,
    "prompt_cache_options": _prompt_cache,
}


_FIELDS: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    "": tuple(frozenset(door.__annotations__) for door in (CreateResponse, CreateChatCompletion, CreateMessage)),
    "reasoning": (frozenset(ReasoningOptions.__annotations__),),
    "text": (frozenset(TextOptions.__annotations__),),
}
"""The fields that the protocols know, by the object that they stand in. What a door does not translate comes here under
the name that its client gave it."""

_NOTHING: Final[Mapping[str, tuple[Any, ...]]] = {
    "background": (False,),
    "store": (False,),
    "metadata": ({},),
    "client_metadata": ({},),
    "context_management": ([], {}),
    # Pairs, any of which may be there: nothing is obfuscated, and usage is always reported.
    "stream_options": (("include_obfuscation", False), ("include_usage", True)),
    "truncation": ("disabled",),
    "parallel_tool_calls": (True,),
    "service_tier": ("auto", "default"),
    "include": ([],),
    "top_logprobs": (0,),
    "logprobs": (False,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "stop": ([],),
    "n": (1,),
    "prompt_cache_retention": ("in_memory", "in-memory"),
    "text.verbosity": ("medium",),
    "reasoning.summary": ("none",),
    "reasoning.generate_summary": ("none",),
    "reasoning.context": ("auto",),
    "reasoning.mode": ("standard",),
}
"""Values that say what would happen anyway, so that leaving them out loses nothing."""

_INDISPENSABLE: Final[Mapping[str, str]] = {
    "previous_response_id": "there is no store here to find the earlier turns in, and without them the model would "
    "answer another question; send the whole conversation as `input`",
    "conversation": "there is no store here that holds conversations, and without its items the model would answer "
    "another question; send the earlier turns as `input`",
    "prompt": "there is no store here to find the prompt in, and without it the model would answer another question; "
    "send its text as `instructions`",
}
"""Parameters whose loss would change what is being asked: dropping them is worse than refusing."""

_HARMLESS: Final = frozenset(
    {"prompt_cache_key", "prompt_cache_retention", "client_metadata", "safety_identifier", "user"}
)
"""What an answer costs, and who asks for it: no word of it depends on them."""

_REASONS: Final[Mapping[str, str]] = {
    "metadata": "nothing is stored here, so there is nothing to attach it to",
    "background": "there is no background here; the request is answered while the caller waits",
    "store": "there is no store here; the response can not be fetched later",
    "stream_options": "the stream is sent plainly, without obfuscation",
    "context_management": "nobody here compacts the context; an over-long one is refused by the provider",
    "truncation": "the provider can not shorten an over-long context; it refuses it",
    "service_tier": "the provider has no service tiers",
    "parallel_tool_calls": "the provider can not be kept from calling several tools at once",
    "max_tool_calls": "the provider can not count the calls of its own tools; those of yours are yours to count",
    "top_logprobs": "the provider reports no token probabilities",
    "logprobs": "the provider reports no token probabilities",
    "prompt_cache_key": "the provider finds cached prompts by itself",
    "prompt_cache_retention": "the provider decides by itself how long prompts stay cached",
    "client_metadata": "facts for the client's own backend; they do not concern the provider",
    "safety_identifier": "the provider takes no end-user identifier",
    "user": "the provider takes no end-user identifier",
    "text.verbosity": "the provider has no setting for verbosity; ask for it in `instructions`",
    "reasoning.summary": "the provider makes no summaries; its reasoning comes as text where it shows it",
    "reasoning.generate_summary": "the provider makes no summaries; its reasoning comes as text where it shows it",
    "reasoning.context": "the model takes no earlier reasoning back",
    "reasoning.mode": "the provider has no such mode; ask for a higher `reasoning.effort`",
    "max_output_tokens": "the provider takes no limit on the answer's length",
    "top_k": "not a Responses parameter; set it for the provider with `extra_body`",
    "max_tokens": "not a Responses parameter; send `max_output_tokens`",
    "max_completion_tokens": "not a Responses parameter; send `max_output_tokens`",
    "messages": "not a Responses parameter; send `input`",
    "response_format": "not a Responses parameter; send `text.format`",
    "reasoning_effort": "not a Responses parameter; send `reasoning.effort`",
    "functions": "not a Responses parameter; send `tools`",
    "function_call": "not a Responses parameter; send `tool_choice`",
}
