"""Codex beside a gateway for one go: `-c` overrides and a catalogue that goes with it, nothing written to its home."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from isthmus.cli.beside import Launch, run_beside
from isthmus.cli.codex_config import overrides
from isthmus.cli.codex_keys import Settings
from isthmus.cli.codex_setup import says_of_search
from isthmus.config.schema import Config, draws
from isthmus.protocol.json import JsonObject


async def run_codex(binary: Path, config: Config, model: str, catalogue: JsonObject, arguments: Sequence[str]) -> int:
    """Start both, wait for Codex, stop the gateway; Codex's exit code."""

    @contextmanager
    def prepare(url: str) -> Iterator[Launch]:
        with tempfile.TemporaryDirectory(prefix="isthmus-codex-") as folder:
            file = Path(folder) / "models.json"
            file.write_bytes(msgspec.json.encode(catalogue))
            searches, live = bool(config.search.backend), not says_of_search()
            settings = Settings(f"{url}/v1", model, str(file), images=draws(config), search=searches, live=live)
            yield Launch([str(binary), *overrides(settings), *arguments])

    return await run_beside(config, prepare)
