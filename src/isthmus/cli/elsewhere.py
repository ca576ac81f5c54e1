"""A gateway elsewhere: its address and key are tried before anything is written or started.

In: what the user gave. Out: the gateway with the model to start with and the list of all that it serves; or an error
that says which of it is wrong: nobody answers there, the key is missing or not taken, whoever answers is no Isthmus, or
it does not serve that model. Worth knowing: a key that came from a variable is only ever referred to by its name.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit

import typer

from isthmus.addresses import is_local
from isthmus.errors import ConfigError, IsthmusError, RequestRefused
from isthmus.protocol.json import JsonObject

GatewayOption = Annotated[
    str | None, typer.Option("--gateway", "--url", help="A gateway elsewhere: its models are asked for.")
]
KeyOption = Annotated[
    str | None,
    typer.Option(help="A key for the gateway; `-` asks for it, or reads it from a pipe. Else $ISTHMUS_API_KEY."),
]
KeyEnvOption = Annotated[str | None, typer.Option(help="Another environment variable that holds the key.")]
NoCheckOption = Annotated[
    bool, typer.Option("--no-check", help="Do not ask the gateway whether all of this is right: it needs not run.")
]

VARIABLE: Final = "ISTHMUS_API_KEY"
UNREACHABLE: Final = "gateway_unreachable"
KEY_MISSING: Final = "gateway_key_missing"
KEY_REFUSED: Final = "gateway_key_refused"
NOT_OURS: Final = "not_a_gateway"
IN_TROUBLE: Final = "gateway_in_trouble"
"""Codes of what may be wrong with it."""

_PATIENCE: Final = 10.0
"""Seconds that it may take for each step of its answer."""


@dataclass(frozen=True, slots=True)
class ShownKey:
    value: str = field(default="", repr=False)
    variable: str = ""
    """Where it came from; empty: it was given by hand."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    base: str
    """Without `/v1`."""
    model: str
    listing: JsonObject
    """All models, with the catalogue for Codex and what the gateway can do besides."""
    described: JsonObject | None = None
    """What it says of a model that it serves and does not list."""

    def tells(self, what: str) -> bool:
        """Whether it says that it can do this: `images`, `search`."""
        told = self.listing.get("isthmus")
        return isinstance(told, dict) and bool(told.get(what))


def take_key(given: str | None, variable: str | None = None, *, needed: bool = True) -> ShownKey:
    """The key that was given, by hand, by a pipe or by the name of its variable; else that of the usual variable.
    `needed`: it will be shown now, so a variable that was named must hold one."""
    if given is not None and variable is not None:
        raise ConfigError("`--key` and `--key-env` both name a key; give one of them")
    if given == "-":
        given = _ask_for_key()
    if given is not None:
        return ShownKey(_checked(given.strip(), "`--key`"))
    if variable is not None and not os.environ.get(variable, "").strip():
        if not needed:
            return ShownKey(variable=variable)
        raise ConfigError(f"the variable `{variable}` is not set; set it to a key for the gateway, and try again")
    name = variable or VARIABLE
    value = os.environ.get(name, "").strip()
    return ShownKey(_checked(value, f"`${name}`"), name) if value else ShownKey()


def gateway_base(url: str) -> str:
    """The address without `/v1`, or a refusal of what is none."""
    from isthmus.cli.probe_target import check_address

    if "://" not in url:
        scheme = "http" if is_local(f"http://{url}") else "https"
        raise ConfigError(f"`{url}` is not an address; write `{scheme}://{url}`")
    return check_address(url).removesuffix("/v1")


def ask_gateway(url: str, model: str | None, key: ShownKey) -> Elsewhere:
    """Address, model and the list of all models, from a gateway that runs."""
    return asyncio.run(look_at_gateway(gateway_base(url), model, key))


