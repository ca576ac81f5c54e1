"""One provider, as it is configured: can it be reached, is its key good, what does it list? And what to do if not.

In: a provider's name and settings. Out: a `Checkup`. Worth knowing: its list of models is asked for, which is free of
charge; where that proves nothing, only a request can tell (`ask`), and somebody pays for that. Nobody waits longer than
`within` for either. Nothing is kept, and no key is ever shown: only where it comes from.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Final, Literal

import msgspec

from isthmus.addresses import is_local
from isthmus.bridge.limits import AnswerLimits, take_limits
from isthmus.config.keys import WANTING, Key, first_address, lacks_key
from isthmus.config.known import CODEX, DEMO, find_known
from isthmus.config.profiles import read_profile
from isthmus.config.schema import Config, ProviderConfig
from isthmus.errors import ConfigError, CredentialsRefused, IsthmusError, UpstreamFailed
from isthmus.providers import Provider, load_provider
from isthmus.providers.catalog import offered_models
from isthmus.upstream.endpoint import Endpoint
from isthmus.upstream.knock import SOUND, Knock, Verdict, knock, shows_key, verdict_of
from isthmus.values.redact import redact_url
from isthmus.wiring_endpoints import http_endpoint, places_of
from isthmus.wiring_providers import codex_options

WITHIN: Final = 10.0
"""Seconds for what is free."""
ASKED_WITHIN: Final = 60.0
"""Seconds for a request: a model may have to be loaded first, or think."""
_QUESTION: Final = "Reply with the single word: ready"
_TOKENS: Final = 64
"""Of the answer; whatever comes within them proves that the model answers."""

By = Literal["list", "connection", "request", "program", "itself", "nothing"]
"""How it was found out: `program` is the one that the gateway starts (codex), `itself` the demo; `nothing`: by looking
at the settings alone."""


@dataclass(frozen=True, slots=True)
class Checkup:
    provider: str
    verdict: Verdict
    told: str
    """What was found, in words that follow the name."""
    remedy: str = ""
    """What to do next; empty: nothing."""
    address: str = ""
    credential: str = ""
    """Which key is sent, or why none is, in words."""
    models: tuple[str, ...] | None = None
    seconds: float = 0.0
    by: By = "nothing"
    paid: bool = False
    """Whether the provider may have charged for it."""

    @property
    def sound(self) -> bool:
        return self.verdict in SOUND


async def check_providers(
    config: Config,
    names: Sequence[str],
    faults: Mapping[str, str] | None = None,
    *,
    ask: bool = False,
    model: str = "",
    within: float = WITHIN,
    environ: Mapping[str, str] = os.environ,
) -> list[Checkup]:
    """Each of these, side by side; one that is not configured is looked at as its file and the environment have it.
    `faults`: what is wrong in the configuration itself, by provider; nobody is asked then."""
    wrong = {name: _misconfigured(name, fault) for name, fault in (faults or {}).items() if name in names}
    asked = [name for name in names if name not in wrong]
    found = await asyncio.gather(
        *(check_up(name, config, ask=ask, model=model, within=within, environ=environ) for name in asked)
    )
    every = wrong | dict(zip(asked, found, strict=True))
    return [every[name] for name in names]


async def check_up(
    name: str,
    config: Config,
    *,
    ask: bool = False,
    model: str = "",
    within: float = WITHIN,
    environ: Mapping[str, str] = os.environ,
) -> Checkup:
    """`ask`: also send a request, to `model` or to the one that the provider has for such a case. Raises `ConfigError`
    where nobody knows the provider; whatever else is wrong is a verdict."""
    folders = [Path(folder) for folder in config.provider_folders]
    settings = config.providers.get(name)
    if settings is None:
        find_known(name, folders)  # an unknown name is a mistake in the question, not a finding
    try:
        if settings is None:
            settings = read_profile(("providers", name), name, ProviderConfig(), environ=environ, folders=folders)
        provider = load_provider(
            settings.uses or name, folders, models=settings.models, place=f"providers.{name} in the configuration"
        )
        found = await _free(name, provider, settings, config, within)
    except ConfigError as error:
        return _misconfigured(name, error.message)
    if ask and found.verdict in ("ready", "unproven", "not_found", "strange"):
        found = await _asked(found, provider, settings, config, model, environ)
    return replace(found, remedy=_remedy(found, settings))


def _misconfigured(name: str, fault: str) -> Checkup:
    told, _, fix = fault.partition(". Fix: ")
    return Checkup(name, "not_configured", told, fix)


async def _free(name: str, provider: Provider, settings: ProviderConfig, config: Config, within: float) -> Checkup:
    """All that can be found out without paying for it."""
    if provider.capabilities().dialect == CODEX:
        return await _program(name, provider, settings, config)
    if provider.name == DEMO and not settings.base_url:
        models = tuple(each.model.model for each in offered_models(provider))
        return Checkup(name, "ready", "answers in this very program", models=models, credential="no key", by="itself")
    known = find_known(settings.uses or name, [Path(folder) for folder in config.provider_folders], settings.endpoint)
    places = places_of(settings)
    looked = await asyncio.gather(
        *(_place(name, provider, place, lacks_key(settings, known), within) for place in places)
    )
    worst = next((each for each in looked if not each.sound), looked[0])
    if len(looked) > 1:
        number = looked.index(worst) + 1
        where = f"all {len(looked)} places: " if worst.sound else f"place {number} of {len(looked)}: "
        return replace(worst, told=f"{where}{worst.told}")
    return worst


async def _place(name: str, provider: Provider, settings: ProviderConfig, lacks: bool, within: float) -> Checkup:
    """One key at one address."""
    endpoint, base_url = _listing(name, provider, settings)
    facts = Checkup(name, "ready", "", address=redact_url(base_url), credential=endpoint.credential)
    if lacks:
        met = await knock(endpoint, base_url, (), within=within)
        told = "can be reached, and has no key" if met.verdict == "unproven" else f"has no key; it {met.told}"
        return replace(facts, verdict="no_key", told=told, seconds=met.seconds, by="connection")
    paths = provider.word.paths
    met = await knock(endpoint, base_url, paths, within=within)
    if met.verdict == "not_found" and endpoint.signer is not None:  # clouds keep their lists elsewhere, if at all
        met = replace(met, verdict="unproven", told="can be reached, and has no list of models to ask for")
    verdict, told = _judged(met, settings, base_url, shown=shows_key(endpoint))
    by: By = "list" if paths else "connection"
    return replace(facts, verdict=verdict, told=told, models=met.models, seconds=met.seconds, by=by)


def _judged(met: Knock, settings: ProviderConfig, base_url: str, *, shown: bool) -> tuple[Verdict, str]:
    """What a knock means where nothing was shown, or a key held back because it is for somebody else."""
    key = settings.api_key
    if shown or not isinstance(key, Key) or not key.withheld:
        return ("no_key" if met.verdict == "key_refused" and not shown else met.verdict), met.told
    if met.verdict == "key_refused":
        return "key_withheld", f"wants a key, and the one in `${key.withheld}` was not sent: it is for another host"
    if met.verdict == "ready" and not is_local(base_url):
        return "unproven", f"{met.told} without a key"
    return met.verdict, met.told


def _listing(name: str, provider: Provider, settings: ProviderConfig) -> tuple[Endpoint, str]:
    """Where the list is asked for, as the file's own endpoint is: another dialect may be spoken at another address."""
    own = provider.capabilities().dialect
    dialect = settings.dialect if settings.base_url and settings.dialect else own
    endpoint = http_endpoint(name, provider, settings, "", dialect)
    base_url = first_address(provider.endpoint, settings)
    if dialect == "messages" and f"{base_url.rstrip('/')}/v1/" in endpoint.url:
        base_url = f"{base_url.rstrip('/')}/v1"
    return endpoint, base_url


