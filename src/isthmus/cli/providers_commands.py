"""`isthmus providers list | show | check`: which providers there are, what is known of them and where it is written.

Nothing is asked of the network (but with `show --ask`; `test` and `probe`, which do nothing else, live in
`checkup_command` and `probe_command`), and
no key is ever printed: only the names of the variables that hold them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.text import Text

from isthmus.bridge.capabilities import Dialect
from isthmus.cli.checkup_command import check_configured
from isthmus.cli.heard import ask_server, load_known, recall_lessons
from isthmus.cli.help_view import OUTPUT, Commands, examples
from isthmus.cli.probe_command import probe_endpoint
from isthmus.cli.provider_folders import FolderFlag, provider_folders
from isthmus.cli.providers_show import Known, show_json, show_provider
from isthmus.cli.providers_snapshot import listed_json, listed_providers, matching_providers, show_hint, show_listed
from isthmus.cli.providers_view import list_json, show_list
from isthmus.cli.terminal import open_console, plural, print_json, put, words
from isthmus.config import read_config
from isthmus.config.keys import first_address
from isthmus.errors import ConfigError
from isthmus.providers import Provider, check_provider_file, load_provider, provider_names
from isthmus.providers.dialects import choose_dialect
from isthmus.values.redact import redact_url

providers_app = Commands(name="providers", help="List, show, check, test or probe providers.", no_args_is_help=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)]


@providers_app.command("list")
@examples("isthmus providers list", "isthmus providers list --all", "isthmus providers list router")
def list_providers(
    word: Annotated[str, typer.Argument(metavar="[WORD]", help="Only those with this in a name, key or address.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also those of the snapshot, which have no file.")] = False,
    as_json: JsonFlag = False,
    folder: FolderFlag = None,
) -> None:
    """The providers with a file: address, key variable, default model, and the main things they can do."""
    folders = provider_folders(folder)
    providers = matching_providers([load_provider(name, folders) for name in provider_names(folders)], word)
    listed = listed_providers(word) if word or everything else []
    if as_json:
        print_json([*list_json(providers), *listed_json(listed)])
        return
    console = open_console()
    if word and not providers and not listed:
        raise ConfigError(f"no provider has `{word}` in its name, key or address; `--all` shows every one")
    if providers:
        show_list(console, providers)
    if listed:
        show_listed(console, listed)
    else:
        show_hint(console)


@providers_app.command("show")
@examples("isthmus providers show deepseek", "isthmus providers show ollama --ask")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The provider, by its name or an alias.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The model; the default one otherwise.")] = "",
    dialect: Annotated[
        str, typer.Option("--dialect", "-d", help="As it is in `chat`, `responses` or `messages`; else as it is used.")
    ] = "",
    ask: Annotated[bool, typer.Option("--ask", help="Ask its server about its models first.")] = False,
    as_json: JsonFlag = False,
    folder: FolderFlag = None,
) -> None:
    """Every fact about a provider and one of its models, and who says it: a file, its server, or the configuration."""
    folders, config = provider_folders(folder), read_config().config
    provider, settings = load_known(name, folders, config)
    if dialect:
        provider = replace(provider, asked=_choose_dialect(name, provider, dialect))
    if ask:
        provider = ask_server(name, provider, settings, folders)
    lessons = recall_lessons(config, name, provider, model or provider.default_model) if settings is not None else []
    address = redact_url(first_address(provider.endpoint, settings)) if settings is not None else ""
    known = Known(provider, model, tuple(lessons), address, time.time())
    if as_json:
        print_json(show_json(known))
    else:
        show_provider(open_console(), known)


@providers_app.command("check")
@examples("isthmus providers check mine.toml")
def check(
    file: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Provider files.")],
    as_json: JsonFlag = False,
) -> None:
    """Check provider files: every problem with its place and what to do about it."""
    found = {str(path): find_file_problems(path) for path in file}
    if as_json:
        print_json([{"file": path, "problems": problems} for path, problems in found.items()])
    else:
        _print_findings(found)
    if any(found.values()):
        raise typer.Exit(1)


providers_app.command("test")(check_configured)
providers_app.command("probe")(probe_endpoint)


def _choose_dialect(name: str, provider: Provider, asked: str) -> Dialect:
    spoken: tuple[Dialect, ...] = get_args(Dialect)
    found = next((dialect for dialect in spoken if dialect == asked.strip().lower()), None)
    if found is None:
        raise ConfigError(f"there is no dialect `{asked}`; there is {', '.join(f'`{each}`' for each in spoken)}")
    return choose_dialect(name, provider, found)


def find_file_problems(path: Path) -> list[str]:
    """What is wrong with a file, by itself and on top of what it extends."""
    found = check_provider_file(path)
    # The file is named above its problems.
    places = [problem.place.replace(f"{path}:", "line ").removeprefix(str(path)) for problem in found]
    problems = [replace(problem, place=place).text for problem, place in zip(found, places, strict=True)]
    if path.suffix != ".toml" or path.stem != path.stem.lower():
        problems.append(f"the file is called `{path.name}`; providers are found as `name.toml`, in lower case")
    if problems:
        return problems
    try:
        provider = load_provider(path.stem, (path.parent,))
        for entry in provider.models:
            provider.capabilities(entry.example)
        provider.capabilities()
    except ConfigError as error:
        return error.message.splitlines()
    return []


def _print_findings(found: dict[str, list[str]]) -> None:
    console = open_console()
    for path, problems in found.items():
        if not problems:
            provider = load_provider(Path(path).stem, (Path(path).parent,))
            said = f"{provider.title}, {plural(len(provider.models), 'model entry').replace('entrys', 'entries')}"
            put(console, Text.assemble(("✓ sound", "green"), f"  {path}", (f"  {said}", "dim")))
            continue
        head = (f"✗ {plural(len(problems), 'problem')}", "bold red")
        put(console, Text.assemble(head, f"  {path}"))
        for problem in problems:
            put(console, Text.assemble("  • ", words(problem)))