async def look_at_gateway(base: str, model: str | None, key: ShownKey, seconds: float = _PATIENCE) -> Elsewhere:
    from isthmus.cli.offer import unknown_model
    from isthmus.upstream.endpoint import Patience
    from isthmus.upstream.remote import GatewayAddress, RemoteGateway

    gateway = RemoteGateway(GatewayAddress(f"{base}/v1", key.value, patience=Patience(seconds, seconds, seconds)))
    try:
        listing = await gateway.listing()
        slugs = _slugs(base, listing)
        chosen = (model or next(iter(slugs), "")).strip()
        if chosen in slugs:
            return Elsewhere(base, chosen, listing)
        # A name without a provider is an alias, and those are listed; else any would do where all lead to one model.
        described = await _describe(gateway, chosen) if "/" in chosen else None
        if described is None or _is_misspelt(chosen, described, slugs):
            raise unknown_model(chosen, slugs)
        return Elsewhere(base, chosen, listing, described)
    except ConfigError:
        raise
    except IsthmusError as error:
        raise _explain(error, base, key) from error
    finally:
        await gateway.aclose()


def unencrypted(base: str, key: ShownKey) -> str | None:
    """What is to be said of a key that everybody on the way can read; `None`: nothing."""
    if not key.value or urlsplit(base).scheme == "https" or is_local(base):
        return None
    return f"The key travels to `{base}` unencrypted: use `https://` unless that network is yours alone."


async def _describe(gateway: Any, model: str) -> JsonObject | None:
    """A gateway serves more than it lists: any model of a house of other people's models, for one."""
    try:
        found: JsonObject = await gateway.ask(f"/models/{quote(model, safe='')}", "a model", dict[str, Any])
    except RequestRefused:
        return None
    return found if found.get("id") == model else None


def _is_misspelt(model: str, described: JsonObject, slugs: Sequence[str]) -> bool:
    """Whether nobody but the one who asks names it, and one that is listed is called almost the same."""
    from isthmus.cli.offer import nearest_model

    facts = described.get("isthmus")
    return isinstance(facts, dict) and facts.get("source") == "name" and nearest_model(model, slugs) is not None


def _slugs(base: str, listing: Mapping[str, Any]) -> list[str]:
    try:
        return [str(entry["slug"]) for entry in listing["models"]]
    except (LookupError, TypeError) as error:
        raise _not_ours(base, "its list of models is another one's") from error


def _explain(error: IsthmusError, base: str, key: ShownKey) -> ConfigError:
    status = error.status
    if status in (401, 403):
        shown = f"the key in `${key.variable}`" if key.variable else "the key that was given"
        if not key.value:
            words = f"the gateway at `{base}` wants a key; give one with `--key -`, or in `${VARIABLE}`"
            return ConfigError(words, code=KEY_MISSING)
        words = f"the gateway at `{base}` does not take {shown}: {error.message}"
        return ConfigError(words, code=KEY_REFUSED)
    if status is not None and 300 <= status < 400:
        return _not_ours(base, f"it answers HTTP {status}, which leads elsewhere; is it `https://`?")
    if status is not None and status >= 500:
        return ConfigError(f"the gateway at `{base}` is in trouble: {error.message}", code=IN_TROUBLE)
    if isinstance(error, RequestRefused) or error.code in ("upstream_malformed", "server_error"):
        return _not_ours(base, error.message)
    why = error.message.partition("cannot be reached: ")[2] or error.message
    words = f"no gateway answers at `{base}`: {why}; is it running there (`isthmus serve`), and is the address right?"
    return ConfigError(words, code=UNREACHABLE)


def _not_ours(base: str, why: str) -> ConfigError:
    return ConfigError(f"what answers at `{base}` is not an Isthmus gateway: {why}", code=NOT_OURS)


def _ask_for_key() -> str:
    """Hidden where somebody types it; of a pipe the first line, so that an answer to the question may follow."""
    if sys.stdin.isatty():
        key: str = typer.prompt("Key for the gateway", hide_input=True, err=True)
        return key
    return sys.stdin.readline()


def _checked(key: str, where: str) -> str:
    if not key:
        raise ConfigError(f"{where} is empty; give a key for the gateway")
    if not key.isprintable() or not key.isascii():
        raise ConfigError(f"{where} holds characters that no key has; was it copied whole, and alone?")
    return key
