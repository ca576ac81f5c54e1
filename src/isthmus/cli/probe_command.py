"""`isthmus providers probe BASE_URL`: ask a live endpoint what it can do, and write it down as a provider file.

Progress goes to stderr: a bar on a terminal, plain lines elsewhere. The key is sent to the endpoint and shown nowhere.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit, urlunsplit

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from isthmus.cli.probe_file import provider_file
from isthmus.cli.terminal import clean, heading, indented, lined_table, open_console, words
from isthmus.errors import ConfigError
from isthmus.upstream.probe.findings import Findings, Verdict
from isthmus.values.redact import redact_url

_Told = Callable[[str, str], None]
_SIGNS: Final[dict[Verdict, tuple[str, str]]] = {
    "yes": ("✓ yes", "green"),
    "no": ("✗ no", "red"),
    "unknown": ("? unknown", "yellow"),
}


def probe_endpoint(
    base_url: Annotated[str, typer.Argument(metavar="BASE_URL", help="The address, up to and with `/v1`.")],
    key: Annotated[str, typer.Option("--key", help="The key; better in a variable, see --key-env.")] = "",
    key_env: Annotated[str, typer.Option("--key-env", help="The variable that holds the key.")] = "",
    model: Annotated[str, typer.Option("--model", "-m", help="The model to ask; the first one listed otherwise.")] = "",
    write: Annotated[Path | None, typer.Option("--write", "-w", help="Write the findings here, as NAME.toml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds to wait for one answer.")] = 120.0,
) -> None:
    """Ask a live endpoint what it can do (some thirty short requests), and write a provider file."""
    from isthmus.upstream.probe.probe import probe

    address = _check_address(base_url)
    if write is not None:
        _check_file(write, force=force)
    secret = key or (_read_variable(key_env) if key_env else "")
    talk = open_console(stderr=True)
    with progress_display(talk) as told:
        findings = asyncio.run(probe(address, key=secret, model=model, patience=timeout, progress=told))
    show_findings(open_console(), findings, address)
    name = write.stem if write is not None else _name_of(address)
    variable = key_env or (f"{re.sub('[^A-Z0-9]+', '_', name.upper()).strip('_')}_API_KEY" if secret else "")
    text = provider_file(findings, name=name, base_url=address, key_env=variable, day=f"{datetime.now():%Y-%m-%d}")
    if write is None:
        talk.print(words("`--write FILE` keeps these findings as a provider file.", "dim"))
        return
    write.write_text(text, encoding="utf-8")
    talk.print(Text.assemble(("✓ written", "green"), f"  {write}"), soft_wrap=True)
    if variable:
        talk.print(words(f"The key is not in the file: set `{variable}` before you use it.", "dim"), soft_wrap=True)


def show_findings(console: Console, findings: Findings, address: str) -> None:
    """One line for each question."""
    heading(console, clean(findings.model), f"at {address}")
    table = lined_table("question", "answer", "detail")
    for note in findings.notes:
        sign, style = _SIGNS[note.verdict]
        table.add_row(Text(note.question), Text(sign, style=style), words(note.detail))
    console.print(indented(table))


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


_USUAL: Final = 26
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


def _check_address(given: str) -> str:
    """The address without what does not belong into a file that is passed around."""
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"`{redact_url(given)}` is not an address; write it like `http://localhost:8000/v1`")
    if parts.username or parts.password:
        raise ConfigError("the address holds a password; leave it out and give a key with `--key-env`")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _check_file(path: Path, *, force: bool) -> None:
    if path.suffix != ".toml" or path.stem != path.stem.lower():
        raise ConfigError(f"`{path.name}` cannot be found as a provider; call it `name.toml`, in lower case")
    if path.exists() and not force:
        raise ConfigError(f"`{path}` exists; choose another name, or add `--force`")
    if not path.parent.is_dir():
        raise ConfigError(f"`{path.parent}` is not a folder; make it first")


def _read_variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"the variable `{name}` is not set")
    return value


def _name_of(address: str) -> str:
    host = urlsplit(address).hostname or "endpoint"
    return re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")
