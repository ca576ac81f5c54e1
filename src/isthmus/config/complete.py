"""What the configuration leaves open is filled in: providers, keys, the default model, absolute paths.

In: a converted `Config`, the environment, the provider files. Out: a whole `Config`, and where each filled-in value
came from.

- Providers: those of the file and flags, in their order. If they name none: every known provider whose key is in the
  environment, in the order of `known.ORDER`. Then any that `models` refers to, and the demo.
- Keys: the variable that the provider file names, but never for an address on another host than the file's own:
  a key goes to no server that its owner did not choose for it.
- Default model: that of the first provider that can be used; none if the provider file names none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from isthmus.bridge.resolve import split_reference
from isthmus.config.find import data_folder, own_provider_folders
from isthmus.config.known import DEMO, KnownProvider, find_known, is_local, known_key_variables, known_names
from isthmus.config.origins import Origin
from isthmus.config.schema import Config, ProviderConfig
from isthmus.errors import ConfigError
from isthmus.values.problems import KeyPath, Problem

SQLITE: Final = "sqlite:"
DATABASE: Final = "isthmus.db"


@dataclass(slots=True)
class Completion:
    """The state of filling in: what is known, and what has been noted on the way."""

    environ: Mapping[str, str]
    cwd: Path
    config_file: Path | None
    origins: dict[KeyPath, Origin]
    written: dict[KeyPath, Any]
    folders: tuple[Path, ...] = ()
    known: dict[str, KnownProvider] = field(default_factory=dict)
    """By the provider's name in the configuration; those whose file was not found are missing."""
    problems: list[Problem] = field(default_factory=list)

    def base(self, path: KeyPath) -> Path:
        """The folder where relative paths of this key start."""
        origin = self.origins.get(path)
        from_file = origin is not None and origin.kind == "file" and self.config_file is not None
        return self.config_file.parent if from_file and self.config_file else self.cwd


def complete(config: Config, state: Completion) -> Config:
    """Fill in everything that was left open; what cannot be is noted as a problem."""
    state.folders = tuple(_provider_folders(config, state))
    providers = {name: _name_file(name, given, state) for name, given in _list_providers(config, state).items()}
    providers = {name: _fill_key(name, provider, state) for name, provider in providers.items()}
    default = config.models.default.strip() or _choose_default(providers, state)
    return msgspec.structs.replace(
        config,
        provider_folders=[str(folder) for folder in state.folders],
        providers=providers,
        models=msgspec.structs.replace(config.models, default=default),
        store=msgspec.structs.replace(config.store, url=_store_url(config.store.url, state)),
    )


def can_be_used(name: str, provider: ProviderConfig, state: Completion) -> bool:
    """Whether its file is known and the key that it needs is there."""
    return name in state.known and not lacks_key(name, provider, state)


def lacks_key(name: str, provider: ProviderConfig, state: Completion) -> bool:
    known = state.known.get(name)
    if known is None or not known.needs_key or not _is_own_address(provider, known):
        return False
    return not (provider.api_key or any(provider.api_keys) or any(place.api_key for place in provider.endpoints))


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
    explicit = any(
        origin.kind in ("file", "flag") for path, origin in state.origins.items() if path[0] == "providers" and path[1:]
    )
    if not explicit:
        discovered = _discover(state)
        found = {name: found.get(name, ProviderConfig()) for name in (*discovered, *found)}
    names = known_names(state.folders)
    for reference in (config.models.default, *config.models.aliases.values(), *_flat(config.models.fallbacks)):
        sides = split_reference(reference)
        if sides and sides[0] in names:
            found.setdefault(sides[0], ProviderConfig())
    if config.models.demo:
        found.setdefault(DEMO, ProviderConfig())
    return found


def _flat(fallbacks: Mapping[str, list[str]]) -> Iterator[str]:
    for entries in fallbacks.values():
        yield from entries


def _discover(state: Completion) -> list[str]:
    variables = _attempt(lambda: known_key_variables(state.folders), state, ()) or {}
    names = [name for variable, name in variables.items() if state.environ.get(variable, "").strip()]
    if state.environ.get("OPENAI_BASE_URL", "").strip():
        # The OpenAI SDKs read both variables, so this key belongs to that server: most likely to this very gateway.
        names = [name for name in names if name != "openai"]
    return list(dict.fromkeys(names))


def _name_file(name: str, provider: ProviderConfig, state: Completion) -> ProviderConfig:
    uses = provider.uses.strip() or name
    key = ("providers", name, "uses") if provider.uses.strip() else ("providers", name)
    known = _attempt(lambda: find_known(uses, state.folders, provider.endpoint), state, key)
    if known is not None:
        state.known[name] = known
    return msgspec.structs.replace(provider, uses=uses)


def _fill_key(name: str, provider: ProviderConfig, state: Completion) -> ProviderConfig:
    known = state.known.get(name)
    if known is None or provider.api_key or provider.api_keys or not _is_own_address(provider, known):
        return provider
    for variable in known.key_variables:
        if key := state.environ.get(variable, "").strip():
            path = ("providers", name, "api_key")
            state.origins[path] = Origin("environment", f"${variable}")
            state.written[path] = f"${{{variable}}}"
            return msgspec.structs.replace(provider, api_key=key)
    if known.needs_key and not (provider.endpoint or provider.base_url or provider.endpoints):
        for variable, endpoint in known.alternative_keys:
            if state.environ.get(variable, "").strip():
                state.origins[("providers", name, "endpoint")] = Origin("environment", f"${variable}")
                moved = msgspec.structs.replace(provider, endpoint=endpoint)
                return _fill_key(name, _name_file(name, moved, state), state)
    return provider


def _is_own_address(provider: ProviderConfig, known: KnownProvider) -> bool:
    """Whether all requests go to the host that the provider file names (or leaves to the user)."""
    if is_local(known.base_url):
        return True
    own = urlsplit(known.base_url).hostname
    places = [place.base_url for place in provider.endpoints] or [provider.base_url]
    return all(not place or urlsplit(place).hostname == own for place in places)


def _choose_default(providers: Mapping[str, ProviderConfig], state: Completion) -> str:
    for name, provider in providers.items():
        if can_be_used(name, provider, state):
            model = state.known[name].default_model
            state.origins[("models", "default")] = Origin("default", f"the first provider, `{name}`")
            return f"{name}/{model}" if model else ""
    return ""


def _store_url(url: str, state: Completion) -> str:
    """SQLite paths made absolute; any other URL as it is."""
    if not url:
        return f"{SQLITE}{data_folder(state.environ) / DATABASE}"
    path = url.removeprefix(SQLITE)
    if path == url or not path or path.startswith(("//", ":memory:")):
        return url
    return f"{SQLITE}{state.base(('store', 'url')) / Path(path).expanduser()}"


def _attempt(read: Callable[[], Any], state: Completion, key: KeyPath) -> Any:
    try:
        return read()
    except ConfigError as error:
        fix = "correct the provider file"
        if error.code == "unknown_provider":
            fix = 'set `uses` to one of them; for any other server `uses = "openai-compatible"` and its `base_url`'
        state.problems.append(Problem(key, f"cannot be used: {error.message}", fix))
        return None
