"""What a key is narrowed to: which models, and which of the tools that run here.

An alias that a key may use opens what it leads to, its fallbacks included: the operator has said so twice. A target
that is named by its provider is open by itself, whatever name led to it. A fallback that is not is no way for this key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from isthmus.bridge.tools.managed import managed_word
from isthmus.bridge.types.plan import Target
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Candidate
from isthmus.protocol.json import JsonObject


def permitted(caller: Caller, asked: str, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Those of the candidates that the caller may use. Refused where the first, which was asked for, is none."""
    if not _narrowed(caller):
        return candidates
    first, *others = candidates
    if not may_use(caller, asked, first):
        raise _not_allowed(caller, asked, first.target)
    return [first, *(each for each in others if may_use(caller, asked, each))]


def may_use(caller: Caller, asked: str, candidate: Candidate) -> bool:
    """`asked`: the name that led to it."""
    if not _narrowed(caller):
        return True
    names = (_name(candidate.target), *(() if "/" in asked else (asked.strip(),)))
    return all(any(_fits(name, models) for name in names) for models in _lists(caller))


def check_target(caller: Caller, target: Target) -> None:
    """Refuses what no client names, because there is but one to choose."""
    if _narrowed(caller) and not all(_fits(_name(target), models) for models in _lists(caller)):
        raise _not_allowed(caller, "", target)


def denied_tools(caller: Caller, tools: Iterable[JsonObject]) -> Mapping[str, str]:
    """Tools that would run here, and that the caller may not have run, each with the reason."""
    allowed = caller.grant.tools
    if allowed is None or caller.grant.admin:
        return {}
    words = {word for tool in tools if (word := managed_word(tool)) is not None}
    opens = ", ".join(f"`{each}`" for each in allowed) or "none of the tools that run here"
    return {
        word: f"{_whose(caller)} may not use `{word}`: it opens {opens}"
        for word in words
        if not _fits(word, allowed) and not (word.startswith("mcp:") and "mcp" in allowed)
    }


def check_tool(caller: Caller, word: str) -> None:
    """Refuses what the caller may not have done here, where it is asked for by itself."""
    for reason in denied_tools(caller, [{"type": word}]).values():
        raise RequestRefused(f"{reason}; {_ASK}", code="not_allowed")


_ASK = "ask whoever gave you the key"


def _narrowed(caller: Caller) -> bool:
    return bool((caller.grant.models or caller.team_models) and not caller.grant.admin)


def _lists(caller: Caller) -> list[tuple[str, ...]]:
    """All of them must have a name for it."""
    return [models for models in (caller.grant.models, caller.team_models) if models]


def _name(target: Target) -> str:
    return f"{target.provider}/{target.model}"


def _not_allowed(caller: Caller, asked: str, target: Target) -> RequestRefused:
    model = _name(target)
    named = f"`{model}`" if asked in ("", model) else f"`{asked[:100]}` (`{model}`)"
    opens = " and of ".join(", ".join(f"`{each}`" for each in models) for models in _lists(caller))
    return RequestRefused(
        f"{_whose(caller)} may not use the model {named}: it opens those of {opens}; {_ASK}, or ask for one of those "
        "that `/v1/models` lists",
        code="not_allowed",
        param="model",
    )


def _whose(caller: Caller) -> str:
    return f"the key `{caller.name}` (`{caller.key}`)" if caller.name else "this key"


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return _pattern(patterns).fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(".*".join(map(re.escape, each.split("*"))) for each in patterns), re.DOTALL)