async def _program(name: str, provider: Provider, settings: ProviderConfig, config: Config) -> Checkup:
    """Codex: it is started, says whether it is logged in, and lists what that login may use."""
    from isthmus.upstream.codex.backend import open_codex

    began = monotonic()
    facts = Checkup(name, "ready", "", credential="the login of the `codex` program", by="program")
    options = codex_options(settings)
    try:
        async with (
            asyncio.timeout(options.handshake_timeout + WITHIN),
            aclosing(await open_codex(name, options, take_limits(AnswerLimits, config.limits))) as backend,
        ):
            listed = tuple(str(entry["id"]) for entry in await backend.models() if entry.get("id"))
            found = replace(facts, told=f"is logged in, and lists {len(listed)} models", models=listed)
    except TimeoutError:
        found = replace(facts, verdict="timeout", told="did not answer in time")
    except CredentialsRefused as failure:
        found = replace(facts, verdict="no_key", told=failure.message)
    except UpstreamFailed as failure:
        found = replace(facts, verdict=verdict_of(failure), told=failure.message)
    return replace(found, seconds=monotonic() - began)


async def _asked(
    found: Checkup,
    provider: Provider,
    settings: ProviderConfig,
    config: Config,
    model: str,
    environ: Mapping[str, str],
) -> Checkup:
    """One small request, over the way that every request takes."""
    from isthmus.client.retry import NO_RETRY
    from isthmus.wiring_bridge import Bridge

    name = found.provider
    chosen = model or provider.default_model or next(iter(found.models or ()), "")
    if not chosen:
        return replace(found, told=f"{found.told}; nothing says which model to ask: name one with `--model`")
    began = monotonic()
    alone = msgspec.structs.replace(config, providers={name: settings})
    paid = (settings.uses or name) != DEMO and not (found.address and is_local(found.address))
    asked = replace(found, by="request", paid=paid)
    try:
        async with Bridge(config=alone, environ=environ) as bridge:
            answer = await bridge.chat(
                f"{name}/{chosen}", _QUESTION, max_output_tokens=_TOKENS, timeout=ASKED_WITHIN, retry=NO_RETRY
            )
        asked = replace(asked, verdict="ready", told=f"answers with `{answer.model or chosen}`")
    except UpstreamFailed as failure:
        told = failure.message.removeprefix(f"provider `{name}` ")
        asked = replace(asked, verdict=verdict_of(failure), told=f"asked for `{chosen}`: {told}")
    except IsthmusError as error:
        asked = replace(asked, verdict="strange", told=f"asked for `{chosen}`: {error.message}")
    return replace(asked, seconds=monotonic() - began)


