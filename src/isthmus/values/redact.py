"""What may be shown of a value: everything but secrets.

In: the key a value stands under, and the value. Out: the same, with secrets replaced. A value is a secret by its
key's name (`api_key`, `Authorization`, `x-goog-api-key`), by its look (a bearer token, `sk-…`), by its
place in a URL (the password, a `?key=`), or by standing in a `query` or in `headers`, whose names tell little (`code`,
`sig`, `x-team`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from isthmus.scrub import HIDDEN as HIDDEN
from isthmus.scrub import is_shown

_SECRET_WORDS: Final = frozenset(
    {
        *("key", "keys", "apikey", "apikeys", "token", "accesstoken", "secret", "secrets", "signature", "sig", "jwt"),
        *("password", "sslpassword", "passwd", "passphrase", "pwd", "credential", "credentials", "cookie", "session"),
        *("authorization", "auth", "bearer"),
    }
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LOOKS_SECRET: Final = re.compile(
    r"(?i:bearer|basic|token)\s+\S.*"
    r"|(?:sk|ik|pk|rk|gsk|xai|ghp|glpat|hf|r8|key)[-_][A-Za-z0-9_-]{6,}"
    r"|eyJ[A-Za-z0-9_-]{10,}"
    r"|(?=[A-Za-z0-9+=_.-]*\d)(?=[A-Za-z0-9+=_.-]*[A-Za-z])[A-Za-z0-9+=_-]{32,}(?:\.[A-Za-z0-9+=_-]+)*"
)
KEY_TABLES: Final = ("keys_for", "upstream_keys")
"""Tables of secrets whose names tell nothing: callers, providers."""
_USER_INFO: Final = re.compile(r"(?<=://)(?P<user>[^/@\s:?#]*):(?P<password>[^/\s?#]*)@")
_LONE_USER: Final = re.compile(r"(?<=://)[^/@\s:?#]{16,}@")
_QUERY: Final = re.compile(r"(?P<name>[?&][^=&#\s]+)=(?P<value>[^&#\s]*)")


def redact(key: str, value: Any) -> Any:
    """`value` as it may be shown under `key`; tables and lists are shown inside out, other objects as they are."""
    if isinstance(value, Mapping):
        if key in ("query", "headers"):
            return {name: redact_unnamed(str(name), inner) for name, inner in value.items()}
        if key in KEY_TABLES:
            return {name: HIDDEN if inner else inner for name, inner in value.items()}
        return {name: redact(str(name), inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(key, inner) for inner in value]
    if isinstance(value, str) and value:
        return HIDDEN if is_secret_key(key) or _LOOKS_SECRET.fullmatch(value) else redact_url(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and is_secret_key(key):
        return HIDDEN
    return value


def redact_unnamed(name: str, value: Any) -> Any:
    """A query parameter or a header: only what is known to be harmless (`api-version`) is shown."""
    return redact(name, value) if is_shown(name) or not value else HIDDEN


def is_secret_key(key: str) -> bool:
    """Whether what stands under this name is a secret, judged by the words in it (`keep_days` has no `key`); where a
    secret lies (`api_key_file`) is none."""
    if key.endswith("_file"):
        return False
    words = [word.lower() for word in _WORD.findall(key)]
    return any(word in _SECRET_WORDS for word in words) or "apikey" in "".join(words)


def redact_url(text: str) -> str:
    """A URL without its password, without a token in the user's place, without secret query values."""
    if "://" not in text:
        return text
    text = _USER_INFO.sub(lambda match: f"{match['user']}:{HIDDEN}@", text)
    text = _LONE_USER.sub(f"{HIDDEN}@", text)
    return _QUERY.sub(
        lambda match: f"{match['name']}={HIDDEN}" if is_secret_key(match["name"]) and match["value"] else match[0], text
    )
