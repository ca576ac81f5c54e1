"""What `isthmus init` writes: answers → a commented `isthmus.toml`, checked before it is written, readable by its
owner only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from isthmus.config.interpolate import REFERENCE
from isthmus.config.load import read_config
from isthmus.errors import ConfigError
from isthmus.values.problems import Problem
from isthmus.values.redact import HIDDEN
from isthmus.values.toml_text import toml_key, toml_value

_HEAD: Final = """\
# Isthmus. `isthmus config check` looks for mistakes in this file,
# `isthmus config print` shows every key with its value.
# ${NAME} stands for a variable of the environment.
"""


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    name: str
    uses: str = ""
    base_url: str = ""
    endpoint: str = ""
    api_key: str = ""
    """A reference such as `${DEEPSEEK_API_KEY}`, or the key itself; empty: none is written."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the address is written with: a name, or a reference to the variable itself."""

    @property
    def holds_secret(self) -> bool:
        return bool(self.api_key) and not REFERENCE.fullmatch(self.api_key)


@dataclass(frozen=True, slots=True)
class Answers:
    providers: tuple[ProviderAnswer, ...] = ()
    default: str = ""
    catch_all: bool = True
    """Whether every other model name that clients send means the default too."""
    host: str = "127.0.0.1"
    port: int = 8484
    store: str = ""
    """The store's URL; empty: the default place."""

    def masked(self) -> Answers:
        """The same without keys, to be shown."""
        hidden = (
            replace(provider, api_key=HIDDEN) if provider.holds_secret else provider for provider in self.providers
        )
        return replace(self, providers=tuple(hidden))


def write_text(answers: Answers) -> str:
    """The file's text."""
    lines = [_HEAD, "[server]", f"host = {toml_value(answers.host)}", f"port = {answers.port}", ""]
    if answers.default:
        lines += ["[models]", f"default = {toml_value(answers.default)}", ""]
        if answers.catch_all:
            lines += ["[models.aliases]", "# Any other model name that a client sends:"]
            lines += [f'"*" = {toml_value(answers.default)}', ""]
    for provider in answers.providers:
        lines += [f"[providers.{toml_key(provider.name)}]"]
        for key in ("uses", "base_url", "endpoint", "api_key", "variables"):
            if value := getattr(provider, key):
                lines += [f"{key} = {toml_value(value)}"]
        lines += [""]
    if answers.store:
        lines += ["[store]", f"url = {toml_value(answers.store)}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def check_text(text: str, environ: Mapping[str, str]) -> tuple[Problem, ...]:
    """The errors that the file would have once the variables it refers to are set."""
    stand_ins = dict.fromkeys(referenced_variables(text), "stand-in")
    clean = {name: value for name, value in environ.items() if not name.startswith("ISTHMUS_")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "isthmus.toml"
        _write(path, text)
        return tuple(replace(problem, place="") for problem in read_config(path, environ={**clean, **stand_ins}).errors)


def referenced_variables(text: str) -> list[str]:
    """The variables that the file's values refer to, each once."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return list(dict.fromkeys(match["name"] for match in REFERENCE.finditer(body) if match["name"]))


def save_private(path: Path, text: str) -> None:
    """Write whole or not at all, for the owner's eyes only; a link keeps pointing where it did."""
    path = path.resolve()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be written: {error.strerror}; name another file with `--path`") from error
    os.close(descriptor)
    part = Path(name)
    try:
        _write(part, text)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
