"""What is installed and what the system grants: versions, the event loop, extras, open files."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from isthmus import __version__
from isthmus.cli.doctor.finding import Finding
from isthmus.config.schema import Config

EXTRAS: Final[Mapping[str, tuple[str, str]]] = {
    "bedrock": ("botocore", "botocore"),
    "codex": ("codex_cli_bin", "openai-codex-cli-bin"),
    "mcp": ("mcp", "mcp"),
    "otel": ("opentelemetry.sdk", "opentelemetry-sdk"),
    "pages": ("trafilatura", "trafilatura"),
    "postgres": ("psycopg", "psycopg"),
    "redis": ("redis", "redis"),
    "vertex": ("google.auth", "google-auth"),
}
"""Extra → the module that it brings, and the distribution that this is in."""
_NEWEST: Final = (3, 13)
"""The newest Python that the tests run on."""
_SPARE: Final = 200
"""Open files beside those of streams: stores, workers, logs, idle connections."""


def look_at_versions() -> Sequence[Finding]:
    python = platform.python_version()
    facts = {"isthmus": __version__, "python": python, "system": platform.platform(), "executable": sys.executable}
    newer = sys.version_info[:2] > _NEWEST
    words = f"Isthmus {__version__} on Python {python}, {platform.system()} {platform.machine()}"
    return [
        Finding(
            "versions", "ok", f"{words}; that Python is newer than what it was tried on" if newer else words, "", facts
        ),
        _event_loop(),
        _extras(),
    ]


def look_at_limits(config: Config) -> Sequence[Finding]:
    try:
        import resource
    except ImportError:
        return [Finding("open_files", "ok", "this system has no limit of open files")]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else None
    needed = 2 * config.server.max_concurrent + _SPARE
    facts = {"soft": soft, "hard": most, "needed": needed}
    told = f"open files: {_count(most)} at the most; `server.max_concurrent` streams need {needed:,}"
    if most is None or most >= needed:
        return [Finding("open_files", "ok", told, "", facts)]
    remedy = (
        f"raise the hard limit (`ulimit -Hn {needed}`, or `LimitNOFILE=` of its unit), or lower `server.max_concurrent`"
    )
    return [Finding("open_files", "warning", told, remedy, facts)]


def _event_loop() -> Finding:
    found = _version("uvloop")
    if found:
        return Finding("event_loop", "ok", f"uvloop {found}", "", {"uvloop": found})
    if sys.platform == "win32":
        return Finding("event_loop", "ok", "asyncio's own loop: uvloop is not for Windows", "", {"uvloop": None})
    words = "uvloop is not installed: the gateway works, and is slower"
    return Finding("event_loop", "warning", words, "`pip install uvloop`", {"uvloop": None})


def _extras() -> Finding:
    here = dict(_installed())
    absent = [name for name in EXTRAS if name not in here]
    told = ", ".join(f"`{name}` ({found})" for name, found in here.items()) or "none"
    words = f"extras: {told}" + (f"; not installed: {', '.join(absent)}" if absent else "")
    return Finding("extras", "ok", words, "", {"installed": here, "absent": absent})


def _installed() -> Iterator[tuple[str, str]]:
    for name, (module, distribution) in EXTRAS.items():
        try:
            there = find_spec(module) is not None
        except ModuleNotFoundError:  # of the package that it would be in
            there = False
        if there:
            yield name, _version(distribution) or "version unknown"


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _count(most: int | None) -> str:
    return "any number" if most is None else f"{most:,}"
