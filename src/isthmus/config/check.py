"""Does a whole configuration make sense? Every problem is found, each with its fix.

In: a completed `Config`. Out: `Problem`s: errors that keep the gateway from starting, and warnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from isthmus.addresses import host_of, is_local, is_loopback
from isthmus.bridge.choose import MOST_WEIGHT
from isthmus.bridge.resolve import ANY_NAME, nearest_name, split_reference
from isthmus.config.keys import is_own_address, lacks_key, shows_header
from isthmus.config.known import CODEX, RUN_TIME, KnownProvider
from isthmus.config.schema import (
    CodexSettings,
    Config,
    Images,
    Limits,
    McpConfig,
    ProviderConfig,
    Search,
    Store,
    Webhooks,
)
from isthmus.providers.check import find_problems
from isthmus.providers.schema import COMPUTED
from isthmus.values.problems import KeyPath, Problem

SERVER_SCHEMES: Final = ("postgresql", "postgres")
STORE_SCHEMES: Final = ("memory", "sqlite", *SERVER_SCHEMES)
_SHORTEST_KEY: Final = 16
PROXY_SCHEMES: Final = ("http", "https")


def check_config(config: Config, known: Mapping[str, KnownProvider]) -> list[Problem]:
    """Everything wrong or worth a warning, in the order of the sections; `known` is what the provider files say."""
    return [
        *_check_server(config),
        *_check_models(config),
        *(
            problem
            for name, provider in config.providers.items()
            for problem in check_provider(("providers", name), name, provider, known.get(name))
        ),
        *_check_teams(config),
        *_check_keys(config, known),
        *_check_store(config.store),
        *_check_webhooks(config.webhooks),
        *_check_patterns(config.trace.scrub),
        *_check_search(config.search),
        *_check_mcp(config.mcp),
        *_check_images(config.images, config.providers),
        *_check_limits(config),
    ]


def _check_limits(config: Config) -> Iterator[Problem]:
    if config.limits != Limits() or config.teams:  # loaded only where somebody is limited
        from isthmus.config.check_limits import check_limits

        yield from check_limits(config)


def _check_patterns(patterns: Sequence[str]) -> Iterator[Problem]:
    for index, pattern in enumerate(patterns):
        try:
            re.compile(pattern)
        except re.error as error:
            fix = "correct it; it is an expression of Python's `re`"
            yield Problem(("trace", f"scrub[{index}]"), f"is no regular expression: {error}", fix)


def _check_webhooks(webhooks: Webhooks) -> Iterator[Problem]:
    if webhooks.endpoints:  # loaded only where there are receivers
        from isthmus.config.check_webhooks import check_webhooks

        yield from check_webhooks(webhooks)


def _check_search(search: Search) -> Iterator[Problem]:
    if search != Search():  # loaded only where somebody searches
        from isthmus.config.check_search import check_search

        yield from check_search(search)


def _check_mcp(servers: Mapping[str, McpConfig]) -> Iterator[Problem]:
    if servers:  # likewise
        from isthmus.config.check_mcp import check_mcp

        yield from check_mcp(servers)


def _check_images(images: Images, providers: Mapping[str, ProviderConfig]) -> Iterator[Problem]:
    at = ("images",)
    if images.url:
        yield from check_url((*at, "url"), images.url, ("http", "https"))
        if images.provider:
            yield Problem((*at, "url"), "excludes `provider`", "keep one of them")
        if not images.model:
            yield Problem((*at, "model"), "is missing: nothing else says who draws at `url`", "name the model")
        if images.api_key and images.url.startswith("http:") and not is_local(images.url):
            yield Problem((*at, "url"), "sends the key over plain HTTP", "use https where it has it", "warning")
    elif images.api_key:
        yield Problem((*at, "api_key"), "means something only with `url`", "set `url`, or remove it")
    elif images.provider not in ("", "none") and images.provider not in providers:
        near = nearest_name(images.provider, providers)
        fix = f"did you mean `{near}`?" if near else f"add `[providers.{images.provider}]`, or give its `url`"
        yield Problem((*at, "provider"), f"is `{images.provider}`, which is not configured", fix)


def _check_server(config: Config) -> Iterator[Problem]:
    host = config.server.host
    if not is_loopback(host):
        yield Problem(
            ("server", "host"),
            f"is `{host}`: whoever can reach this machine can spend your provider keys",
            "listen on 127.0.0.1, or let a firewall or a proxy with authentication stand before the port",
            "warning",
        )


def _check_models(config: Config) -> Iterator[Problem]:
    models, providers = config.models, config.providers
    if not providers:
        yield Problem(
            ("providers",),
            "has no provider",
            "run `isthmus init`, set a provider's key variable, or leave `models.demo` on",
        )
        return
    yield from _check_choices(config)
    named = {*models.aliases, *models.choices}
    if models.default and not ("/" not in models.default and models.default in named):
        yield from _check_reference(("models", "default"), models.default, providers, alias_too=True)
    for alias, target in models.aliases.items():
        path = ("models", "aliases", alias)
        if "/" in alias or not alias.strip():
            yield Problem(path, "is no usable alias: a name with a slash always means `provider/model`", "rename it")
        if target not in models.choices:
            yield from _check_reference(path, target, providers)
    for key, targets in models.fallbacks.items():
        path = ("models", "fallbacks", key)
        if key != ANY_NAME and key not in named and split_reference(key) is None:
            near = nearest_name(key, named)
            fix = f"did you mean `{near}`?" if near else "use a name of `[models.aliases]`, or a `provider/model`"
            yield Problem(path, "stands for no alias and no model", fix)
        for target in targets:
            yield from _check_reference(path, target, providers)


def _check_choices(config: Config) -> Iterator[Problem]:
    models = config.models
    for name, choice in models.choices.items():
        path = ("models", "choices", name)
        if "/" in name or not name.strip() or name == ANY_NAME:
            yield Problem(path, "is no usable name: one with a slash always means `provider/model`", "rename it")
        if name in models.aliases:
            yield Problem(path, "is an alias, too", "rename one of them")
        if not choice.targets:
            yield Problem((*path, "targets"), "is missing", 'name them: `targets = ["provider/model", …]`')
        if len(set(choice.targets)) < len(choice.targets):
            yield Problem((*path, "targets"), "names one of them twice", "give it a larger weight instead")
        for target in choice.targets:
            yield from _check_reference((*path, "targets"), target, config.providers)
        if choice.weights and choice.by != "weight":
            yield Problem((*path, "weights"), f'means nothing with `by = "{choice.by}"`', "remove one of them")
        if choice.weights and len(choice.weights) != len(choice.targets):
            yield Problem((*path, "weights"), "has another length than `targets`", "give one weight for each target")
        if sum(choice.weights) > MOST_WEIGHT:
            yield Problem((*path, "weights"), f"is more than {MOST_WEIGHT} in all", "use smaller numbers")


def _check_reference(
    path: KeyPath, text: str, providers: Mapping[str, ProviderConfig], *, alias_too: bool = False
) -> Iterator[Problem]:
    sides = split_reference(text)
    if sides is None:
        what = "neither `provider/model` nor an alias" if alias_too else "not `provider/model`"
        yield Problem(path, f"is `{text}`, which is {what}", f"write it as `{next(iter(providers))}/MODEL`")
    elif sides[0] not in providers:
        near = nearest_name(sides[0], providers)
        hint = f"did you mean `{near}/{sides[1]}`? Otherwise add" if near else "add"
        yield Problem(
            path, f"names the provider `{sides[0]}`, which is not configured", f"{hint} `[providers.{sides[0]}]`"
        )


def check_provider(at: KeyPath, name: str, provider: ProviderConfig, known: KnownProvider | None) -> Iterator[Problem]:
    """One provider, wherever it is configured."""
    if "/" in name or not name.strip() or name != name.strip():
        yield Problem(at, "is no usable name for a provider: clients write `name/model`", "rename it, without a slash")
    yield from _check_addresses(at, provider)
    yield from _check_one_key(at, provider)
    yield from _check_callers_keys(at, provider)
    if provider.endpoints and provider.base_url:
        yield Problem((*at, "endpoints"), "excludes `base_url`", "put that address into `endpoints` too")
    yield from _check_header_text(at, provider)
    if provider.proxy and provider.proxy != "direct":
        yield from check_url((*at, "proxy"), provider.proxy, PROXY_SCHEMES)
    if not provider.verify_tls:
        yield Problem(
            (*at, "verify_tls"),
            "is off: anyone on the way can read the key",
            "trust the server's certificate",
            "warning",
        )
    if provider.codex != CodexSettings() and provider.uses != CODEX:
        yield Problem(
            (*at, "codex"), 'means something only with `uses = "codex"`', 'set `uses = "codex"`, or remove it'
        )
    if provider.models:
        yield from find_problems({"models": provider.models}, provider.uses, at)
    if known is None:
        return
    if provider.endpoint and provider.endpoint not in known.alternatives:
        near = nearest_name(provider.endpoint, known.alternatives)
        names = ", ".join(f"`{other}`" for other in known.alternatives) or "none"
        fix = f"did you mean `{near}`?" if near else f"remove it; the file of `{known.name}` names: {names}"
        yield Problem(
            (*at, "endpoint"), f"is `{provider.endpoint}`, an address that the provider file does not name", fix
        )
    if known.auth in COMPUTED and not provider.api_key and not is_own_address(provider, known):
        yield Problem(
            (*at, "endpoints" if provider.endpoints else "base_url"),
            f"leads to another host than `{host_of(known.base_url)}`, so nothing is signed for it",
            f'set `api_key`, or write a provider file with that address and `extends = "{known.name}"`',
        )
    has_address = (
        known.base_url or provider.base_url or (provider.endpoints and all(e.base_url for e in provider.endpoints))
    )
    if not has_address and known.name not in RUN_TIME:
        yield Problem(
            (*at, "base_url"), "is missing", f'set it, for example `base_url = "http://127.0.0.1:8080/v1"` for `{name}`'
        )


def _check_one_key(at: KeyPath, provider: ProviderConfig) -> Iterator[Problem]:
    # `api_key` is filled in from the file, so that the file is asked for first.
    if provider.api_keys and (provider.api_key_file or provider.api_key):
        named = "api_key_file" if provider.api_key_file else "api_key"
        yield Problem((*at, "api_keys"), f"excludes `{named}`", "keep one of them")


def _check_callers_keys(at: KeyPath, provider: ProviderConfig) -> Iterator[Problem]:
    for name, key in provider.keys_for.items():
        path = (*at, "keys_for", name)
        if not name.removeprefix("team:").strip():
            yield Problem(path, "names nobody", "write `team:NAME`, or the id of a caller's key")
        if not key:
            yield Problem(path, "is empty", "set it, or remove the entry")
    if provider.keys_for and provider.uses == CODEX:
        yield Problem((*at, "keys_for"), "means nothing to Codex, which has a login of its own", "remove it")
    if provider.keys_for and shows_header(provider):
        fix = "remove that header, and set `api_key` for everybody else"
        yield Problem((*at, "keys_for"), "would be covered by a key in `headers` or `query`", fix)


def _check_teams(config: Config) -> Iterator[Problem]:
    for team, settings in config.teams.items():
        for name, key in settings.upstream_keys.items():
            path, provider = ("teams", team, "upstream_keys", name), config.providers.get(name)
            if provider is None:
                near = nearest_name(name, config.providers)
                fix = f"did you mean `{near}`?" if near else f"add `[providers.{name}]`, or remove it"
                yield Problem(path, "names a provider that is not configured", fix)
            elif f"team:{team}" in provider.keys_for:
                fix = f"keep this one, or the one in `providers.{name}.keys_for`"
                yield Problem(path, "says twice which key this team has", fix)
            if not key:
                yield Problem(path, "is empty", "set it, or remove the entry")
            yield from check_header(path, key)


def _check_addresses(at: KeyPath, provider: ProviderConfig) -> Iterator[Problem]:
    shared = bool(provider.api_key or provider.api_keys)
    places = [((*at, "base_url"), provider.base_url, shared)]
    places += [
        ((*at, f"endpoints[{index}]", "base_url"), place.base_url, shared or bool(place.api_key))
        for index, place in enumerate(provider.endpoints)
    ]
    for path, url, key in places:
        if not url:
            continue
        problems = list(check_url(path, url, ("http", "https")))
        yield from problems
        if not problems and key and url.startswith("http:") and not is_local(url):
            yield Problem(path, "sends the key over plain HTTP", "use https where the server has it", "warning")


def check_url(path: KeyPath, url: str, schemes: tuple[str, ...]) -> Iterator[Problem]:
    fix = f"write it whole, for example `{schemes[0]}://host:8080`"
    try:
        parts = urlsplit(url)
        sound = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound or any(character.isspace() for character in url):
        yield Problem(path, f"must be a URL with {' or '.join(schemes)}", fix)


def _check_header_text(at: KeyPath, provider: ProviderConfig) -> Iterator[Problem]:
    """Keys and headers travel in header lines: a line break from a secret file would break the request."""
    texts = [((*at, "api_key"), provider.api_key)]
    texts += [((*at, f"api_keys[{index}]"), key) for index, key in enumerate(provider.api_keys)]
    texts += [((*at, "keys_for", name), key) for name, key in provider.keys_for.items()]
    texts += [((*at, "headers", header), value) for header, value in provider.headers.items()]
    for index, place in enumerate(provider.endpoints):
        texts.append(((*at, f"endpoints[{index}]", "api_key"), place.api_key))
        texts += [((*at, f"endpoints[{index}]", "headers", header), value) for header, value in place.headers.items()]
    for path, text in texts:
        yield from check_header(path, text)
    for index, key in enumerate(provider.api_keys):
        if not key:
            yield Problem((*at, f"api_keys[{index}]"), "is empty", "set it, or remove the entry")


def check_header(path: KeyPath, text: str) -> Iterator[Problem]:
    if any(ord(character) < 32 or ord(character) == 127 for character in text) or text != text.strip():
        yield Problem(path, "has a line break, a control character or spaces at its ends", "trim it")
    elif not text.isascii():
        yield Problem(path, "has characters that a header cannot carry", "use ASCII; was it copied whole?")


def _check_keys(config: Config, known: Mapping[str, KnownProvider]) -> Iterator[Problem]:
    """A missing key is fatal only for the provider that requests go to by default."""
    models = config.models
    default = models.aliases.get(models.default, models.default)
    default = next(iter(models.choices[default].targets), "") if default in models.choices else default
    sides = split_reference(default)
    for name, provider in config.providers.items():
        if name in known and not provider.api_key_file and lacks_key(provider, known[name]):
            is_default = sides is not None and sides[0] == name
            variables = " or ".join(f"`{variable}`" for variable in known[name].key_variables)
            yield Problem(
                ("providers", name, "api_key"),
                "is missing" + (", and this is the default provider" if is_default else ""),
                f"set {variables} in the environment, or `api_key` here",
                "error" if is_default else "warning",
            )


def _check_store(store: Store) -> Iterator[Problem]:
    if store.envelope_key and len(store.envelope_key) < _SHORTEST_KEY:
        fix = "make one with `openssl rand -hex 32`"
        yield Problem(("store", "envelope_key"), f"has fewer than {_SHORTEST_KEY} characters", fix)
    scheme, colon, rest = store.url.partition(":")
    if not colon or scheme not in STORE_SCHEMES:
        near = nearest_name(scheme, STORE_SCHEMES) if colon else None
        fix = f"did you mean `{near}:`?" if near else "use `sqlite:PATH`, `memory:` or `postgresql://…`"
        yield Problem(("store", "url"), "names no store that there is", fix)
    elif scheme == "sqlite" and rest == ":memory:":
        yield Problem(("store", "url"), "asks SQLite for memory", "write `memory:`")
    elif scheme == "sqlite" and (not rest or (rest.startswith("//") and not rest.startswith("///"))):
        yield Problem(("store", "url"), "names no file", "write `sqlite:isthmus.db` or `sqlite:///whole/path.db`")
    elif scheme == "memory" and rest.strip("/"):
        yield Problem(("store", "url"), "has text after `memory:`", "write `memory:` alone")
    elif scheme in SERVER_SCHEMES and find_spec("psycopg") is None:
        words = "names PostgreSQL, which needs packages that are not installed"
        yield Problem(("store", "url"), words, "install `isthmus[postgres]`")
