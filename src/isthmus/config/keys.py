"""Which key a provider is sent: the one of the configuration, of a file, of the environment, or none. And why.

In: a provider's settings and what its file says. Out: the settings with their keys, each of which knows where it comes
from, so that a refused one can be named without being shown. A key of the environment goes only where `addresses`
allows it to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from isthmus.addresses import fill_gaps, host_of, is_local, may_get_key
from isthmus.config.interpolate import REFERENCE
from isthmus.config.known import KnownProvider
from isthmus.config.origins import Origin, nearest_origin
from isthmus.config.schema import EndpointConfig, ProviderConfig
from isthmus.providers.schema import EndpointFacts
from isthmus.values.problems import KeyPath, Problem, dotted
from isthmus.values.redact import is_secret_key

WANTING: Final = "no key, for want of one: "
"""What is told of an empty key begins with; the places where one could stand follow."""
_LARGEST: Final = 64 * 1024
"""No key is longer; a file that is was named by mistake."""


class Key(str):
    """A key that knows where it comes from; an empty one, why there is none. Anywhere else it is a plain text."""

    __slots__ = ("told", "withheld")

    told: str
    withheld: str
    """The variable that has one, which is for another host than the one that is asked; empty: there is none such."""

    def __new__(cls, value: str, told: str, withheld: str = "") -> Key:
        key = super().__new__(cls, value)
        key.told = told
        key.withheld = withheld
        return key


def tell_key(provider: str, key: str) -> str:
    """What a provider is sent, in words that may be read by anybody."""
    if isinstance(key, Key):
        return key.told
    return f"the key in `providers.{provider}.api_key`" if key else "no key"


@dataclass(slots=True)
class Sources:
    """Where values come from: all that is needed to find a key and to tell where it was found."""

    environ: Mapping[str, str]
    cwd: Path
    config_file: Path | None = None
    origins: dict[KeyPath, Origin] = field(default_factory=dict)
    written: dict[KeyPath, Any] = field(default_factory=dict)
    """Values that came from variables, as references to them."""
    problems: list[Problem] = field(default_factory=list)

    def base(self, path: KeyPath) -> Path:
        """The folder where relative paths of this key start."""
        origin = nearest_origin(self.origins, path)
        if origin is not None and origin.kind == "file" and self.config_file is not None:
            return self.config_file.parent
        return self.cwd

    def read_secret(self, path: KeyPath, name: str) -> str:
        """What stands in a file, without its last line end; empty, and a problem, where nothing can be used."""
        file = self.base(path) / Path(name).expanduser()
        fix = "correct the path, or write the key into that file"
        try:
            with file.open("rb") as opened:
                text = opened.read(_LARGEST + 1).decode("utf-8-sig")
        except OSError as error:
            told = f"names `{file}`, which cannot be read: {error.strerror or error}"
        except ValueError:  # not UTF-8, or a path that is none
            told = f"names `{file}`, which is not text"
        else:
            text = text.rstrip("\r\n")
            if text.strip() and len(text) <= _LARGEST:
                return text
            told = f"names `{file}`, which is {'too large for a key' if text.strip() else 'empty'}"
        self.problems.append(Problem(path, told, fix))
        return ""


def fill_keys(at: KeyPath, provider: ProviderConfig, known: KnownProvider, sources: Sources) -> ProviderConfig:
    """The provider with its keys and their origins; `at` is where it is configured."""
    filled = msgspec.structs.replace(
        provider,
        api_key=_own_key(at, provider.api_key, provider.api_key_file, sources),
        api_keys=[
            _with_origin((*at, f"api_keys[{index}]"), key, sources) if key else key
            for index, key in enumerate(provider.api_keys)
        ],
        keys_for={
            name: _with_origin((*at, "keys_for", name), key, sources) if key else key
            for name, key in provider.keys_for.items()
        },
        endpoints=[
            _fill_place((*at, f"endpoints[{index}]"), place, sources) for index, place in enumerate(provider.endpoints)
        ],
    )
    if filled.api_key or filled.api_keys or filled.api_key_file:
        return filled
    return msgspec.structs.replace(filled, api_key=_environment_key(at, filled, known, sources))


def lacks_key(provider: ProviderConfig, known: KnownProvider) -> bool:
    """Whether the provider needs a key that nobody gave; who changes the address knows best whether it does."""
    if not known.needs_key or not is_own_address(provider, known) or shows_header(provider):
        return False
    return not (provider.api_key or any(provider.api_keys) or any(place.api_key for place in provider.endpoints))


def shows_header(provider: ProviderConfig) -> bool:
    """Whether the user's own headers or query say who we are, in a key's place."""
    return any(is_secret_key(name) for name in (*provider.headers, *provider.query))


def first_address(facts: EndpointFacts, settings: ProviderConfig) -> str:
    """The base URL that a provider's requests go to, the first of several; empty where it is known at run time."""
    given = settings.endpoints[0].base_url if settings.endpoints else settings.base_url
    own = (facts.alternative(settings.endpoint) if settings.endpoint else facts).base_url
    return given or fill_gaps(own, settings.variables)


