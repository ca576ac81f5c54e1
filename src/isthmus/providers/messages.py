"""A provider's Messages endpoint as capabilities: its `[messages_endpoint]` section, the rest from the chat side.

For a provider whose only dialect this is (`dialect = "messages"`) the sections of its file say everything, and nothing
here is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import (
    ParameterRule,
    ProviderCapabilities,
    ReasoningSupport,
    ReplyRules,
    ResponseFormatSupport,
    TokenLimits,
    ToolChoiceSupport,
)
from isthmus.bridge.types.history import THINKING
from isthmus.providers.schema import MessagesFacts

DEFAULT_OUTPUT: Final = 32_000
"""Tokens of an answer where a model's own limit is unknown, or is most of its window: what Claude Code asks of a model
that it does not know (2.1.325, 2026-11-15)."""
_BLOCKS: Final = frozenset({"image", "file"})
_FORMATS: Final = frozenset({"text", "json_schema"})
_USER: Final = ParameterRule(to="metadata.user_id")
_PARALLEL: Final = ParameterRule(to="tool_choice.disable_parallel_tool_use", map={"false": True, "true": False})


def messages_capabilities(chat: ProviderCapabilities, facts: MessagesFacts) -> ProviderCapabilities:
    """The same model, spoken to in Messages."""
    change = msgspec.structs.replace
    # Who says that a model calls no tools says it of the model: there are none here either.
    native = frozenset({"function"}) if chat.tools.native else frozenset[str]()
    functions = {kind: to for kind, to in chat.tools.degraded.items() if to in native}
    return change(
        chat,
        dialect="messages",
        parameters=_parameters(chat, facts),
        tools=change(chat.tools, native=native, degraded=functions, declarations={}, strict=False),
        tool_choice=_tool_choice(chat, facts),
        response_formats=ResponseFormatSupport(
            supported=facts.formats & _FORMATS, drop_keywords=chat.response_formats.drop_keywords
        ),
        reasoning=_reasoning(chat.reasoning, facts),
        streaming_usage=False,
        messages=change(
            chat.messages,
            developer="system",
            system="anywhere" if facts.late_system else "leading",
            call_ids="plain64",
            turns="merged",
            after_tool="any",
            tool_media=facts.tool_media,
            input=chat.messages.input & facts.input & _BLOCKS,
            remote_images=facts.remote_images,
            needs_user=False,
            names=False,
            # Blocks go back as they came; text of another kind cannot take their place.
            replay="never",
            replay_field="reasoning_content",
            replay_placeholder=None,
            replay_details=False,
            replay_chunks=False,
            replay_extras=THINKING,
            replay_extras_fallback=None,
            signed=facts.signed,
            cache_breakpoints=facts.cache_marks,
        ),
        reply=ReplyRules(finish_reasons=chat.reply.finish_reasons),
        limits=_limits(chat.limits),
        assumed=frozenset(),
        allow=None,
        extra_body={},
    )


def _parameters(chat: ProviderCapabilities, facts: MessagesFacts) -> dict[str, ParameterRule]:
    rules = {"max_output_tokens": ParameterRule(to="max_tokens", low=1)}
    for name in ("temperature", "top_p"):
        if name in facts.parameters:
            rule = chat.parameters.get(name, ParameterRule(low=0, high=1))
            rules[name] = msgspec.structs.replace(rule, to=name)
    if "stop_sequences" in facts.parameters:
        rules["stop"] = ParameterRule(to="stop_sequences")
    if "disable_parallel_tool_use" in facts.parameters:
        rules["parallel_tool_calls"] = _PARALLEL
    if "metadata" in facts.parameters:
        rules["user"] = rules["safety_identifier"] = _USER
    return rules


def _tool_choice(chat: ProviderCapabilities, facts: MessagesFacts) -> ToolChoiceSupport:
    free = chat.tool_choice.while_thinking
    allowed = None if free is None else free & facts.tool_choice
    return ToolChoiceSupport(
        supported=facts.tool_choice, while_thinking=None if allowed == facts.tool_choice else allowed
    )


def _reasoning(chat: ReasoningSupport, facts: MessagesFacts) -> ReasoningSupport:
    """The switch is called `thinking` on both sides; a grade has a place of its own here."""
    change = msgspec.structs.replace
    switched = "thinking" in facts.parameters
    on, off, history = (_switch(one) if switched else {} for one in (chat.on, chat.off, chat.with_history))
    unset = chat.unset if switched else "vendor"
    plain = change(chat, on=on, off=off, with_history=history, unset=unset, always={}, with_tools=True, summary=False)
    if "output_config" in facts.parameters and chat.effort == "native":
        scale = facts.efforts or [effort for effort in chat.scale if effort != "none" or switched]
        mapped = {asked: used for asked, used in chat.map.items() if used in scale}
        return change(plain, to="output_config.effort", scale=scale, map=mapped)
    if switched and chat.effort != "none":
        return change(plain, effort="boolean", scale=[], map={})
    return ReasoningSupport(effort="none", default_on=chat.default_on)


def _switch(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The switch alone: what vendors put beside it on the chat side means nothing here."""
    thinking = fields.get("thinking")
    return {"thinking": {"type": thinking["type"]}} if isinstance(thinking, Mapping) and "type" in thinking else {}


def _limits(chat: TokenLimits) -> TokenLimits:
    """The protocol wants a limit with every request; it leaves half of the window to the question."""
    if chat.send_default and chat.output is not None:
        return chat
    most = min(chat.output or DEFAULT_OUTPUT, DEFAULT_OUTPUT, (chat.context or 2 * DEFAULT_OUTPUT) // 2)
    return msgspec.structs.replace(chat, send_default=False, default=most)
