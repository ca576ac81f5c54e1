"""`isthmus init`: "test the keys now?", before anything is written.

In: the text of the file to be. Out: whether all its providers can be used, after that was told. Lists of models are
asked for, which costs nothing.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from isthmus.cli.checkup_view import show_checkups
from isthmus.cli.init_file import save_private
from isthmus.config.load import read_config


def test_providers(console: Console, text: str, names: Sequence[str]) -> bool:
    from isthmus.wiring_checkup import check_providers

    clean = {name: value for name, value in os.environ.items() if not name.startswith("ISTHMUS_")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "isthmus.toml"
        save_private(path, text)
        config = read_config(path, environ=clean).config
    found = asyncio.run(check_providers(config, names, environ=clean))
    console.print()
    show_checkups(console, found)
    return all(each.sound for each in found)