def _fill_place(at: KeyPath, place: EndpointConfig, sources: Sources) -> EndpointConfig:
    return msgspec.structs.replace(place, api_key=_own_key(at, place.api_key, place.api_key_file, sources))


def _own_key(at: KeyPath, key: str, file: str, sources: Sources) -> str:
    """What the configuration itself says."""
    if key and file and not isinstance(key, Key):  # else it was read from there before
        sources.problems.append(Problem((*at, "api_key_file"), "excludes `api_key`", "keep one of them"))
    if key:
        return _with_origin((*at, "api_key"), key, sources)
    if not file:
        return ""
    path = (*at, "api_key_file")
    return Key(sources.read_secret(path, file), f"the key in the file of `{dotted(path)}`")


def _with_origin(path: KeyPath, key: str, sources: Sources) -> Key:
    if isinstance(key, Key):
        return key
    written = sources.written.get(path)
    names = [found["name"] for found in REFERENCE.finditer(written) if found["name"]] if written else []
    if names:
        return Key(key, f"the key in `${names[0]}` (by `{dotted(path)}`)")
    return Key(key, f"the key in `{dotted(path)}`")


def _environment_key(at: KeyPath, provider: ProviderConfig, known: KnownProvider, sources: Sources) -> Key:
    path = (*at, "api_key")
    found = next((name for name in known.key_variables if sources.environ.get(name, "").strip()), None)
    if found is None:
        places = " or ".join([*(f"`${name}`" for name in known.key_variables), f"`{dotted(path)}`"])
        return Key("", f"{WANTING}set {places}")
    if is_own_address(provider, known):
        sources.origins[path] = Origin("environment", f"${found}")
        sources.written[path] = f"${{{found}}}"
        return Key(sources.environ[found].strip(), f"the key in `${found}`")
    own = host_of(known.base_url)
    remedy = f'`{dotted(path)} = "${{{found}}}"`'
    if not shows_header(provider) and not all(is_local(place) for place in _addresses(provider)):
        changed = "endpoints" if provider.endpoints else "base_url"
        sources.problems.append(
            Problem(
                (*at, changed),
                f"leads to another host than `{own}`, so the key in `${found}` is not sent there",
                f"write {remedy} if it is for that host, too",
                "warning",
            )
        )
    told = f"no key: the one in `${found}` is for `{own}` only; write {remedy} if it is for this host, too"
    return Key("", told, withheld=found)


def is_own_address(provider: ProviderConfig, known: KnownProvider) -> bool:
    """Whether all requests go where the key of the environment may go."""
    return all(may_get_key(known.base_url, place) for place in _addresses(provider))


def _addresses(provider: ProviderConfig) -> list[str]:
    """Where the provider's key would go: places with keys of their own get those."""
    if provider.endpoints:
        return [place.base_url for place in provider.endpoints if not place.api_key]
    return [provider.base_url]
