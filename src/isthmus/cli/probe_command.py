"""`isthmus providers probe NAME|BASE_URL`: ask a live endpoint what it can do; write it down, or compare it.

Progress goes to stderr: a bar on a terminal, plain lines elsewhere. The key is sent to the endpoint and shown nowhere.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from isthmus.cli.help_view import OUTPUT, examples
from isthmus.cli.layout import show_table
from isthmus.cli.probe_compare import claims_more, rows_json, show_comparison
from isthmus.cli.probe_compare import compare as compare_with
from isthmus.cli.probe_file import provider_file
from isthmus.cli.probe_target import find_target, read_variable
from isthmus.cli.provider_folders import FolderFlag
from isthmus.cli.terminal import (
    clean,
    heading,
    lined_table,
    number,
    open_console,
    plural,
    print_json,
    put,
    words,
)
from isthmus.errors import ConfigError
from isthmus.upstream.probe.findings import Findings, Spent, Verdict

_Told = Callable[[str, str], None]
_SIGNS: Final[dict[Verdict, tuple[str, str]]] = {
    "yes": ("✓ yes", "green"),
    "no": ("✗ no", "red"),
    "unknown": ("? unknown", "yellow"),
}


@examples(
    "isthmus providers probe http://127.0.0.1:8080/v1 --write mine.toml", "isthmus providers probe deepseek --compare"
)
def probe_endpoint(
    endpoint: Annotated[
        str, typer.Argument(metavar="NAME|BASE_URL", help="A provider's name, or an address, up to and with `/v1`.")
    ],
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare with the provider's file; fails where that claims more.")
    ] = False,
    base_url: Annotated[str, typer.Option("--base-url", help="The address, where it is not the provider's own.")] = "",
    key: Annotated[str, typer.Option("--key", help="The key; better in a variable, see --key-env.")] = "",
    key_env: Annotated[str, typer.Option("--key-env", help="The variable that holds the key.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="The model to ask; the first one listed otherwise.")] = "",
    write: Annotated[Path | None, typer.Option("--write", "-w", help="Write the findings here, as NAME.toml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait for one answer.")] = 120.0,
    total_time: Annotated[float, typer.Option("--total-time", help="Seconds for all of them.")] = 900.0,
    max_requests: Annotated[int, typer.Option("--max-requests", min=1, help="Most requests.")] = 80,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=16, help="Most tokens of one answer.")] = 1000,
    max_total_tokens: Annotated[
        int, typer.Option("--max-total-tokens", min=16, help="Most tokens of all answers.")
    ] = 40_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)] = False,
    folder: FolderFlag = None,
) -> None:
    """Ask a live endpoint what it can do, in both dialects (some fifty short requests), and write a provider file."""
    from isthmus.upstream.probe.probe import Bounds, probe

    target = find_target(endpoint, base_url, key or (read_variable(key_env) if key_env else ""), folder)
    if compare and target.provider is None:
        raise ConfigError("`--compare` needs the name of a provider; give its address with `--base-url`")
    if write is not None:
        _check_file(write, force=force)
    bounds = Bounds(total_time, max_requests, max_total_tokens, max_tokens, timeout)
    talk = open_console(stderr=True)
    with progress_display(talk) as told:
        findings = asyncio.run(probe(target.address, key=target.key, model=model, bounds=bounds, progress=told))
    rows = compare_with(target.provider, findings) if compare and target.provider is not None else []
    if as_json:
        print_json(
            {"address": target.address, **asdict(findings), **({"compared": rows_json(rows)} if compare else {})}
        )
    elif compare:
        show_comparison(open_console(), rows, endpoint, clean(findings.model))
    else:
        show_findings(open_console(), findings, target.address)
    talk.print(_spending(findings.spent), style="dim")
    if write is not None:
        name = write.stem
        variable = key_env or (f"{re.sub('[^A-Z0-9]+', '_', name.upper()).strip('_')}_API_KEY" if target.key else "")
        day = f"{datetime.now():%Y-%m-%d}"
        text = provider_file(findings, name=name, base_url=target.address, key_env=variable, day=day)
        write.write_text(text, encoding="utf-8")
        put(talk, Text.assemble(("✓ written", "green"), f"  {write}"))
        if variable:
            put(talk, words(f"The key is not in the file: set `{variable}` before you use it.", "dim"))
    elif not (compare or as_json):
        talk.print(words("`--write FILE` keeps these findings as a provider file.", "dim"))
    if claims_more(rows):
        raise typer.Exit(1)


def _spending(spent: Spent) -> str:
    said = f"{plural(spent.requests, 'request')}, {number(spent.tokens)} tokens written, {spent.seconds:.0f} seconds"
    return f"{said}; {plural(spent.unasked, 'question')} left out by the bounds" if spent.unasked else said


def show_findings(console: Console, findings: Findings, address: str) -> None:
    """One line for each question."""
    heading(console, clean(findings.model), f"at {address}")
    table = lined_table("question", "answer", "detail")
    for note in findings.notes:
        sign, style = _SIGNS[note.verdict]
        table.add_row(Text(note.question), Text(sign, style=style), words(note.detail))
    show_table(console, table)


@contextmanager
def progress_display(console: Console) -> Iterator[_Told]:
    """Something to tell the questions to: a bar on a terminal, a line for each stage elsewhere."""
    if not console.is_terminal:
        yield _Lines(console).tell
        return
    columns = (BarColumn(bar_width=20), TextColumn("{task.completed:>2} asked"), TextColumn("[dim]{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=_USUAL)

        def tell(stage: str, question: str) -> None:
            bar.update(task, advance=1, description=f"{stage}: {question}")

        yield tell


_USUAL: Final = 50
"""How many questions most endpoints need."""


class _Lines:
    """Without a terminal: one line when a new stage begins."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage = ""

    def tell(self, stage: str, question: str) -> None:
        if stage != self._stage:
            self._stage = stage
            self._console.print(f"asking about {stage}", markup=False)


def _check_file(path: Path, *, force: bool) -> None:
    if path.suffix != ".toml" or path.stem != path.stem.lower():
        raise ConfigError(f"`{path.name}` cannot be found as a provider; call it `name.toml`, in lower case")
    if path.exists() and not force:
        raise ConfigError(f"`{path}` exists; choose another name, or add `--force`")
    if not path.parent.is_dir():
        raise ConfigError(f"`{path.parent}` is not a folder; make it first")
