"""Our lines in a Codex `config.toml`, put in and taken out as text: the user's own lines keep every byte.

In: the file's text and what Codex is to be told. Out: the new text. Worth knowing: taking out is the exact inverse of
putting in, and every edit is checked by parsing: all that was in the file before must still be there, unless it is
one of the keys that we set. A root key that the user had set is kept as a comment and comes back with `undo_setup`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any, Final

from isthmus.errors import ConfigError

PROVIDER: Final = "isthmus"
_BEGIN: Final = "# >>> isthmus codex setup: `isthmus codex setup --undo` takes these lines out again"
_END: Final = "# <<< isthmus codex setup"
_KEPT: Final = "# isthmus keeps: "
_JOINED: Final = " (joined)"
_BLOCK: Final = re.compile(
    re.escape(_BEGIN) + r"(?P<joined>" + re.escape(_JOINED) + r")?\r?\n.*?" + re.escape(_END) + r"\r?\n", re.DOTALL
)
_TABLE: Final = re.compile(r"[ \t]*\[")


@dataclass(frozen=True, slots=True)
class Settings:
    """What Codex is told about the gateway."""

    base_url: str
    model: str
    catalogue: str
    """Path of the catalogue file."""
    key_env: str | None = None
    """The variable with a key for the gateway, where it wants one."""

    @property
    def root(self) -> dict[str, str]:
        return {"model": self.model, "model_provider": PROVIDER, "model_catalog_json": self.catalogue}

    @property
    def provider(self) -> dict[str, str]:
        block = {"name": "Isthmus", "base_url": self.base_url, "wire_api": "responses"}
        return {**block, "env_key": self.key_env} if self.key_env else block


def apply_setup(text: str, settings: Settings) -> str:
    """The text with our lines in it; lines of an earlier setup are replaced."""
    before = undo_setup(text)
    newline = "\r\n" if "\r\n" in before else "\n"
    joined = bool(before) and not before.endswith("\n")
    body = before + newline if joined else before
    root = _block([_line(key, value) for key, value in settings.root.items()], newline)
    lines = [f"[model_providers.{PROVIDER}]", *(_line(key, value) for key, value in settings.provider.items())]
    new = root + _set_aside(body, settings.root) + _block(lines, newline, joined=joined)
    _check(before, new, settings)
    return new


def undo_setup(text: str) -> str:
    """The text without our lines, as it was before them."""
    if not has_setup(text):
        return text
    joined = any(block["joined"] for block in _BLOCK.finditer(text))
    bare = _BLOCK.sub("", text)
    restored = "".join(line.removeprefix(_KEPT) for line in bare.splitlines(keepends=True))
    if not joined:
        return restored
    return restored.removesuffix("\n").removesuffix("\r")


def has_setup(text: str) -> bool:
    return _BLOCK.search(text) is not None


def overrides(settings: Settings) -> list[str]:
    """The same settings as `-c key=value` arguments, for one run without any file."""
    pairs = {
        **settings.root,
        **{f"model_providers.{PROVIDER}.{key}": value for key, value in settings.provider.items()},
    }
    return [part for key, value in pairs.items() for part in ("-c", f"{key}={_quote(value)}")]


def _block(lines: list[str], newline: str, *, joined: bool = False) -> str:
    return newline.join([_BEGIN + (_JOINED if joined else ""), *lines, _END, ""])


def _set_aside(text: str, keys: dict[str, str]) -> str:
    """Root keys that we set become comments; they stand before the first table."""
    lines = text.splitlines(keepends=True)
    ours = re.compile(r"[ \t]*[\"']?(?:" + "|".join(keys) + r")[\"']?[ \t]*=")
    for index, line in enumerate(lines):
        if _TABLE.match(line):
            break
        if ours.match(line):
            lines[index] = _KEPT + line
    return "".join(lines)


def _check(before: str, after: str, settings: Settings) -> None:
    """Nothing but our own keys may differ."""
    old = _parse(before, "it is not valid TOML; correct it first")
    new = _parse(after, "our lines do not fit into it")
    expected: dict[str, Any] = {**old, **settings.root}
    providers = old.get("model_providers", {})
    expected["model_providers"] = {**providers, PROVIDER: settings.provider}
    if new != expected:
        raise ConfigError(
            "the Codex configuration is written in a way that cannot be added to safely; "
            "use `--profile isthmus`, which writes a file of its own"
        )


def _parse(text: str, problem: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the Codex configuration cannot be changed: {problem} ({error})") from error


def _line(key: str, value: str) -> str:
    return f"{key} = {_quote(value)}"


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
