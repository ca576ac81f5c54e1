"""The model a client names becomes the model a provider serves.

Worth knowing: a name with a slash is never an alias, and only its first slash counts, so that
`openrouter/meta-llama/llama-3` asks `openrouter` for `meta-llama/llama-3`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from isthmus.errors import RequestRefused

ANY_NAME: Final = "*"
"""The alias that catches every bare name no other alias has."""
MAX_MODEL: Final = 1_000
"""Characters of a model's name: it stands in every chunk of a chat stream, and in every line about the request."""


class ModelRef(msgspec.Struct, frozen=True):
    """Which provider serves which model, and the alias that led there."""

    provider: str
    model: str
    alias: str | None = None

    @property
    def name(self) -> str:
        """The reference as a client would write it."""
        return f"{self.provider}/{self.model}"


def resolve_model(
    name: str | None,
    aliases: Mapping[str, str],
    default: str | None,
    providers: Collection[str],
    unserved: Callable[[str], str] = lambda _: "",
) -> ModelRef:
    """Find the model: `provider/model`, exact alias, the alias `*`, then the bare name at the default provider.

    `default` is a `provider/model` or an alias, for requests without a model; its provider, or the first of all, gets
    the bare names. `unserved` tells what a provider that is known and not configured lacks.
    """
    if name is None:
        return _resolve_default(aliases, default, providers)
    asked = name.strip()
    if not asked:
        raise _refused("missing_model", "`model` is empty; name a model, or leave the field out to get the default")
    if len(asked) > MAX_MODEL:
        raise _refused("invalid_value", f"`model` is longer than {MAX_MODEL:,} characters; name a model")
    if "/" in asked:
        return _split(asked, providers, unserved=unserved)
    for alias in (asked, ANY_NAME):
        if alias in aliases:
            return _split(aliases[alias], providers, alias=alias)
    return ModelRef(_default_provider(asked, aliases, default, providers), asked)


def resolve_fallbacks(
    ref: ModelRef, fallbacks: Mapping[str, Sequence[str]], providers: Collection[str]
) -> tuple[ModelRef, ...]:
    """The models to try, in order, when `ref` fails: the list of its alias, else of its `provider/model`, else of `*`.
    Each comes once, `ref` itself never: trying the same model twice is what retries are for."""
    key = next((key for key in (ref.alias, ref.name, ANY_NAME) if key is not None and key in fallbacks), None)
    if key is None:
        return ()
    found: dict[str, ModelRef] = {}
    for entry in fallbacks[key]:
        target = _split(entry, providers, alias=ref.alias)
        if target.name != ref.name:
            found.setdefault(target.name, target)
    return tuple(found.values())


def split_reference(text: str) -> tuple[str, str] | None:
    """`provider/model` → both sides, or `None` when there is no slash or a side is empty."""
    provider, _, model = text.partition("/")
    provider, model = provider.strip(), model.strip()
    return (provider, model) if provider and model else None


def nearest_name(name: str, known: Iterable[str], *, likeness: float = 0.7) -> str | None:
    """The known name that the writer most likely meant, if one is near enough: `nope` is no slip of `openai`."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=likeness)
    return by_folded[close[0]] if close else None


def _resolve_default(aliases: Mapping[str, str], default: str | None, providers: Collection[str]) -> ModelRef:
    asked = (default or "").strip()
    if not asked:
        unset = "`model` is missing and no default model is configured; send `model`, or set `models.default`"
        raise _refused("missing_model", unset)
    if "/" not in asked and asked in aliases:
        return _split(aliases[asked], providers, alias=asked)
    return _split(asked, providers)


def _default_provider(asked: str, aliases: Mapping[str, str], default: str | None, providers: Collection[str]) -> str:
    if (default or "").strip():
        return _resolve_default(aliases, default, providers).provider
    for provider in providers:
        return provider
    unset = f"`model` is `{_clip(asked)}`, but no provider is configured; add one to the configuration"
    raise _refused("unknown_provider", unset)


def _split(
    text: str,
    providers: Collection[str],
    *,
    alias: str | None = None,
    unserved: Callable[[str], str] = lambda _: "",
) -> ModelRef:
    through = f" (through the alias `{alias}`)" if alias is not None else ""
    sides = split_reference(text)
    if sides is None:
        wrong = f"`model` is `{_clip(text)}`{through}, which is not `provider/model`; name both sides of the slash"
        raise _refused("invalid_model", wrong)
    provider, model = sides
    if provider not in providers:
        known = ", ".join(f"`{name}`" for name in providers) or "none"
        near = nearest_name(_clip(provider), providers)
        hint = f"did you mean `{near}/{_clip(model)}`? " if near else ""
        wrong = f"`model` names the provider `{_clip(provider)}`{through}, which is not configured"
        if lacks := unserved(provider):
            raise _refused("unknown_provider", f"{wrong}: {lacks}")
        raise _refused("unknown_provider", f"{wrong}; {hint}known providers: {known}")
    return ModelRef(provider, model, alias)


def _refused(code: str, message: str) -> RequestRefused:
    return RequestRefused(message, code=code, param="model")


def _clip(text: str) -> str:
    """A client may send a megabyte as its model; the answer need not carry it back."""
    return text if len(text) <= 100 else f"{text[:100]}…"
