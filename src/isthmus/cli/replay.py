"""A recorded request once more: planned for another provider beside the plan that was made then, and sent if wanted.

In: what is kept of a request, and a provider. Out: a `Replay`: both sides, and their differences. Nothing is sent
unless it is asked for; then the answer stands beside the recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.cli.explain_plan import Asked, Explained, choose_model, explain, refusal_json
from isthmus.cli.foreseen import foresee
from isthmus.cli.heard import load_known, recall_lessons
from isthmus.cli.kept import Kept
from isthmus.errors import ConfigError, IsthmusError
from isthmus.observe.differences import PlanDifferences, compare_plans
from isthmus.observe.sent import Origin, content_of, origin_of, sent_bytes
from isthmus.observe.traces.told import traced_decisions
from isthmus.ports.traced import TracedDecision
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.config.schema import Config


@dataclass(frozen=True, slots=True)
class Side:
    """One plan of the two."""

    provider: str
    model: str
    decisions: tuple[TracedDecision, ...]
    body: JsonObject | None
    origin: Origin = "planned"

    def to_json(self) -> JsonObject:
        shown = [msgspec.to_builtins(decision) for decision in self.decisions]
        return {
            "provider": self.provider,
            "model": self.model,
            "origin": self.origin,
            "decisions": shown,
            "body": self.body,
        }


@dataclass(frozen=True, slots=True)
class Replay:
    kept: Kept
    before: Side
    after: Side
    refusal: JsonObject | None
    """Why the other provider cannot be asked at all."""
    differences: PlanDifferences

    def to_json(self) -> JsonObject:
        return {
            "id": self.kept.id,
            "request": "recorded" if self.kept.exact else "made again from the stored response",
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "refused": self.refusal,
            "differences": self.differences.to_json(),
        }


def replay(kept: Kept, config: Config, provider: str = "", model: str = "", *, strict: bool = False) -> Replay:
    """Plan it again, for `provider` (else for the one that answered)."""
    asked = kept.asked()
    name = provider or kept.provider
    if not name:
        raise ConfigError(f"nobody was asked for `{kept.id}`; name a provider with `--provider`")
    then = _plan(asked, config, name, model or ("" if provider not in ("", kept.provider) else kept.model), strict)
    before = _recorded(kept, config, asked)
    target = then.target
    after = Side(target.provider, target.model, as_traced(then), then.body)
    bodies = None if before.body is None or after.body is None else (before.body, after.body)
    refusal = None if then.refusal is None else refusal_json(then.refusal)
    return Replay(kept, before, after, refusal, compare_plans(before.decisions, after.decisions, bodies=bodies))


def plan_again(kept: Kept, config: Config) -> Explained:
    """As it would be planned today for the model that answered."""
    return _plan(kept.asked(), config, kept.provider, kept.model, strict=False)


def _plan(asked: Asked, config: Config, name: str, model: str, strict: bool) -> Explained:
    folders = [Path(folder) for folder in config.provider_folders]
    provider, settings = load_known(name, folders, config)
    known_as, dialect = (name, settings.dialect) if settings is not None else ("", None)
    chosen = choose_model(asked, provider, model, known_as)
    lessons = recall_lessons(config, name, provider, chosen) if known_as else []
    managed = foresee(config, asked)
    return explain(
        asked, provider, chosen, strict=strict, name=known_as, dialect=dialect, lessons=lessons, managed=managed
    )


def _recorded(kept: Kept, config: Config, asked: Asked) -> Side:
    """The plan that was made then: as its trace has it, where it has it."""
    trace = kept.trace
    raw = None if trace is None else sent_bytes(trace)
    if trace is not None and raw is not None:
        return Side(kept.provider, kept.model, trace.decisions, msgspec.json.decode(raw), "sent")
    again: Explained | None = None
    with suppress(IsthmusError):  # its provider may be known here no more; the decisions still are
        again = plan_again(kept, config)
    if trace is None:
        made = () if again is None else as_traced(again)
        return Side(kept.provider, kept.model, made, None if again is None else again.body)
    if again is None or again.plan is None:
        return Side(kept.provider, kept.model, trace.decisions, None)
    origin = origin_of(trace, again.plan.body, kept.envelope_key)
    return Side(kept.provider, kept.model, trace.decisions, again.body, origin)


def as_traced(explained: Explained) -> tuple[TracedDecision, ...]:
    """Decisions as a trace has them, so that both sides can be compared: by a plan's own paths, whichever door the
    request came through."""
    plan = explained.plan
    return traced_decisions(explained.decisions if plan is None else plan.decisions)


# ── sent ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def send_here(replayed: Replay, config: Config) -> JsonObject:
    """Ask the provider with a gateway of this process; nothing is stored, nobody else is told."""
    from isthmus.bridge.limits import OWN_LIMITS
    from isthmus.bridge.parse import parse_request
    from isthmus.cli.deeds import keeper_of
    from isthmus.gateway.caller import Caller
    from isthmus.wiring import running_gateway

    name = replayed.after.provider
    if name not in config.providers:
        raise ConfigError(
            f"provider `{name}` is not configured, so it can be planned for but not asked: `isthmus init`"
        )
    alone = msgspec.structs.replace(config, providers={name: config.providers[name]}, webhooks=type(config.webhooks)())
    request = parse_request(sendable(replayed), OWN_LIMITS)
    async with running_gateway(alone) as gateway:
        await keeper_of(gateway.store, config.store).note("trace.replay", replayed.kept.id, provider=name)
        run = await gateway.create(Caller(client=replayed.kept.asked().client), request)
        async for _ in run.events():
            pass
    response: Any = run.response
    answer: JsonObject = dict(response or {})
    return answer


async def send_there(replayed: Replay, gateway: str, key: str) -> JsonObject:
    """Ask a gateway at an address."""
    from isthmus.upstream.remote import GatewayAddress, RemoteGateway

    remote = RemoteGateway(GatewayAddress(gateway, key))
    answer: JsonObject = {}
    try:
        async for events in remote.events(sendable(replayed)):
            answer = events[-1].get("response") or answer
    finally:
        await remote.aclose()
    return answer


def sendable(replayed: Replay) -> JsonObject:
    """The request for the other model, whole: it continues nothing, is stored nowhere and comes in one piece."""
    request, side = replayed.kept.asked().request, replayed.after
    left_out = ("previous_response_id", "conversation", "background", "stream", "stream_options")
    rest = {name: value for name, value in request.body.items() if name not in left_out}
    items = [*replayed.kept.history, *request.items]
    return {**rest, "model": f"{side.provider}/{side.model}", "input": items, "store": False}


def recorded_answer(kept: Kept) -> JsonObject:
    """Of the answer that was given then, what is still known."""
    trace = kept.trace
    whole = kept.stored.response if kept.stored is not None else None if trace is None else content_of(trace.answer)
    if whole is not None:
        return summary_of(whole)
    assert trace is not None
    told = trace.summary
    figures = {name: getattr(told, name) for name in ("input_tokens", "cached_tokens", "output_tokens")}
    return {"status": told.outcome, **(figures if trace.usage is not None else {})}


def summary_of(response: Mapping[str, Any]) -> JsonObject:
    """What is compared of two answers."""
    usage = response.get("usage") or {}
    details = usage.get("input_tokens_details") or {}
    return {
        "status": response.get("status"),
        "input_tokens": usage.get("input_tokens"),
        "cached_tokens": details.get("cached_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "error": (response.get("error") or {}).get("message"),
        "text": answer_text(response.get("output") or ()),
    }


def answer_text(output: Sequence[Mapping[str, Any]]) -> str:
    """What was said, and which tools were called."""
    told: list[str] = []
    for item in output:
        if item.get("type") == "message":
            told += [str(part.get("text") or part.get("refusal") or "") for part in item.get("content") or ()]
        elif str(item.get("type")).endswith("_call"):
            told.append(f"{item.get('name') or item.get('type')}({item.get('arguments') or item.get('input') or ''})")
    return "\n".join(filter(None, told))
