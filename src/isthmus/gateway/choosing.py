"""Which targets may answer a request, in their order: the one that is named, or those of a choice; then fallbacks.

Worth knowing: of a choice, whoever cannot take the request is passed over, and by price whoever would change what an
answer is made of, as long as another fits. A plan is made to find out, by the planner that makes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isthmus.bridge.choose import Occasion, Option, estimate, order_options, pick
from isthmus.bridge.parse import Request, conversation_of
from isthmus.bridge.types.plan import Target
from isthmus.conduct.attempt import Attempt
from isthmus.gateway.attempts import Attempts
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Candidate, Directory
from isthmus.ports import Store


class Choosing:
    def __init__(self, directory: Directory, store: Store) -> None:
        self._directory = directory
        self._store = store
        self._turns: dict[str, int] = {}

    async def candidates(self, caller: Caller, request: Request, *, peek: bool = False) -> list[Candidate]:
        """`peek`: nothing will be sent, so that nobody's turn is over."""
        directory, asked = self._directory, request.body.get("model")
        name = directory.choice_of(asked)
        if name is None:
            first = directory.find(asked)
            return [first, *directory.after(first)]
        choice, behalf = directory.choices[name], caller.behalf
        found = {f"{each.target.provider}/{each.target.model}": each for each in directory.options(name, asked)}
        options = [Option(each.target, each.served.resting(behalf)) for each in found.values()]
        occasion = await self._occasion(caller, request, name)
        if not peek and not occasion.sticky and not occasion.last:
            self._turns[name] = occasion.turn + 1
        ordered = order_options(name, choice, options, occasion)
        chosen = [replace(found[f"{target.provider}/{target.model}"], target=target) for target in ordered]
        others = [each for each in directory.after(chosen[0]) if not _is_among(each, chosen)]
        return [*chosen, *others]

    async def _occasion(self, caller: Caller, request: Request, name: str) -> Occasion:
        body = request.body
        sticky = body.get("prompt_cache_key") or conversation_of(body) or ""
        before, last = body.get("previous_response_id"), ""
        if before:
            kept = await self._store.load(before, owner=caller.owner)
            last = "" if kept is None else f"{kept.provider}/{kept.model}"
        by_price = self._directory.choices[name].by == "price"
        spends, makes = estimate(body, request.items) if by_price else (0, 0)
        return Occasion(self._turns.get(name, 0), str(sticky), last, spends, makes)


def begin(attempts: Attempts, candidates: Sequence[Candidate]) -> tuple[Attempt, Sequence[Candidate]]:
    """The way to begin with, and the candidates that are left."""
    first = candidates[0]
    if first.target.choice is None:
        return attempts.make(first), candidates[1:]
    own = {(each.target.provider, each.target.model): each for each in candidates if each.target.choice is not None}

    def make(target: Target) -> Attempt:
        return attempts.make(replace(own[target.provider, target.model], target=target))

    target, attempt = pick([each.target for each in own.values()], make, lambda made: made.plan)
    return attempt, [each for each in candidates if each.target is not target]


def _is_among(candidate: Candidate, chosen: Sequence[Candidate]) -> bool:
    target = candidate.target
    return any((each.target.provider, each.target.model) == (target.provider, target.model) for each in chosen)
