"""Fields that ask for a service around the model: moderation, access programs, agents beside it, prompt caches.

In: the field's value, where the provider has no rule for it. Out: its decision. What guards somebody (a filter that
must block, a programme that must be granted) is refused rather than dropped; what only reports is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from isthmus.bridge.compat.rules import ignored, rejected, supported
from isthmus.bridge.diagnostics import CompatibilityDecision

_NOTHING: Final = "asks for what happens anyway; nothing to send"


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
        return supported(path, _NOTHING)
    names = ", ".join(f"`access_programs.{name}`" for name in other)
    return rejected(path, f"the provider grants no access programs; send `standard` for {names}, or leave it out")


def _image(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    if value.get("context_compression") != "enabled":
        return supported(path, "images are sent as they are")
    return rejected(path, "nothing here compresses images; send `auto` or `disabled` as `image.context_compression`")


def _multi_agent(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    if not value.get("enabled"):
        return supported(path, _NOTHING)
    return rejected(path, "no agents run beside the model here; leave `multi_agent` out")


def _prompt_cache(path: str, value: Mapping[str, Any]) -> CompatibilityDecision:
    if value.get("mode") in (None, "implicit") and not (set(value) - {"mode"}):
        return supported(path, _NOTHING)
    return ignored(path, "the provider decides by itself what it caches, and for how long")


SERVICES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], CompatibilityDecision]]] = {
    "moderation": _moderation,
    "access_programs": _access_programs,
    "image": _image,
    "multi_agent": _multi_agent,
    "prompt_cache_options": _prompt_cache,
}
