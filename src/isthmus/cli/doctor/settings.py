"""The configuration and its keys: which file, what is wrong in it, which key comes from where. No key is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from isthmus.cli.doctor.finding import Finding, State
from isthmus.cli.elsewhere import VARIABLE
from isthmus.config.keys_shown import key_words
from isthmus.config.known import DEMO
from isthmus.config.load import Reading
from isthmus.errors import ConfigError
from isthmus.server.open import check_open
from isthmus.values.problems import Problem, dotted


def look_at_settings(reading: Reading) -> Sequence[Finding]:
    path = str(reading.path) if reading.path else None
    errors = len(reading.errors)
    where = f"`{path}`" if path else "no file: defaults and the environment"
    facts = {"path": path, "errors": errors, "warnings": len(reading.warnings)}
    if errors:
        words = f"{where}: the gateway cannot start with this configuration"
        first = Finding("file", "problem", words, "correct what is named below", facts)
    else:
        first = Finding("file", "ok", f"{where}: sound" if path else where, "", facts)
    unguarded = list(_open(reading))
    told = [each for each in (*reading.errors, *reading.warnings) if not _told_elsewhere(each, bool(unguarded))]
    return [first, *map(_of_problem, told), *unguarded]


def look_at_keys(reading: Reading) -> Sequence[Finding]:
    found = [*_provider_keys(reading), *_own_keys(reading)]
    if VARIABLE in os.environ:
        words = f"`${VARIABLE}` is set: commands show it to gateways elsewhere"
        found.append(Finding("variable", "ok", words, "", {"variable": VARIABLE}))
    return found


def unreadable(error: ConfigError) -> Sequence[Finding]:
    """Of a configuration that cannot be read at all."""
    told, _, fix = error.message.partition(". Fix: ")
    return [Finding("file", "problem", told, fix)]


def _told_elsewhere(problem: Problem, unguarded: bool) -> bool:
    """A missing key is told among the keys, and an open door with what may be done about it."""
    if problem.severity == "error":
        return False
    missing = problem.key[:1] == ("providers",) and problem.key[2:] == ("api_key",) and problem.message == "is missing"
    return missing or (unguarded and problem.key == ("server", "host"))


def _of_problem(problem: Problem) -> Finding:
    place = f"{problem.place}: " if problem.place else ""
    key = f"`{dotted(problem.key)}` " if problem.key else ""
    facts = {"key": dotted(problem.key) or None, "place": problem.place or None}
    state: State = "problem" if problem.severity == "error" else "warning"
    check = "variable" if problem.place.startswith("$") and not problem.key else "setting"
    return Finding(check, state, f"{place}{key}{problem.message}", problem.fix, facts)


def _open(reading: Reading) -> Iterator[Finding]:
    """Whoever reaches a gateway without keys spends its owner's money."""
    server = reading.config.server
    try:
        check_open(server, kept=False)
    except ConfigError as error:
        told, _, fix = error.message.partition(". ")
        remedy = fix[:1].lower() + fix[1:]
        yield Finding("open", "warning", f"{told}, unless the store has keys", remedy, {"host": server.host})


def _provider_keys(reading: Reading) -> Iterator[Finding]:
    names = [name for name, each in reading.config.providers.items() if (each.uses or name) != DEMO]
    for name in names:
        source = key_words(reading, name)
        facts = {"provider": name, "key": source}
        match source:
            case "missing":
                known = reading.known.get(name)
                variables = " or ".join(f"`{each}`" for each in known.key_variables) if known else ""
                remedy = f"set {variables}" if variables else f"set `providers.{name}.api_key`"
                yield Finding("provider_key", "warning", f"`{name}`: its key is missing", remedy, facts)
            case "none":
                yield Finding("provider_key", "ok", f"`{name}`: no key, and none is needed", "", facts)
            case _:
                yield Finding("provider_key", "ok", f"`{name}`: {_from(source)}", "", facts)
    if not names:
        words = "no provider key was found: only the built-in demo model answers"
        yield Finding("provider_key", "warning", words, "`isthmus init` sets a provider up", {"provider": None})


def _from(source: str) -> str:
    """`${DEEPSEEK_API_KEY}` is how a file refers to it."""
    if source.startswith("${") and source.endswith("}"):
        return f"key from the variable `{source[2:-1]}`"
    return {"in the file": "key in the configuration file", "given": "key from a flag"}.get(source, f"key: {source}")


def _own_keys(reading: Reading) -> Iterator[Finding]:
    server = reading.config.server
    count = len(server.api_keys)
    facts = {"api_keys": count, "admin_key": bool(server.admin_key)}
    asked = f"clients show one of {count} keys" if count > 1 else "clients show the key" if count else ""
    words = f"{asked} of `server.api_keys`" if count else "`server.api_keys` asks clients for no key"
    admin = "; an operator's key is set" if server.admin_key else ""
    yield Finding("gateway_keys", "ok", f"{words}{admin}", "", facts)