_ADVICE: Final[Mapping[Verdict, str]] = {
    "ready": "",
    "key_refused": "put a good key there",
    "spent": "add credit at the provider, or use another key",
    "limited": "wait a little, then test again",
    "failing": "nothing is wrong here: test again later",
    "strange": "look at its address: something else may answer there",
}


def _remedy(found: Checkup, settings: ProviderConfig) -> str:
    """What to do about it, in words that can be typed."""
    name, local = found.provider, is_local(found.address) if found.address else False
    setting = f"`providers.{name}.base_url`"
    match found.verdict:
        case "unproven":
            return (
                f"`isthmus providers test {name} --ask` sends one small request{'' if local else ', which is paid for'}"
            )
        case "no_key" if found.by == "program":
            return ""  # it says itself what to run
        case "no_key":
            return found.credential.removeprefix(WANTING)
        case "key_withheld":
            key = settings.api_key
            variable = key.withheld if isinstance(key, Key) else ""
            return f'write `providers.{name}.api_key = "${{{variable}}}"` if it is for this host, too'
        case "not_found" if found.by == "request":
            return "name another model with `--model`"
        case "not_found":
            return f"look at {setting}: most end in `/v1`; one without a list is tested with `--ask`"
        case "unreachable" | "timeout" if local:
            return f"start it, or correct {setting}"
        case "unreachable" | "timeout":
            return f"look at the network, at a proxy (`HTTPS_PROXY`), and at {setting}"
        case verdict:
            return _ADVICE.get(verdict, "")
