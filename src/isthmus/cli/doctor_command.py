"""`isthmus doctor`: look at everything, say what is wrong and what to do.

Findings go to stdout, the line that tells what is being looked at to stderr. Exit code 0: nothing is wrong, warnings or
not; 1: there is a problem (or a warning, with `--strict`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isthmus.cli.elsewhere import KeyEnvOption, KeyOption, ShownKey, take_key
from isthmus.cli.help_view import examples
from isthmus.cli.terminal import open_console, print_json
from isthmus.errors import ConfigError

if TYPE_CHECKING:
    from isthmus.cli.doctor.finding import Area, Looked
    from isthmus.config.load import Reading
    from isthmus.scrub import Scrubber


@examples(
    "isthmus doctor",
    "isthmus doctor --offline --strict",
    "isthmus doctor --gateway https://isthmus.example --key-env ISTHMUS_KEY",
    "isthmus doctor --json",
)
def doctor(
    gateway: Annotated[str | None, typer.Option("--gateway", "--url", help="Look at a gateway elsewhere, too.")] = None,
    key: KeyOption = None,
    key_env: KeyEnvOption = None,
    offline: Annotated[bool, typer.Option("--offline", help="Send no request to anybody.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for a warning, too.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds for each check.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Config file (TOML).")] = None,
) -> None:
    """Look at configuration, keys, providers, port, store, coding agents and versions, and say what to do.

    Exit code 0: nothing is wrong. 1: there is a problem.
    """
    from isthmus.cli.doctor.look import look_at_all
    from isthmus.cli.doctor.view import count, findings_json, show_findings
    from isthmus.cli.doctor.waiting import waiting_line

    shown = take_key(key, key_env) if gateway else ShownKey()
    areas, scrubber = _areas(config, gateway, shown, timeout, offline=offline)
    with waiting_line([area.name for area in areas], silent=as_json) as ended:
        found = asyncio.run(look_at_all(areas, 2 * timeout, ended))
    found = [_scrubbed(looked, scrubber) for looked in found]
    if as_json:
        print_json(findings_json(found))
    else:
        show_findings(open_console(), found)
    counted = count(found)
    if counted["problem"] or (strict and counted["warning"]):
        raise typer.Exit(1)


def _areas(
    config: Path | None, gateway: str | None, key: ShownKey, timeout: float, *, offline: bool
) -> tuple[Sequence[Area], Scrubber]:
    """In the order in which they are shown: what depends on the configuration follows it."""
    from isthmus.cli.doctor import claude, codex
    from isthmus.cli.doctor.finding import Area, Finding
    from isthmus.cli.doctor.gateways import look_elsewhere
    from isthmus.cli.doctor.installed import look_at_limits, look_at_versions
    from isthmus.cli.doctor.settings import look_at_keys, look_at_settings, unreadable
    from isthmus.config import read_config
    from isthmus.scrub import Scrubber, Secret
    from isthmus.server.listen import public_url
    from isthmus.wiring_notice import read_noticed

    reading: Reading | None = None
    areas = [Area("versions", look_at_versions)]
    try:
        reading = read_config(config) if offline else read_noticed(config)
    except ConfigError as error:
        broken = unreadable(error)
        areas.append(Area("configuration", lambda: broken))
    secrets = [Secret(each, "key") for each in (key.value, *codex.secrets(), *claude.secrets()) if each]
    if reading is not None:
        from isthmus.cli.doctor.listening import look_at_port
        from isthmus.cli.doctor.providers import look_at_providers
        from isthmus.cli.doctor.stores import look_at_store, look_at_traces
        from isthmus.config.secrets import configured_secrets

        settings = reading.config
        secrets += configured_secrets(settings)
        areas += [
            Area("configuration", partial(look_at_settings, reading)),
            Area("keys", partial(look_at_keys, reading)),
            Area("providers", partial(look_at_providers, reading, timeout, offline=offline)),
            Area("port", partial(look_at_port, settings.server, timeout, offline=offline)),
            Area("store", partial(look_at_store, settings, offline=offline)),
            Area("traces", partial(look_at_traces, settings)),
            Area("limits", partial(look_at_limits, settings)),
        ]
    own = None if reading is None else public_url(reading.config.server)
    areas.append(Area("codex", partial(codex.look_at_codex, timeout, offline=offline, own=own)))
    areas.append(Area("claude code", partial(claude.look_at_claude, timeout, offline=offline, own=own)))
    if gateway and offline:
        skipped = [Finding("gateway", "skipped", f"`{gateway}` was not asked")]
        areas.append(Area("gateway", lambda: skipped))
    elif gateway:
        areas.append(Area("gateway", partial(look_elsewhere, gateway, key, timeout)))
    return areas, Scrubber().and_also(secrets)


def _scrubbed(looked: Looked, scrubber: Scrubber) -> Looked:
    """No word of a server, a library or a file shows a key."""
    findings = [
        replace(
            each,
            told=scrubber.text(each.told),
            remedy=scrubber.text(each.remedy),
            facts=scrubber.json(dict(each.facts)),
        )
        for each in looked.findings
    ]
    return replace(looked, findings=findings)
