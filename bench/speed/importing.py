"""What an import costs: modules loaded, and instructions executed while modules are loaded.

Run in a process of its own (`fresh.py`). The import machinery itself is not counted (its work depends
on where the package lies; it goes with the number of modules), nor is what a server does once its modules are there.
"""

from __future__ import annotations

import sys  # and nothing else up here: what this file has loaded, no subject has to load

from bench.speed.instructions import count_instructions

ALWAYS = ("jsonschema_rs", "lark", "pydantic", "mcp", "openai", "isthmus.testing", "isthmus.client")
"""Loaded when a request or a caller first needs them, never before."""
COMMANDS = ("typer", "rich", "tomlkit")
"""What reads and shows the commands; a gateway that is started in plain words needs none of it."""

HEAVY = {
    "isthmus": (*ALWAYS, "asyncio", "aiohttp", "msgspec", "rich", "starlette", "typer", "uvicorn"),
    "isthmus.cli.main": (*ALWAYS, "asyncio", "msgspec", *COMMANDS, "aiohttp", "starlette", "uvicorn", "sqlite3"),
    "isthmus serve": (*ALWAYS, *COMMANDS, "aiohttp", "yarl", "isthmus.demo.model", "isthmus.upstream.codex"),
}
"""Everything whose import is measured, each a part of the next, with what it must not load."""


def main() -> None:
    """Out: the figures of each subject, with those before it: a server has loaded what the package has."""
    loaded_before = set(sys.modules)
    instructions = 0
    figures = {}
    for subject, forbidden in HEAVY.items():
        instructions += count_instructions(lambda subject=subject: _load(subject), loading_only=True)
        modules = len(set(sys.modules) - loaded_before)
        heavy = [name for name in forbidden if name in sys.modules]
        figures[subject] = {"modules": modules, "instructions": instructions, "heavy": heavy}
    import json

    print(json.dumps(figures))


def _load(subject: str) -> None:
    if subject == "isthmus serve":
        _serve()
    else:
        __import__(subject)


def _serve() -> None:
    """What the command does, with a key for one provider and the default store, until the server listens."""
    import asyncio
    import tempfile
    from pathlib import Path

    import uvloop

    import isthmus.cli.main
    import isthmus.cli.serve_command
    from isthmus.config import load_config
    from isthmus.server.serve import serve

    async def until_started() -> None:
        stop = asyncio.Event()
        await serve(config, started=lambda address, gateway: stop.set(), stop=stop)

    del isthmus
    with tempfile.TemporaryDirectory() as folder:
        overrides = {"server.port": 0, "store.url": f"sqlite:{Path(folder) / 'store.db'}"}
        environ = {"DEEPSEEK_API_KEY": "none", "HOME": folder}
        config = load_config(overrides=overrides, environ=environ, cwd=Path(folder)).config
        uvloop.run(until_started())


if __name__ == "__main__":
    main()
