"""Whom to probe: an address, or a provider by its name, which brings address, key and the facts to compare with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from isthmus.cli.provider_folders import provider_folders
from isthmus.config import read_config
from isthmus.errors import ConfigError
from isthmus.providers import Provider, load_provider
from isthmus.values.redact import redact_url


@dataclass(frozen=True, slots=True)
class Target:
    address: str
    key: str = ""
    provider: Provider | None = None


def find_target(asked: str, base_url: str, key: str, folders: Sequence[Path] | None) -> Target:
    """A provider's address is the one given beside its name, the configured one, or the one in its file."""
    if "://" in asked or ":" in asked or asked.lower() == "localhost":
        if base_url:
            raise ConfigError("`--base-url` goes with the name of a provider; an address was given already")
        return Target(check_address(asked), key)
    configured = read_config().config.providers.get(asked)
    uses, models = (configured.uses or asked, configured.models) if configured is not None else (asked, None)
    provider = load_provider(uses, provider_folders(folders), models=models)
    address = base_url or (configured.base_url if configured is not None else "") or provider.endpoint.base_url
    if not address:
        raise ConfigError(f"nothing says where `{asked}` is; give its address with `--base-url`")
    # A key goes where it belongs: to the address that it was configured for, and to no other.
    own = "" if base_url else (configured.api_key if configured is not None else "") or _read_key(provider)
    return Target(check_address(address), key or own, provider)


def read_variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"the variable `{name}` is not set")
    return value


def _read_key(provider: Provider) -> str:
    return next((value for name in provider.endpoint.key_env if (value := os.environ.get(name, "").strip())), "")


def check_address(given: str) -> str:
    """The address without what does not belong into a file that is passed around."""
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"`{redact_url(given)}` is not an address; write it like `http://localhost:8000/v1`")
    if parts.username or parts.password:
        raise ConfigError("the address holds a password; leave it out and give a key with `--key-env`")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
