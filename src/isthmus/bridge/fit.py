"""A request and the window of its model: the conversation is compacted, shortened or refused, as the client asked.

In: what `plan_request` takes. Out: its plan; or one for a summary, which says what follows it. `context_management` and
`compaction_trigger` have the model itself write the summary; `truncation` says what becomes of a conversation that is
too long all the same. A provider that has a rule for one of these sees to it itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item
from isthmus.bridge.doors.responses.echo import echo_request
from isthmus.bridge.history.compact import (
    TRIGGER,
    asks_compaction,
    compacted,
    kept_messages,
    read_threshold,
    says,
    summary_request,
    user_messages,
)
from isthmus.bridge.parse import Request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.tokens import least_tokens, likely_tokens, most_tokens
from isthmus.bridge.types.clients import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.plan import LIBRARY, Compaction, Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

_SUMMARISED: Final = "the model itself writes the summary of the conversation, which is sealed for this gateway"
_ANSWER: Final = 4
"""The answer gets a quarter of the window where nobody says how long it may be."""
_GONE: Final[JsonObject] = {"type": "configuration_update"}
"""Changes nothing, and stands for an item that is left out: the others keep their places, and so the paths that
diagnostics name."""


def fit_request(
    request: Request,
    target: Target,
    host: Host = LIBRARY,
    *,
    history: Sequence[JsonObject] = (),
    envelope_key: bytes | None = None,
    owner: str = "",
    noted: Sequence[CompatibilityDecision] = (),
    client: ClientProfile = ANY_CLIENT,
) -> Plan:
    """`plan_request`, within the model's window."""
    facts, body = target.capabilities, request.body
    window = facts.limits.context if "truncation" not in facts.parameters else None
    threshold, truncates = None, window is not None and body.get("truncation") == "auto"
    if body.get("context_management") and envelope_key is not None and "context_management" not in facts.parameters:
        threshold = read_threshold(body, facts.limits.context)
    honours = [*(["context_management"] if threshold else ()), *(["truncation"] if truncates else ())]
    if honours:
        host = replace(host, honours=host.honours.union(honours))
    keys: dict[str, Any] = {"envelope_key": envelope_key, "owner": owner, "client": client}
    case = _Case(request, target, host, history, noted, keys)
    if asks_compaction(request.items) and envelope_key is not None and TRIGGER not in facts.messages.items:
        return case.summarise(decide_item(f"input[{len(request.items) - 1}]", "degraded", _SUMMARISED))
    plan = case.plan(request)
    if threshold is not None and len(history) + len(request.items) > 1:
        tokens = likely_tokens(plan.body)
        if tokens > threshold:
            reason = f"about {tokens} tokens, more than {threshold}: {_SUMMARISED}"
            return case.compact(plan, CompatibilityDecision("context_management", "degraded", reason))
    if window is None or 0 < request.size <= window:  # fewer bytes than it has tokens; a library's has none
        return plan
    if truncates:
        return case.shorten(plan, window)
    least = least_tokens(plan.body) if request.size else 0  # who embeds us hears it from the provider
    if least > window:
        reason = f"the conversation takes at least {least} tokens, and `{target.model}` reads {window} at most"
        raise RequestRefused(
            f"{reason}; send less of it, or `truncation: auto`",
            code="context_length_exceeded",
            param="input",
            metadata={"tokens": least, "window": window},
        )
    return plan


class _Case(msgspec.Struct, frozen=True):
    request: Request
    target: Target
    host: Host
    history: Sequence[JsonObject]
    noted: Sequence[CompatibilityDecision]
    keys: Mapping[str, Any]

    def plan(
        self,
        request: Request,
        history: Sequence[JsonObject] | None = None,
        decision: CompatibilityDecision | None = None,
        *,
        strict: bool = True,
    ) -> Plan:
        return plan_request(
            request,
            self.target,
            self.host if strict else replace(self.host, strict=False),
            history=self.history if history is None else history,
            noted=self.noted if decision is None else (*self.noted, decision),
            **self.keys,
        )

    def summarise(self, decision: CompatibilityDecision) -> Plan:
        if not self.history and all(item["type"] == TRIGGER for item in self.request.items):
            reason = "there is no conversation to compact; send it as `input`, or name its `previous_response_id`"
            raise RequestRefused(reason, code="missing_required_parameter", param="input")
        # What strict mode has to say concerns the answer: nothing is asked of a summary that it could not have.
        plan = self.plan(summary_request(self.request), decision=decision, strict=False)
        echo = echo_request(self.request, plan.compatibility)
        return replace(plan, echo=echo, compaction=Compaction())

    def compact(self, answer: Plan, decision: CompatibilityDecision) -> Plan:
        """The summary first; then the answer, which goes on from it. Without one the answer is asked for as it was."""

        def then(summary: JsonObject | None) -> Plan:
            return answer if summary is None else self._go_on(summary, decision)

        first = self.summarise(decision)
        return replace(first, echo=answer.echo, contract=answer.contract, compaction=Compaction(then))

    def _go_on(self, summary: JsonObject, decision: CompatibilityDecision) -> Plan:
        """Behind the summary comes the last thing that the user said: it is what the model has to answer."""
        items = self.request.items
        said = kept_messages([*self.history, *items])
        *_, last = user_messages(said) or [_GONE]
        earlier = [item for item in said if item is not last]
        past = [*compacted(earlier, summary), *([] if any(item is last for item in items) else [last])]
        new = tuple([item if item is last else _GONE for item in items])
        return self.plan(replace(self.request, items=new), past, decision)

    def shorten(self, plan: Plan, window: int) -> Plan:
        """Without its oldest turns, as many as it takes by a figure that errs high; the newest one always stays."""
        asked = self.request.body.get("max_output_tokens") or plan.target.capabilities.limits.output or window
        surplus = most_tokens(plan.body) - (window - min(asked, window // _ANSWER))
        items, gone, turns = [*self.history, *self.request.items], set[int](), 0
        starts = [index for index, item in enumerate(items) if says(item, "user")]
        for begin, end in pairwise(starts):
            if surplus <= 0:
                break
            turn = [index for index in range(begin, end) if not says(items[index], "system", "developer")]
            surplus -= most_tokens({"input": [items[index] for index in turn]})
            gone.update(turn)
            turns += 1
        if not gone:
            return plan
        left = [_GONE if index in gone else item for index, item in enumerate(items)]
        said = f"the {turns} oldest turn(s), {len(gone)} item(s), are left out"
        reason = f"{said}: `{plan.target.model}` reads {window} tokens"
        shorter = replace(self.request, items=tuple(left[len(self.history) :]))
        decision = CompatibilityDecision("truncation", "degraded", reason, "auto")
        return self.plan(shorter, left[: len(self.history)], decision)
