"""What the configuration leaves open is filled in: providers, keys, the default model, absolute paths.

In: a converted `Config`, the environment, the provider files. Out: a whole `Config`, and where each filled-in value
came from.

- Providers: those of the file and flags, in their order. If they name none: every known provider whose key is in the
  environment, in the order of `known.ORDER`, and every server that was found on this machine. Then any that `models`
  refers to, and the demo.
- Keys: see `keys`.
- Default model: that of the first provider that can be used; none if the provider file names none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from isthmus.addresses import may_get_key
from isthmus.bridge.resolve import split_reference
from isthmus.config.find import data_folder, own_provider_folders
from isthmus.config.keys import Sources, fill_keys, lacks_key
from isthmus.config.known import DEMO, KnownProvider, all_names, find_known, known_key_variables
from isthmus.config.origins import Origin
from isthmus.config.schema import Config, Hooks, Images, Metrics, ProviderConfig, Search, Server, Store, Webhooks
from isthmus.config.variables import fill_variables
from isthmus.errors import ConfigError
from isthmus.values.problems import KeyPath, Problem

SQLITE: Final = "sqlite:"
DATABASE: Final = "isthmus.db"


@dataclass(slots=True)
class Completion(Sources):
    """The state of filling in: where values come from, and what the provider files say."""

    folders: tuple[Path, ...] = ()
    noticed: Mapping[str, str] = field(default_factory=dict)
    """Servers that were found on this machine, each with a model that it has."""
    explicit: bool = False
    """Whether somebody named providers, in the file or by flags: then these are meant, and no others."""
    known: dict[str, KnownProvider] = field(default_factory=dict)
    """By the provider's name in the configuration; those whose file was not found are missing."""


def complete(config: Config, state: Completion) -> Config:
    """Fill in everything that was left open; what cannot be is noted as a problem."""
    state.folders = tuple(_provider_folders(config, state))
    providers = {name: _name_file(name, given, state) for name, given in _list_providers(config, state).items()}
    providers = {name: _fill_key(name, provider, state) for name, provider in providers.items()}
    default = config.models.default.strip() or _choose_default(providers, state)
    return msgspec.structs.replace(
        config,
        provider_folders=[str(folder) for folder in state.folders],
        server=_fill_server(config.server, state),
        providers=providers,
        models=msgspec.structs.replace(config.models, default=default),
        store=_fill_store(config.store, state),
        webhooks=_fill_webhooks(config.webhooks, state),
        metrics=_fill_metrics(config.metrics, state),
        search=_fill_search(config.search, state),
        images=_fill_images(config.images, providers, state),
        hooks=_fill_hooks(config.hooks, state),
    )


def can_be_used(name: str, provider: ProviderConfig, state: Completion) -> bool:
    """Whether its file is known and the key that it needs is there."""
    return name in state.known and not lacks_key(provider, state.known[name])


def _provider_folders(config: Config, state: Completion) -> Iterator[Path]:
    yield from own_provider_folders(state.environ)
    for folder in config.provider_folders:
        path = state.base(("provider_folders",)) / Path(folder).expanduser()
        if path.is_dir():
            yield path.resolve()
        else:
            state.problems.append(
                Problem(
                    ("provider_folders",), f"names `{folder}`, which is not a folder", "make it, or correct the path"
                )
            )


def _list_providers(config: Config, state: Completion) -> dict[str, ProviderConfig]:
    found = dict(config.providers)
    state.explicit = any(
        origin.kind in ("file", "flag") for path, origin in state.origins.items() if path[0] == "providers" and path[1:]
    )
    if not state.explicit:
        discovered = _discover(state)
        found = {name: found.get(name, ProviderConfig()) for name in (*discovered, *state.noticed, *found)}
        for name in state.noticed:
            state.origins.setdefault(("providers", name), Origin("default", "a server that was found on this machine"))
    names = all_names(state.folders)
    models = config.models
    chosen = [target for choice in models.choices.values() for target in choice.targets]
    for reference in (models.default, *models.aliases.values(), *_flat(models.fallbacks), *chosen):
        sides = split_reference(reference)
        if sides and sides[0] in names:
            found.setdefault(sides[0], ProviderConfig())
    if config.images.provider in names:
        found.setdefault(config.images.provider, ProviderConfig())
    if config.models.demo:
        found.setdefault(DEMO, ProviderConfig())
    return found


