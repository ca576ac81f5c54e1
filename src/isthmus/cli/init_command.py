"""`isthmus init`: make a configuration file, by asking or from flags alone (`--yes`).

The file is shown before it is written, with keys masked; it is written for its owner only, and never over another one
without being told so.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.prompt import Confirm
from rich.text import Text

from isthmus.addresses import may_get_key
from isthmus.cli.help_view import examples
from isthmus.cli.init_file import Answers, ProviderAnswer, check_text, referenced_variables, save_private, write_text
from isthmus.cli.init_wizard import Wizard, choosable_providers, default_model, parse_provider
from isthmus.cli.terminal import clean, open_console, put, say
from isthmus.config.find import FILE_NAME, config_folder, data_folder, find_config, own_provider_folders
from isthmus.config.known import find_known
from isthmus.errors import ConfigError
from isthmus.values.problems import as_error

DEFAULT_PORT = 8484


@examples(
    "isthmus init",
    "isthmus init --yes --provider deepseek",
    "isthmus init --yes -p mine=http://127.0.0.1:8080/v1 --dry-run",
)
def init(
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider", "-p", metavar="NAME[=URL]", help="A provider, or any server by its URL; repeatable."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="NAME=VARIABLE", help="The environment variable with a provider's key."),
    ] = None,
    default: Annotated[str, typer.Option("--default", metavar="PROVIDER/MODEL", help="The default model.")] = "",
    catch_all: Annotated[bool, typer.Option(help="Answer every other model name with the default too.")] = True,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The port; 8484 if nothing is said.")] = None,
    store: Annotated[str, typer.Option(metavar="URL", help="`sqlite:PATH` or `memory:`.")] = "",
    path: Annotated[Path | None, typer.Option("--path", help="Where to write it.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; flags and defaults answer.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the file, write nothing.")] = False,
    test: Annotated[
        bool | None, typer.Option("--test/--no-test", help="Test the keys, free of charge; else it is asked.")
    ] = None,
) -> None:
    """Make a configuration file: by a few questions, or with `--yes` from the flags alone."""
    console = open_console(stderr=dry_run)
    try:
        given = Answers(_parse_providers(provider or [], key or []), default.strip(), catch_all, host, store=store)
        given = replace(given, port=DEFAULT_PORT if port is None else port)
        _run(console, given, path, yes=yes, force=force, dry_run=dry_run, test=test, port_given=port is not None)
    except ConfigError as error:
        say(Text.assemble(("error", "red"), " ", clean(error.message)), stderr=True)
        raise typer.Exit(1) from error
    except (EOFError, KeyboardInterrupt, typer.Abort) as error:
        say(Text("\nnothing was written; use `--yes` where nobody can answer"), stderr=True)
        raise typer.Exit(1) from error


def _run(
    console: Console,
    given: Answers,
    path: Path | None,
    *,
    yes: bool,
    force: bool,
    dry_run: bool,
    test: bool | None,
    port_given: bool,
) -> None:
    wizard = Wizard(console, os.environ, Path.cwd(), own_provider_folders(os.environ))
    if path is None:
        path = _usual_path(dry_run=dry_run) if yes or dry_run else wizard.ask_path()
    path = Path.cwd() / (path.expanduser() / FILE_NAME if path.expanduser().is_dir() else path.expanduser())
    if not dry_run:
        _allow_overwrite(console, path, yes=yes, force=force)
    if yes:
        answers = replace(given, default=given.default or default_model(given.providers, wizard.folders))
    else:
        answers = wizard.ask(given, port_given=port_given)
    answers = replace(answers, store=answers.store or _store_beside(path))
    text = write_text(answers)
    problems = check_text(text, os.environ)
    if problems:
        raise as_error(problems)
    if dry_run:
        typer.echo(write_text(answers.masked()), nl=False)
        return
    console.print()
    console.print(
        Panel(
            escape(write_text(answers.masked()).rstrip("\n")), title=escape(path.name), title_align="left", expand=False
        )
    )
    sound = _test(console, text, [provider.name for provider in answers.providers], asked=test, yes=yes)
    if not yes and not Confirm.ask(f"Write {escape(str(path))}?", console=console, default=True):
        console.print("Nothing was written.")
        raise typer.Exit(1)
    save_private(path, text)
    _tell_next(console, path, text)
    if yes and not sound:
        raise typer.Exit(1)


def _usual_path(*, dry_run: bool) -> Path:
    """The user's own file, if it would count: another one may go before it."""
    path, counts = config_folder(os.environ) / FILE_NAME, _found()
    if counts is not None and counts != path and not dry_run:
        raise ConfigError(
            f"`{counts}` counts here, before `{path}`: nothing would change. Replace it with `--path {counts} "
            f"--force`, or write the other one all the same with `--path {path}`"
        )
    return path


