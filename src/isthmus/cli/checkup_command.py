"""`isthmus providers test [NAME…]`: is this address right and this key good? Free of charge, unless `--ask` is said.

Talk goes to stderr, findings to stdout. It fails (exit 1) where a provider cannot be used as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from isthmus.cli.checkup_view import checkup_json, show_checkups
from isthmus.cli.help_view import OUTPUT, examples
from isthmus.cli.provider_folders import FolderFlag, provider_folders
from isthmus.cli.terminal import open_console, plural, print_json, words
from isthmus.config import read_config
from isthmus.config.schema import Config
from isthmus.values.problems import Problem


@examples("isthmus providers test", "isthmus providers test deepseek --ask")
def check_configured(
    name: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Providers; all that are configured otherwise.")
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Also send one small request to each, which is paid for.")] = False,
    model: Annotated[str, typer.Option("--model", "-m", help="The model to ask; the provider's default one.")] = "",
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds for what is free of charge.")] = 10.0,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Config file (TOML).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)] = False,
    folder: FolderFlag = None,
) -> None:
    """Test whether providers can be used as they are configured: address, key, list of models, and what to do."""
    from isthmus.wiring_checkup import check_providers

    reading = read_config(config)
    settings, faults = _with_folders(reading.config, folder), _faults(reading.errors)
    names = list(dict.fromkeys(name or settings.providers))
    console = open_console(stderr=True)
    if not as_json:
        console.print(words(f"asking {plural(len(names), 'provider')} …", "dim"))
    found = asyncio.run(check_providers(settings, names, faults, ask=ask, model=model, within=timeout))
    if as_json:
        print_json([checkup_json(each) for each in found])
    else:
        show_checkups(open_console(), found)
    if not all(each.sound for each in found):
        raise typer.Exit(1)


def _with_folders(settings: Config, folder: list[Path] | None) -> Config:
    if not folder:
        return settings
    return msgspec.structs.replace(settings, provider_folders=[str(each) for each in provider_folders(folder)])


def _faults(problems: Sequence[Problem]) -> dict[str, str]:
    """Provider → what is wrong with its section: it would be tested as something else than was written."""
    return {problem.key[1]: problem.text for problem in reversed(problems) if problem.key[:1] == ("providers",)}
