"""Codex: the program, what a setup has written for it, and whether the gateway that it names would answer it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from isthmus.cli.changes import read_text, split_byte_order_mark
from isthmus.cli.codex_daemon import STOP, daemon_runs
from isthmus.cli.codex_document import parse_document
from isthmus.cli.codex_keys import FILE, PROVIDER, PROVIDERS
from isthmus.cli.codex_program import HOW_TO_GET_IT, OLDEST, TRIED, version_of
from isthmus.cli.codex_setup import codex_home
from isthmus.cli.codex_undo import has_setup
from isthmus.cli.doctor.finding import Finding, State
from isthmus.cli.doctor.gateways import reach
from isthmus.cli.doctor.look import in_thread
from isthmus.cli.elsewhere import ShownKey
from isthmus.errors import ConfigError
from isthmus.upstream.codex.options import find_binary

_AGAIN: Final = "run `isthmus codex setup` again"


async def look_at_codex(within: float, *, offline: bool, own: str | None = None) -> Sequence[Finding]:
    configs = look_at_configs(within, offline=offline, own=own)
    program, found = await asyncio.gather(in_thread(look_at_program), configs)
    return [*program, *found]


def look_at_program() -> Sequence[Finding]:
    set_up = any(_is_ours(path) for path in _files())
    try:
        program = find_binary()
    except ConfigError:
        words = "no `codex` program on this machine"
        state: State = "warning" if set_up else "ok"
        return [Finding("program", state, words, HOW_TO_GET_IT if set_up else "", {"path": None})]
    facts: dict[str, Any] = {"path": str(program)}
    try:
        version = version_of(program)
    except ConfigError as error:
        return [Finding("program", "problem", error.message, "", facts)]
    if version is None:
        words = f"`{program}` does not answer like Codex"
        return [Finding("program", "warning", words, HOW_TO_GET_IT, facts)]
    told = ".".join(map(str, version))
    facts["version"] = told
    if version[:2] < OLDEST:
        words = f"Codex {told} (`{program}`) is older than what Isthmus was tried with ({TRIED})"
        return [Finding("program", "warning", words, "update it", facts)]
    return [Finding("program", "ok", f"Codex {told} (`{program}`)", "", facts), *_daemon(set_up)]


async def look_at_configs(within: float, *, offline: bool, own: str | None) -> Sequence[Finding]:
    found: list[Finding] = []
    for path in _files():
        try:
            text = read_text(path)
            if text is None or not has_setup(text, str(path)):
                continue
            document = parse_document(split_byte_order_mark(text)[1], str(path))
        except ConfigError as error:
            found.append(Finding("config", "problem", error.message, "", {"path": str(path)}))
            continue
        found += await _look_at(path, document, within, offline=offline, own=own)
    if not found:
        words = f"`{codex_home(None) / FILE}` does not name the gateway"
        found.append(Finding("config", "ok", f"{words}: `isthmus codex setup` would", "", {"set_up": False}))
    return found


def key_of(document: dict[str, Any]) -> ShownKey:
    """The key that Codex would show."""
    ours = _ours(document)
    variable, token = ours.get("env_key"), ours.get("experimental_bearer_token")
    if isinstance(variable, str) and variable:
        return ShownKey(os.environ.get(variable, "").strip(), variable)
    return ShownKey(token) if isinstance(token, str) else ShownKey()


def secrets() -> list[str]:
    """What stands in its files and must not be shown."""
    found = []
    for path in _files():
        try:
            document = parse_document(split_byte_order_mark(read_text(path) or "")[1], str(path))
        except ConfigError:
            continue
        found.append(key_of(document).value)
    return [each for each in found if each]


async def _look_at(
    path: Path, document: dict[str, Any], within: float, *, offline: bool, own: str | None
) -> list[Finding]:
    facts: dict[str, Any] = {"path": str(path), "set_up": True}
    ours, model = _ours(document), document.get("model")
    if broken := _broken(document):
        return [Finding("config", "problem", f"`{path}`: {broken}", _AGAIN, facts)]
    base = str(ours["base_url"]).rstrip("/").removesuffix("/v1")
    key = key_of(document)
    facts |= {"address": base, "model": model, "this_gateway": base == own}
    where = "" if own in (None, base) else f", not the gateway of this configuration (`{own}`)"
    found = [Finding("config", "ok", f"`{path}`: `{model}` at `{base}`{where}", "", facts)]
    if key.variable and not key.value:
        words = f"Codex reads its key from `{key.variable}`, which is not set here"
        return [*found, Finding("key", "problem", words, f"`export {key.variable}=…` before `codex`", facts)]
    if offline:
        return [*found, Finding("gateway", "skipped", f"`{base}` was not asked", "", facts)]
    return [*found, await reach("gateway", base, str(model), key, within, by="for Codex: ", own=own)]


def _broken(document: dict[str, Any]) -> str | None:
    """What somebody has taken out of what a setup wrote; `None`: it is whole."""
    ours = _ours(document)
    if document.get("model_provider") != PROVIDER:
        return f"`model_provider` is not `{PROVIDER}`: Codex goes past the gateway"
    if not isinstance(ours.get("base_url"), str) or ours.get("wire_api") != "responses" or not ours.get("name"):
        return f"`[{PROVIDERS}.{PROVIDER}]` is not whole"
    if not isinstance(document.get("model"), str):
        return "it names no `model`"
    catalogue = document.get("model_catalog_json")
    if not isinstance(catalogue, str):
        return "`model_catalog_json` is gone: Codex knows nothing of the models"
    try:
        listed = msgspec.json.decode(Path(catalogue).read_bytes())["models"]
    except (OSError, ValueError, LookupError, TypeError):
        return f"the catalogue `{catalogue}` is not there, or cannot be read: Codex refuses to start"
    return None if listed else f"the catalogue `{catalogue}` is empty"


def _daemon(set_up: bool) -> list[Finding]:
    if not daemon_runs(codex_home(None)):
        return []
    words = "a Codex daemon is running, and keeps the settings that it started with"
    return [Finding("daemon", "warning" if set_up else "ok", words, f"`{STOP}`" if set_up else "")]


def _files() -> list[Path]:
    home = codex_home(None)
    return [home / FILE, *sorted(home.glob(f"*.{FILE}"))]


def _is_ours(path: Path) -> bool:
    try:
        return has_setup(read_text(path) or "", str(path))
    except ConfigError:
        return False


def _ours(document: dict[str, Any]) -> dict[str, Any]:
    providers = document.get(PROVIDERS)
    ours = providers.get(PROVIDER) if isinstance(providers, dict) else None
    return ours if isinstance(ours, dict) else {}
