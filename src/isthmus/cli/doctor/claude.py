"""Claude Code: the program, what a setup has written for it, and whether the gateway that it names would answer it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.cli.changes import read_text, split_byte_order_mark
from isthmus.cli.claude_config import Record
from isthmus.cli.claude_keys import BASE_URL, ELSEWHERE, FILE, MODELS, NO_KEY, RECORD, SMALL_MODELS
from isthmus.cli.claude_program import HOW_TO_GET_IT, find_claude, judge, version_of
from isthmus.cli.claude_setup import claude_home
from isthmus.cli.doctor.finding import Finding, State
from isthmus.cli.doctor.gateways import reach
from isthmus.cli.doctor.look import in_thread
from isthmus.cli.elsewhere import ShownKey
from isthmus.cli.json_document import parse_json
from isthmus.errors import ConfigError

_TOKEN: Final = "ANTHROPIC_AUTH_TOKEN"
_AGAIN: Final = "run `isthmus claude setup` again"


async def look_at_claude(within: float, *, offline: bool, own: str | None = None) -> Sequence[Finding]:
    program, config = await asyncio.gather(in_thread(look_at_program), look_at_config(within, offline=offline, own=own))
    return [*program, *config]


def look_at_program() -> Sequence[Finding]:
    set_up = (claude_home(None) / RECORD).exists()
    try:
        program = find_claude(None)
    except ConfigError:
        words = "no `claude` program on this machine"
        state: State = "warning" if set_up else "ok"
        return [Finding("program", state, words, HOW_TO_GET_IT if set_up else "", {"path": None})]
    facts = {"path": str(program)}
    try:
        version = version_of(program)
        trouble = judge(program, version)
    except ConfigError as error:
        return [Finding("program", "problem", error.message, "", facts)]
    if trouble:
        return [Finding("program", "warning", trouble.rstrip("."), "", {**facts, "version": version})]
    return [Finding("program", "ok", f"Claude Code {version} (`{program}`)", "", {**facts, "version": version})]


async def look_at_config(within: float, *, offline: bool, own: str | None) -> Sequence[Finding]:
    path = claude_home(None) / FILE
    facts: dict[str, Any] = {"path": str(path), "set_up": False}
    try:
        written, env = _written(), _env()
    except ConfigError as error:
        return [Finding("config", "problem", error.message, "", facts)]
    if written is None:
        words = f"`{path}` does not name the gateway: `isthmus claude setup` would"
        return [Finding("config", "ok", words, "", facts)]
    base, model = str(env.get(BASE_URL) or ""), str(env.get(MODELS[0]) or "")
    facts |= {"set_up": True, "address": base or None, "model": model or None, "this_gateway": base == own}
    if broken := _broken(written, env):
        return [Finding("config", "problem", f"`{path}`: {broken}", _AGAIN, facts)]
    where = "" if own in (None, base) else f", not the gateway of this configuration (`{own}`)"
    found = [Finding("config", "ok", f"`{path}`: `{model}` at `{base}`{where}", "", facts)]
    astray = [name for name in ELSEWHERE if os.environ.get(name) and name not in env]
    if astray:
        words = f"{', '.join(f'`{name}`' for name in astray)} in the environment leads Claude Code past the gateway"
        found.append(Finding("environment", "warning", words, f"unset {'it' if len(astray) == 1 else 'them'}", facts))
    if offline:
        return [*found, Finding("gateway", "skipped", f"`{base}` was not asked", "", facts)]
    token = str(env.get(_TOKEN) or "")
    key = ShownKey("" if token == NO_KEY else token)
    return [*found, await reach("gateway", base, model, key, within, by="for Claude Code: ", own=own)]


def secrets() -> list[str]:
    """What stands in its file and must not be shown."""
    try:
        token = str(_env().get(_TOKEN) or "")
    except ConfigError:
        return []
    return [token] if token not in ("", NO_KEY) else []


def _broken(written: Mapping[str, str], env: Mapping[str, Any]) -> str | None:
    """What somebody has taken out of what a setup wrote; `None`: it is whole. Another model is the user's choice."""
    if env.get(BASE_URL) != written.get(BASE_URL):
        return f"`{BASE_URL}` is not what the setup wrote: Claude Code goes past the gateway"
    gone = [name for name in written if name not in env or (name not in _CHOSEN and env[name] != written[name])]
    if gone:
        return f"{', '.join(f'`{name}`' for name in gone)} {'is' if len(gone) == 1 else 'are'} not what the setup wrote"
    return None


_CHOSEN: Final = (*MODELS, *SMALL_MODELS, "CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS")
"""What a user may well set otherwise."""


def _written() -> Mapping[str, str] | None:
    path = claude_home(None) / RECORD
    text = read_text(path)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Record).wrote
    except ValueError as error:
        raise ConfigError(f"`{path}` cannot be understood ({error}); {_AGAIN}") from error


def _env() -> Mapping[str, Any]:
    path = claude_home(None) / FILE
    text = split_byte_order_mark(read_text(path) or "")[1]
    said = parse_json(text, str(path)) if text.strip() else {}
    env = said.get("env") if isinstance(said, dict) else None
    return env if isinstance(env, dict) else {}