def _flat(fallbacks: Mapping[str, list[str]]) -> Iterator[str]:
    for entries in fallbacks.values():
        yield from entries


def _discover(state: Completion) -> list[str]:
    variables = _attempt(lambda: known_key_variables(state.folders, state.environ), state, ()) or {}
    names = [name for variable, name in variables.items() if state.environ.get(variable, "").strip()]
    if state.environ.get("OPENAI_BASE_URL", "").strip():
        # The OpenAI SDKs read both variables, so this key belongs to that server: most likely to this very gateway.
        names = [name for name in names if name != "openai"]
    # A key whose address cannot be made out is there for somebody else.
    return [name for name in dict.fromkeys(names) if _has_address(name, state)]


def _has_address(name: str, state: Completion) -> bool:
    needed = find_known(name, state.folders).variables
    return all(state.environ.get(variable, "").strip() for variable in needed)


def _name_file(name: str, provider: ProviderConfig, state: Completion) -> ProviderConfig:
    uses = provider.uses.strip() or name
    key = ("providers", name, "uses") if provider.uses.strip() else ("providers", name)
    known = _attempt(lambda: find_known(uses, state.folders, provider.endpoint), state, key)
    if known is not None:
        provider, state.known[name] = fill_variables(("providers", name), provider, known, state)
    return msgspec.structs.replace(provider, uses=uses)


def _fill_key(name: str, provider: ProviderConfig, state: Completion) -> ProviderConfig:
    known = state.known.get(name)
    if known is None:
        return provider
    filled = fill_keys(("providers", name), provider, known, state)
    said = provider.endpoint or provider.base_url or provider.endpoints or provider.api_key_file
    if lacks_key(filled, known) and not said:
        for variable, endpoint in known.alternative_keys:
            if state.environ.get(variable, "").strip():
                state.origins[("providers", name, "endpoint")] = Origin("environment", f"${variable}")
                moved = msgspec.structs.replace(provider, endpoint=endpoint)
                return _fill_key(name, _name_file(name, moved, state), state)
    return filled


def _fill_server(server: Server, state: Completion) -> Server:
    """The keys that clients show, from files of their own."""
    found: dict[str, Any] = {}
    for key, read in (("api_keys", _read_lines), ("admin_key", str)):
        if file := getattr(server, f"{key}_file"):
            path = ("server", f"{key}_file")
            if getattr(server, key):
                state.problems.append(Problem(path, f"excludes `{key}`", "keep one of them"))
            found[key] = read(state.read_secret(path, file))
    return msgspec.structs.replace(server, **found)


def _fill_webhooks(webhooks: Webhooks, state: Completion) -> Webhooks:
    """The secrets of receivers, from files of their own."""
    endpoints = dict(webhooks.endpoints)
    for name, endpoint in webhooks.endpoints.items():
        if endpoint.secret_file:
            path = ("webhooks", "endpoints", name, "secret_file")
            if endpoint.secret:
                state.problems.append(Problem(path, "excludes `secret`", "keep one of them"))
            read = state.read_secret(path, endpoint.secret_file)
            endpoints[name] = msgspec.structs.replace(endpoint, secret=read)
    return msgspec.structs.replace(webhooks, endpoints=endpoints)


