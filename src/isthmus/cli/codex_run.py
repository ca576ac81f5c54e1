"""Codex at a gateway for one go: `-c` overrides and a catalogue that goes with it, nothing written to its home."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isthmus.cli.beside import Launch, run_beside, run_program
from isthmus.cli.codex_config import overrides
from isthmus.cli.codex_keys import Settings
from isthmus.cli.codex_setup import says_of_search, wanted_variable
from isthmus.cli.elsewhere import VARIABLE
from isthmus.config.schema import Config, draws
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.cli.codex_commands import Offer


async def run_codex(binary: Path, config: Config, model: str, catalogue: JsonObject, arguments: Sequence[str]) -> int:
    """Start both, wait for Codex, stop the gateway; Codex's exit code."""
    settings = Settings("", model, "", images=draws(config), search=bool(config.search.backend))
    # A setup for another gateway may have Codex ask for a key that this one does not want.
    name = wanted_variable()
    environment = {name: "isthmus"} if name and not os.environ.get(name) else {}
    return await run_beside(config, _preparing(binary, settings, catalogue, arguments, environment))


async def run_codex_at(binary: Path, offer: Offer, key: str, arguments: Sequence[str]) -> int:
    """The same at a gateway that runs elsewhere. The key goes by the environment: everybody on the machine can read
    the arguments of a program."""
    settings = Settings(
        "", offer.model, "", key_env=VARIABLE if key else None, images=offer.draws, search=offer.searches
    )
    prepare = _preparing(binary, settings, offer.catalogue, arguments, {VARIABLE: key} if key else {})
    with prepare(offer.base) as launch:
        return await run_program(launch)


def _preparing(
    binary: Path,
    settings: Settings,
    catalogue: JsonObject,
    arguments: Sequence[str],
    environment: Mapping[str, str | None],
) -> Callable[[str], AbstractContextManager[Launch]]:
    @contextmanager
    def prepare(url: str) -> Iterator[Launch]:
        with tempfile.TemporaryDirectory(prefix="isthmus-codex-") as folder:
            file = Path(folder) / "models.json"
            file.write_bytes(msgspec.json.encode(catalogue))
            told = replace(settings, base_url=f"{url}/v1", catalogue=str(file), live=not says_of_search())
            yield Launch([str(binary), *overrides(told), *arguments], environment)

    return prepare
