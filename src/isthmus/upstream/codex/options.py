"""How to start a Codex app-server: where the binary is, what it may see, how long we wait.

The child's environment is an allow-list: keys that the gateway holds for other providers never reach it.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isthmus.bridge.dialects.codex.wire import PROCESS_CONFIG, ApprovalPolicy, Sandbox
from isthmus.errors import ConfigError
from isthmus.protocol.json import deep_merge
from isthmus.scrub import Secret, url_secrets
from isthmus.values.toml_text import toml_value

ENVIRONMENT: Final = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CODEX_CA_CERTIFICATE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SYSTEMROOT",
)


@dataclass(frozen=True, slots=True)
class CodexOptions:
    """What the operator decides about one Codex provider, and what its parts may take."""

    binary: str | Path = ""
    """The program; empty: the `codex` extra's, else `codex` on the path. Looked for at each start."""
    home: Path | None = None
    """Its own `CODEX_HOME`; `None`: the user's, with the user's login."""
    cwd: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """`config.toml` keys for the whole process, on top of the quiet ones."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables the operator hands over by name (a custom provider's `env_key`)."""
    own_tools: bool = False
    """Whether Codex may use tools of its own; otherwise it is only a model."""
    sandbox: Sandbox = "read-only"
    approvals: ApprovalPolicy = "decline"
    max_threads: int = 100
    hold: float = 600.0
    """Seconds that a turn waits for the client's tool outputs."""
    idle: float = 900.0
    """Seconds after which a conversation that nobody continues is closed."""
    silence: float = 600.0
    """Seconds without a delta after which a leg is given up."""
    client_version: str = "0"
    handshake_timeout: float = 15.0
    request_timeout: float = 60.0
    shutdown_grace: float = 5.0
    queue_size: int = 32_768
    """Messages of one turn that may wait for a slow reader; then that turn fails and no other."""
    max_line: int = 64 * 1024 * 1024


def find_binary(setting: str | Path | None = None) -> Path:
    """The operator's setting, else the `codex` extra's binary, else `codex` on the path."""
    if setting:
        found = shutil.which(setting)
        if found is None:
            raise ConfigError(f"`{setting}` is not an executable file; set `binary` to the path of `codex`")
        return Path(found).absolute()
    try:
        bundled: Any = importlib.import_module("codex_cli_bin")
    except ImportError:
        found = shutil.which("codex")
        if found is None:
            raise ConfigError(
                "no `codex` binary found; install `isthmus[codex]`, put `codex` on the PATH, or set `binary`"
            ) from None
        return Path(found).absolute()
    return Path(bundled.bundled_codex_path())


def make_home(setting: str) -> Path:
    """The operator's `CODEX_HOME`: the program refuses one that is not there, so it is made."""
    home = Path(setting).expanduser().absolute()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"codex `home` `{home}` cannot be made: {error.strerror}; choose another folder") from error
    return home


def command_line(options: CodexOptions, *arguments: str) -> list[str]:
    """The program and its `-c key=value` overrides, then the subcommand."""
    merged = deep_merge(PROCESS_CONFIG, options.config)
    try:
        overrides = [part for key, value in _flatten(merged) for part in ("-c", f"{key}={toml_value(value)}")]
    except ValueError as error:
        raise ConfigError(f"{error}, so it is no codex config value") from error
    return [str(find_binary(options.binary)), *overrides, *arguments]


def child_environment(options: CodexOptions, ours: Mapping[str, str] | None = None) -> dict[str, str]:
    source = os.environ if ours is None else ours
    environment = {name: source[name] for name in ENVIRONMENT if name in source}
    if options.home is not None:
        environment["CODEX_HOME"] = str(options.home)
    elif "CODEX_HOME" in source:
        environment["CODEX_HOME"] = source["CODEX_HOME"]
    return environment | dict(options.environment)


def child_secrets(options: CodexOptions) -> Iterator[Secret]:
    """What the child was handed that it must not repeat: the operator's own variables, but for paths; passwords in
    the addresses of proxies."""
    for name, value in child_environment(options).items():
        if "://" in value:
            yield from url_secrets(value)
        elif name in options.environment and not value.startswith(("/", "~", ".")):
            yield Secret(value, name)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{name}.")
        else:
            yield name, value