def _test(console: Console, text: str, names: list[str], *, asked: bool | None, yes: bool) -> bool:
    """Whether all can be used, where that is wanted; a bad key is told, and keeps nobody from writing the file."""
    if not names or asked is False or (asked is None and yes):
        return True
    question = (
        "Test the key now? It is free of charge" if len(names) == 1 else "Test the keys now? It is free of charge"
    )
    if asked is None and not Confirm.ask(question, console=console, default=True):
        return True
    from isthmus.cli.init_checkup import test_providers

    return test_providers(console, text, names)


def _parse_providers(providers: list[str], keys: list[str]) -> tuple[ProviderAnswer, ...]:
    names = choosable_providers(own_provider_folders(os.environ))
    parsed = {answer.name: answer for answer in (parse_provider(text, names) for text in providers)}
    for entry in keys:
        name, _, variable = (side.strip() for side in entry.partition("="))
        if name not in parsed:
            raise ConfigError(f"`--key {name}=…` belongs to no `--provider`; write `--key NAME=VARIABLE`")
        if not variable.isidentifier() or not variable.isascii():
            # A key on the command line ends up in the shell's history, so only a variable's name is taken.
            raise ConfigError(f"`--key {name}=…` must name an environment variable, such as `{name.upper()}_API_KEY`")
        parsed[name] = replace(parsed[name], api_key=f"${{{variable}}}")
    return tuple(_with_reference(provider) for provider in parsed.values())


def _with_reference(provider: ProviderAnswer) -> ProviderAnswer:
    """The key and what the address is written with, from the variables that the provider file names, unless the address
    is another one."""
    known = find_known(provider.uses or provider.name, own_provider_folders(os.environ))
    if not provider.base_url:
        provider = replace(provider, variables={name: f"${{{name}}}" for name in known.variables})
    if provider.api_key or not known.needs_key or not may_get_key(known.base_url, provider.base_url):
        return provider
    variable = next((name for name in known.key_variables if os.environ.get(name)), known.key_variables[0])
    return replace(provider, api_key=f"${{{variable}}}")


def _allow_overwrite(console: Console, path: Path, *, yes: bool, force: bool) -> None:
    if not path.exists() or force:
        return
    if yes:
        raise ConfigError(f"`{path}` is there already; add `--force` to replace it, or choose another `--path`")
    if not Confirm.ask(f"{escape(str(path))} is there already. Replace it?", console=console, default=False):
        console.print("Nothing was written.")
        raise typer.Exit(1)


def _store_beside(path: Path) -> str:
    """Beside the file in a project; in the data folder for the user's own configuration."""
    if path.parent == config_folder(os.environ):
        return f"sqlite:{data_folder(os.environ) / 'isthmus.db'}"
    return "sqlite:isthmus.db"


def _tell_next(console: Console, path: Path, text: str) -> None:
    put(console, f"[green]Wrote[/] {escape(str(path))} [dim](only you can read it)[/]")
    console.print("Next:")
    for variable in referenced_variables(text):
        if not os.environ.get(variable, "").strip():
            put(console, f"  export {variable}=…")
    found = _found()
    put(console, f"  isthmus serve{'' if found == path else f' --config {escape(str(path))}'}")
    if found not in (None, path):
        put(console, f"[yellow]{escape(str(found))} is found before it: without `--config` that one counts.[/]")


def _found() -> Path | None:
    """The file that a gateway would read here, if nobody names another."""
    with suppress(ConfigError):  # a variable may name one that is not there
        return find_config(None, os.environ, Path.cwd())
    return None
