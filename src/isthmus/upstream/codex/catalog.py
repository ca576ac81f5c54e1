"""Writes the plain model catalog that a model-only process reads at start.

The binary prints its own catalog (`codex debug models --bundled`, no network); we hand it back without
Codex's own tools. Only a process-wide setting is honoured, a thread's own config is not (0.163).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec

from isthmus.bridge.dialects.codex.wire import plain_catalog
from isthmus.errors import ConfigError
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.process import spawn


async def with_plain_catalog(options: CodexOptions, file: Path) -> CodexOptions:
    """The same options, with the catalog written to `file` and named in the config."""
    nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    child = await spawn(options, "debug", "models", "--bundled", stdin=nothing, stdout=pipe, stderr=nothing)
    try:
        async with asyncio.timeout(options.handshake_timeout):
            printed, _ = await child.communicate()
        catalog = plain_catalog(msgspec.json.decode(printed))
    except (TimeoutError, msgspec.DecodeError, AttributeError, TypeError) as error:
        raise ConfigError(
            "this `codex` does not print its model catalog; set `own_tools = true`, or use codex 0.163 or newer"
        ) from error
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    _write(file, msgspec.json.encode(catalog))
    return replace(options, config={**options.config, "model_catalog_json": str(file)})


def _write(file: Path, catalog: bytes) -> None:
    """At once and not in a thread, which would go on writing when the start has been given up."""
    try:
        file.write_bytes(catalog)
    except OSError as error:
        raise ConfigError(f"the catalog of codex's models cannot be written: {error.strerror}: `{file}`") from error
