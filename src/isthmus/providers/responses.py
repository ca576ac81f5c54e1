"""A provider's own Responses endpoint as capabilities: its `[responses]` section, the rest from the chat side.

Shell-like tools and namespaces are always offered as functions, also where the vendor knows them: their
calls come back restored, and one way through is better than two.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

import msgspec

from isthmus.bridge.capabilities import (
    EFFORTS,
    ParameterRule,
    ProviderCapabilities,
    ReasoningSupport,
    ResponseFormatSupport,
    ToolChoiceSupport,
)
from isthmus.providers.schema import MessagesFacts, ResponsesFacts

_RESTORED: Final = frozenset({"namespace", "shell", "local_shell", "apply_patch", "tool_search"})
_PLAIN: Final = (
    "max_output_tokens",
    "max_tool_calls",
    "temperature",
    "top_p",
    "top_logprobs",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "access_programs",
    "image",
    "reasoning.mode",
    "reasoning.context",
    "safety_identifier",
    "service_tier",
    "truncation",
    "user",
)
_ALWAYS: Final = frozenset({"model", "input", "instructions", "stream", "tools", "tool_choice", "store"})


def serves(facts: ResponsesFacts | MessagesFacts | None, model: str) -> bool:
    """Whether the provider's other endpoint has this model."""
    if facts is None:
        return False
    return not facts.models or any(fnmatchcase(model.lower(), pattern.lower()) for pattern in facts.models)


def responses_capabilities(chat: ProviderCapabilities, facts: ResponsesFacts) -> ProviderCapabilities:
    """The same model, spoken to in Responses."""
    # Who says that a model calls no tools says it of the model: there are none here either.
    tools = facts.tools - _RESTORED | {"function"} if chat.tools.native else frozenset[str]()
    degraded = {kind: to for kind, to in chat.tools.degraded.items() if kind not in tools and to in tools}
    if tools:
        degraded |= {kind: "function" for kind in ("custom", *sorted(_RESTORED - {"namespace"})) if kind not in tools}
    return msgspec.structs.replace(
        chat,
        dialect="responses",
        parameters=_parameters(chat, facts),
        tools=msgspec.structs.replace(
            chat.tools,
            native=tools,
            degraded=degraded,
            declarations={},
            as_is=True,
            strict=chat.tools.strict if facts.strict is None else facts.strict,
            cached_search=facts.cached_search,
        ),
        tool_choice=_tool_choice(chat, facts),
        response_formats=ResponseFormatSupport(
            supported=facts.formats,
            with_tools=facts.with_tools,
            drop_keywords=chat.response_formats.drop_keywords,
            needs_word=chat.response_formats.needs_word,
        ),
        reasoning=_reasoning(chat, facts),
        streaming_usage=False,
        reply=msgspec.structs.replace(chat.reply, tells_length=facts.tells_length),
        messages=msgspec.structs.replace(
            chat.messages,
            developer="developer",
            system="anywhere",
            empty_content="omit",
            call_ids="keep",
            names=False,
            turns="free",
            after_tool="any",
            tool_media=facts.tool_media,
            input=chat.messages.input if facts.input is None else chat.messages.input & facts.input,
            items=facts.items,
            phases=facts.phases,
            cache_breakpoints=facts.cache_breakpoints,
            # An endpoint that seals its reasoning takes its own envelope back and no other text.
            replay="never" if facts.encrypted_reasoning else chat.messages.replay,
            replay_field="reasoning_content",
            replay_details=False,
            replay_chunks=False,
            replay_extras="encrypted_content" if facts.encrypted_reasoning else "",
            replay_extras_fallback=None,
        ),
        allow=frozenset(_ALWAYS | facts.parameters | ({"include"} if facts.encrypted_reasoning else set()))
        if facts.unknown == "refused"
        else None,
        extra_body={"include": ["reasoning.encrypted_content"]} if facts.encrypted_reasoning else {},
    )


def _tool_choice(chat: ProviderCapabilities, facts: ResponsesFacts) -> ToolChoiceSupport:
    supported = facts.tool_choice - {"allowed_tools"}
    thinking = chat.tool_choice.while_thinking if facts.while_thinking is None else facts.while_thinking
    # What the chat side takes while thinking may be more than this endpoint takes at all.
    return ToolChoiceSupport(supported=supported, while_thinking=thinking if thinking is None else thinking & supported)


def _parameters(chat: ProviderCapabilities, facts: ResponsesFacts) -> dict[str, ParameterRule]:
    rules: dict[str, ParameterRule] = {}
    for name in _PLAIN:
        if name in facts.parameters:
            rule = chat.parameters.get(name, ParameterRule())
            rules[name] = msgspec.structs.replace(rule, to=name)
    if "include" in facts.parameters:
        rules["include"] = ParameterRule()
    if "text" in facts.parameters:
        rules["text.verbosity"] = ParameterRule(to="text.verbosity")
    return rules


def _reasoning(chat: ProviderCapabilities, facts: ResponsesFacts) -> ReasoningSupport:
    if "reasoning" not in facts.parameters or (chat.reasoning.effort == "none" and not facts.efforts):
        return ReasoningSupport(effort="none", default_on=chat.reasoning.default_on)
    scale = facts.efforts or chat.reasoning.scale or list(EFFORTS)
    return ReasoningSupport(
        effort="native",
        to="reasoning.effort",
        scale=scale,
        map={asked: used for asked, used in chat.reasoning.map.items() if used in scale},
        default_on=chat.reasoning.default_on,
        summary=facts.encrypted_reasoning,
    )