def _fill_metrics(metrics: Metrics, state: Completion) -> Metrics:
    """The key of whoever watches, from a file of its own."""
    if not metrics.key_file:
        return metrics
    path = ("metrics", "key_file")
    if metrics.key:
        state.problems.append(Problem(path, "excludes `key`", "keep one of them"))
    return msgspec.structs.replace(metrics, key=state.read_secret(path, metrics.key_file))


def _fill_search(search: Search, state: Completion) -> Search:
    """The key of the search engine: from its file, or from the environment where it goes to the engine's own place."""
    if search.api_key_file:
        path = ("search", "api_key_file")
        if search.api_key:
            state.problems.append(Problem(path, "excludes `api_key`", "keep one of them"))
        return msgspec.structs.replace(search, api_key=state.read_secret(path, search.api_key_file))
    if search.api_key or search.backend in ("", DEMO):
        return search
    from isthmus.providers.search import load_search  # loaded only where somebody searches

    facts = load_search(search.backend)
    found = [name for name in facts.key_env if state.environ.get(name, "").strip()]
    if not found or not may_get_key(facts.base_url, search.url):
        return search
    state.origins[("search", "api_key")] = Origin("environment", f"${found[0]}")
    return msgspec.structs.replace(search, api_key=state.environ[found[0]].strip())


def _fill_images(images: Images, providers: Mapping[str, ProviderConfig], state: Completion) -> Images:
    """The key from a file of its own; and where the demo is all there is, it draws, too."""
    found: dict[str, Any] = {}
    if images.api_key_file:
        path = ("images", "api_key_file")
        if images.api_key:
            state.problems.append(Problem(path, "excludes `api_key`", "keep one of them"))
        found["api_key"] = state.read_secret(path, images.api_key_file)
    if not images.provider and not images.url and list(providers) == [DEMO]:
        found["provider"] = DEMO
        state.origins[("images", "provider")] = Origin("default", "the only provider")
    return msgspec.structs.replace(images, **found)


def _read_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _choose_default(providers: Mapping[str, ProviderConfig], state: Completion) -> str:
    for name, provider in providers.items():
        if can_be_used(name, provider, state):
            model = state.noticed.get(name) or state.known[name].default_model
            state.origins[("models", "default")] = Origin("default", f"the first provider, `{name}`")
            return f"{name}/{model}" if model else ""
    return ""


def _fill_store(store: Store, state: Completion) -> Store:
    """Where it is, and the key of the envelopes from a file of its own."""
    found = {"url": _store_url(store.url, state)}
    if store.envelope_key_file:
        path = ("store", "envelope_key_file")
        if store.envelope_key:
            state.problems.append(Problem(path, "excludes `envelope_key`", "keep one of them"))
        found["envelope_key"] = state.read_secret(path, store.envelope_key_file)
    return msgspec.structs.replace(store, **found)


def _store_url(url: str, state: Completion) -> str:
    """SQLite paths made absolute; any other URL as it is."""
    if not url:
        return f"{SQLITE}{data_folder(state.environ) / DATABASE}"
    path = url.removeprefix(SQLITE)
    if path == url or not path or path.startswith(("//", ":memory:")):
        return url
    return f"{SQLITE}{state.base(('store', 'url')) / Path(path).expanduser()}"


def _fill_hooks(hooks: Hooks, state: Completion) -> Hooks:
    """Their folder made absolute: that of whoever names them, where none is said."""
    if not hooks.uses:
        return hooks
    key = ("hooks", "folder" if hooks.folder else "uses")
    return msgspec.structs.replace(hooks, folder=str((state.base(key) / Path(hooks.folder).expanduser()).absolute()))


def _attempt(read: Callable[[], Any], state: Completion, key: KeyPath) -> Any:
    try:
        return read()
    except ConfigError as error:
        fix = "correct the provider file"
        if error.code == "unknown_provider":
            fix = 'set `uses` to one of them; for any other server `uses = "openai-compatible"` and its `base_url`'
        state.problems.append(Problem(key, f"cannot be used: {error.message}", fix))
        return None
