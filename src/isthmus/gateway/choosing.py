"""Which targets may answer a request, in their order: the one that is named, or those of a choice; then fallbacks.

Worth knowing: of a choice, whoever cannot take the request is passed over, and by price whoever would change what an
answer is made of, as long as another fits. A plan is made to find out, by the planner that makes all of them. Where a
key is narrowed to some of the targets, only these take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from msgspec.structs import replace

from isthmus.bridge.choose import Choice, Occasion, Option, estimate, name_of, narrow, order_options, pick
from isthmus.bridge.parse import Request, conversation_of
from isthmus.bridge.types.plan import Target
from isthmus.conduct.attempt import Attempt
from isthmus.gateway.attempts import Attempts
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Candidate, Directory
from isthmus.gateway.scopes import may_use
from isthmus.ports import Store


class Choosing:
    def __init__(self, directory: Directory, store: Store) -> None:
        self._directory = directory
        self._store = store
        self._turns: dict[tuple[str, tuple[str, ...]], int] = {}
        """Whoever may use fewer targets than others has turns of their own: those of the others stay even."""

    async def candidates(self, caller: Caller, request: Request, *, peek: bool = False) -> list[Candidate]:
        """`peek`: nothing will be sent, so that nobody's turn is over."""
        directory, asked = self._directory, request.body.get("model")
        name = directory.choice_of(asked)
        if name is None:
            first = directory.find(asked)
            return [first, *directory.after(first)]
        choice, behalf = directory.choices[name], caller.behalf
        every = directory.options(name, asked)
        open = [may_use(caller, directory.spelled(asked), each) for each in every]
        if not any(open):
            return every  # whoever looks at what is open refuses it, in its words
        narrowed = narrow(choice, open)
        found = {name_of(each.target): each for each in compress(every, open)}
        options = [Option(each.target, each.served.resting(behalf)) for each in found.values()]
        occasion = await self._occasion(caller, request, name, narrowed)
        if not peek and not occasion.sticky and not occasion.last:
            self._turns[name, narrowed.targets] = occasion.turn + 1
        ordered = order_options(name, narrowed, options, occasion)
        chosen = [replace(found[name_of(target)], target=target) for target in ordered]
        others = [each for each in directory.after(chosen[0]) if not _is_among(each, chosen)]
        return [*chosen, *others]

    async def _occasion(self, caller: Caller, request: Request, name: str, choice: Choice) -> Occasion:
        body = request.body
        sticky = body.get("prompt_cache_key") or conversation_of(body) or ""
        before, last = body.get("previous_response_id"), ""
        if before:
            kept = await self._store.load(before, owner=caller.owner)
            last = "" if kept is None else f"{kept.provider}/{kept.model}"
        spends, makes = estimate(body, request.items) if choice.by == "price" else (0, 0)
        return Occasion(self._turns.get((name, choice.targets), 0), str(sticky), last, spends, makes)


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
