"""How hard to think, what to show of it, whose request it is: the options of a Messages request.

In: its fields. Out: the Responses fields that mean the same, and a decision for each that is not carried over as it
came. A budget of tokens becomes the effort that comes closest; an effort that was asked for by name wins over it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.messages import CountTokens, CreateMessage, Thinking

NEWEST: Final = "2026-10-21"
"""The version of the API that takes no sampling any more."""
SESSION: Final = "x-claude-code-session-id"
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_BUDGETS: Final = ((4_096, "low"), (16_384, "medium"), (32_768, "high"))
_ADAPTIVE: Final = "medium"
_NO_OPS: Final = ("clear_thinking_20251015",)
_UNHEARD: Final[Mapping[str, str]] = {
    # It tells of the user's machine: folders, rules, the state of a repository.
    "safeguards": "facts for the vendor's own classifiers; they stay in this house",
    "diagnostics": "nothing here reports on the prompt cache of the vendor",
    "speed": "the provider is asked at the speed that it has",
    "inference_geo": "where the model runs is a matter of the provider that is configured",
    "fallbacks": "what answers when a model fails is configured here, under `models.fallbacks`",
    "thread": "nothing is kept here between two requests; the whole conversation is read each time",
    "compaction": "the conversation is compacted by whoever sends it",
    "user_profile_id": "there are no profiles of users here",
}
_HARMLESS: Final = ("safeguards", "diagnostics", "user_profile_id")
"""What of these the vendor alone reads: no word of an answer depends on it."""
_RUN_BY_VENDOR: Final[Mapping[str, str]] = {
    "mcp_servers": "nothing here calls MCP servers for the model; connect them in the client",
    "container": "there are no containers here; run the code in the client",
}
TRANSLATED: Final = frozenset(
    {
        *("messages", "system", "tools", "tool_choice", "max_tokens", "thinking", "output_config", "output_format"),
        *("stop_sequences", "metadata", "context_management", "cache_control", "service_tier", "store"),
        *_UNHEARD,
        *_RUN_BY_VENDOR,
    }
)


class OptionReader:
    def __init__(self, body: JsonObject, version: str) -> None:
        self.decisions: list[CompatibilityDecision] = []
        self.paths: dict[str, str] = {}
        """Where a field of Responses stands in this request, where that depends on the request."""
        self._body, self._version = body, version

    def read(self, asked: CreateMessage | CountTokens, session: str, effort: tuple[str, str] | None) -> JsonObject:
        """`effort`: what the conversation itself asks for, and where; `session`: the client's name for it."""
        self._leave_out()
        options = self._reasoning(asked, effort) | self._format(asked) | self._identify(session)
        stops, tier = self._body.get("stop_sequences"), self._body.get("service_tier")
        if stops:
            options["stop"] = stops
        if tier is not None:
            options["service_tier"] = "default" if tier == "standard_only" else tier
        self._edit(asked)
        return options

    def _leave_out(self) -> None:
        for name in _SAMPLING if self._version >= NEWEST else ():
            if self._body.get(name) is not None:
                words = f"`{name}` is not taken in version {NEWEST} of this API; leave it out"
                raise RequestRefused(words, code="invalid_value", param=name)
        for name, reason in _UNHEARD.items():
            if self._body.get(name) is not None:
                self.decisions.append(CompatibilityDecision(name, "ignored", reason, harmless=name in _HARMLESS))
        for name, reason in _RUN_BY_VENDOR.items():
            if self._body.get(name):
                self._decide(name, "rejected", reason)

    def _reasoning(self, asked: CountTokens, between: tuple[str, str] | None) -> JsonObject:
        thinking = asked.get("thinking")
        config = asked.get("output_config") or {}
        named, where = config.get("effort"), "output_config.effort"
        if between is not None:
            if named is not None:
                self._decide(where, "supported", f"`{between[1]}` comes later, and counts")
            named, where = between
        if "task_budget" in config:
            self._decide("output_config.task_budget", "ignored", "nobody here counts the tokens of a whole task")
        options: JsonObject = {}
        if thinking is not None and thinking["type"] == "disabled":
            if named is not None:
                self._decide(where, "ignored", "`thinking` is `disabled`, and there is no effort but in thinking")
            self.paths["reasoning.effort"] = self.paths["reasoning"] = "thinking"
            return {"reasoning": {"effort": "none"}}
        budgeted = self._budget(thinking, named)
        effort = named or budgeted
        if effort is not None:
            options["effort"] = effort
            self.paths["reasoning.effort"] = where if named else "thinking.budget_tokens"
        if thinking is not None:
            if effort is None:
                # Some providers do not think unless they are told how hard.
                effort = options["effort"] = _ADAPTIVE
                self._decide("thinking", "degraded", f"`{thinking['type']}` thinking is told as the effort `{effort}`")
            else:
                self._decide("thinking", "supported", f"`{thinking['type']}`: as hard as the effort says")
            if thinking.get("display") != "omitted":
                options["summary"] = "auto"
        return {"reasoning": options} if options else {}

    def _budget(self, thinking: Thinking | None, named: str | None) -> str | None:
        budget = thinking.get("budget_tokens") if thinking is not None else None
        if budget is None:
            return None
        effort = next((word for most, word in _BUDGETS if budget < most), "xhigh")
        if named is not None:
            self._decide("thinking.budget_tokens", "ignored", "`output_config.effort` says how hard to think")
        else:
            reason = f"a budget of {budget} tokens is told as the effort `{effort}`"
            decision = CompatibilityDecision("thinking.budget_tokens", "degraded", reason, effort)
            self.decisions.append(decision)
        return effort

    def _format(self, asked: CountTokens) -> JsonObject:
        newer, older = (asked.get("output_config") or {}).get("format"), asked.get("output_format")
        given = newer or older
        if given is None:
            return {}
        where = "output_config.format" if newer else "output_format"
        self.paths |= {"text.format": where, "text.format.schema": f"{where}.schema"}
        if newer and older:
            self._decide("output_format", "ignored", "`output_config.format` is its newer name, and is there")
        if given["type"] != "json_schema" or not isinstance(given.get("schema"), dict):
            words = f"`{where}` must be of type `json_schema`, with a `schema`"
            raise RequestRefused(words, code="invalid_value", param=where)
        form = {"type": "json_schema", "name": "output", "schema": given.get("schema"), "strict": True}
        return {"text": {"format": form}}

    def _identify(self, session: str) -> JsonObject:
        """Who asks is told as a digest: the ids of machines and accounts are nobody's business."""
        metadata = self._body.get("metadata")
        user = metadata.get("user_id") if isinstance(metadata, dict) else None
        options: JsonObject = {}
        facts = _facts(user)
        if isinstance(user, str) and user:
            who = str(facts.get("account_uuid") or facts.get("device_id") or user)
            options["safety_identifier"] = f"user_{hashlib.sha256(who.encode()).hexdigest()[:32]}"
        if isinstance(metadata, dict):
            for name in metadata:
                if name != "user_id":
                    reason = "nothing is stored that it could be attached to"
                    self.decisions.append(CompatibilityDecision(f"metadata.{name}", "ignored", reason, harmless=True))
        self.paths["prompt_cache_key"] = SESSION if session else "metadata.user_id.session_id"
        session = session or str(facts.get("session_id") or "")
        if session:
            options["prompt_cache_key"] = session[:64]
        return options

    def _edit(self, asked: CountTokens) -> None:
        given = asked.get("context_management")
        if given is None:
            return
        edits = given.get("edits")
        for index, edit in enumerate(edits if isinstance(edits, list) else ()):
            kind = edit.get("type") if isinstance(edit, dict) else None
            where = f"context_management.edits[{index}]"
            if kind in _NO_OPS and edit.get("keep") == "all":
                self._decide(where, "supported", "all thinking is kept; nothing to do")
            else:
                self._decide(where, "ignored", f"nobody here edits the conversation (`{kind}`); send less of it")
        if not edits:
            self._decide("context_management", "supported", "it asks for no edits")

    def _decide(self, path: str, action: Action, reason: str) -> None:
        self.decisions.append(CompatibilityDecision(path, action, reason))


def _facts(user: Any) -> JsonObject:
    """Claude Code sends an object as text."""
    if not isinstance(user, str) or not user.startswith("{"):
        return {}
    try:
        facts = msgspec.json.decode(user)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}
