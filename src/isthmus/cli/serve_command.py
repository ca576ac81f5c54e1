"""`isthmus serve`: start the gateway, say where it is and what to try."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isthmus import __version__
from isthmus.cli.plain_options import Option, taking
from isthmus.log import JsonFormatter, Scrubbed, TextFormatter, tell
from isthmus.observe.outlet import Outlet
from isthmus.scrub import Scrub, Scrubber, Secret, unscrubbed
from isthmus.values.problems import Problem, dotted
from isthmus.values.redact import redact_url

log = logging.getLogger("isthmus.cli")

if TYPE_CHECKING:  # it takes half a second to load
    from isthmus.config.load import Reading
    from isthmus.config.schema import Config
    from isthmus.gateway.gateway import Gateway
    from isthmus.wiring_notice import Noticing


OPTIONS: Final = {
    "config": Option(Path, "Config file (TOML).", "FILE"),
    "host": Option(str, "Address to listen on."),
    "port": Option(int, "Port to listen on; 0 takes a free one.", "N"),
    "store": Option(str, "`sqlite:PATH`, `memory:`, `postgresql://…`.", "URL"),
    "model": Option(str, "Default model, `provider/model`."),
    "strict": Option(bool, "Reject instead of degrading."),
    "log_level": Option(str, "debug, info, warning or error.", "LEVEL"),
    "workers": Option(int, "Processes that serve together.", "N"),
}


@taking(
    OPTIONS,
    "isthmus serve",
    "isthmus serve --port 9000 --model deepseek/deepseek-v4-pro",
    "isthmus serve --config isthmus.toml --workers 4",
)
def serve(
    config: Path | None = None,
    host: str | None = None,
    port: int | None = None,
    store: str | None = None,
    model: str | None = None,
    strict: bool | None = None,
    log_level: str | None = None,
    workers: int | None = None,
) -> None:
    """Start the gateway."""
    from isthmus.config import load_config
    from isthmus.config.secrets import configured_secrets
    from isthmus.observe.memory import search_seldom
    from isthmus.server.post import take_post
    from isthmus.server.serve import serve as run_server
    from isthmus.wiring_notice import Noticing

    post = take_post(os.environ)  # first: to the configuration it would be a misspelt setting
    flags = {
        "server.host": host,
        "server.port": port,
        "store.url": store,
        "models.default": model,
        "plan.strict": strict,
        "log.level": log_level,
        "server.workers": workers,
    }
    reading = load_config(config, overrides=flags)
    settings, hidden = reading.config, Hidden()
    hidden.learn(configured_secrets(settings))
    set_up_logging(settings.log.level, settings.log.format, hidden.text)

    noticing = Noticing(reading)

    def read() -> Reading:
        again = load_config(config, overrides=flags, noticed=noticing.counted)
        hidden.learn(configured_secrets(again.config))  # before anything can be told of them
        noticing.adopt(again)
        return again

    if post is None:
        tell_warnings(reading.warnings)
        if settings.server.workers > 1:
            search_seldom()
            _supervise(settings, read)
            return

    telling: set[asyncio.Task[None]] = set()

    def started(address: str, gateway: Gateway) -> None:
        search_seldom()
        if post is None:
            _say(f"Isthmus {__version__} is listening on {address}")
            telling.add(asyncio.ensure_future(_tell_rest(address, gateway, noticing)))

    def waiting(gateway: Gateway) -> None:
        _say(waiting_words(len(gateway.runs), settings.server.grace))

    _run(
        run_server(settings, started=started, waiting=waiting, post=post, reading=reading, read=read, noticing=noticing)
    )


async def _tell_rest(address: str, gateway: Gateway, noticing: Noticing) -> None:
    """What it serves with: it takes a moment to look, and the gateway serves meanwhile."""
    from isthmus.cli.serve_table import look_at_providers, table

    settings = noticing.config
    seen = {name: models for name, models in noticing.listed.items() if name in noticing.counted}
    rows = await look_at_providers(gateway, settings, seen)
    _say(banner(address, settings.models.default, table(rows, _width()), settings.store.url, settings.server.workers))


class Hidden:
    """The secrets that no line of the log shows; what was one once stays one."""

    def __init__(self) -> None:
        self._scrubber = Scrubber()

    def learn(self, secrets: Iterable[Secret]) -> None:
        self._scrubber = self._scrubber.and_also(secrets)

    def text(self, text: str) -> str:
        return self._scrubber.text(text)


def _supervise(settings: Config, read: Callable[[], Reading]) -> None:
    from isthmus.server.supervise import Failed, check_workers, supervise

    check_workers(settings)
    command = [sys.executable, "-m", "isthmus", *sys.argv[1:]]
    try:
        asyncio.run(supervise(settings, command, lambda address: _say(_banner_of(settings, address)), read))
    except Failed as failed:
        sys.exit(failed.code if failed.code > 0 else 1)


def _banner_of(settings: Config, address: str) -> str:
    """For several workers, of which none speaks for all."""
    server, providers = settings.server, f"  providers       {', '.join(settings.providers)}"
    rest = banner(address, settings.models.default, [providers], settings.store.url, server.workers)
    return f"Isthmus {__version__} is listening on {address}\n{rest}"


def _width() -> int:
    import shutil

    return max(shutil.get_terminal_size((80, 24)).columns, 60)


def _say(words: str) -> None:
    with suppress(OSError):  # nobody can read it: the gateway serves all the same
        print(words, file=sys.stderr, flush=True)


def waiting_words(running: int, grace: float) -> str:
    """What the end waits for: whoever pressed Ctrl-C wants to know, and how to have it sooner."""
    ones = "1 response" if running == 1 else f"{running} responses"
    return f"Waiting for {ones} to end, {grace:g} s at the longest. Press Ctrl-C again to end at once."


def tell_warnings(warnings: Iterable[Problem]) -> None:
    """What `isthmus config check` would warn of: a misspelt variable changes nothing, and nobody would notice."""
    for problem in warnings:
        told = f"{dotted(problem.key)} {problem.message}".strip()
        tell(log, "warning", "config.warning", at=problem.place or None, problem=told, fix=problem.fix)


def banner(address: str, default: str, providers: list[str], store: str, workers: int = 1) -> str:
    """What follows the line that says where it listens; `providers` are lines."""
    url, option = address, ""
    if address.startswith("unix:"):
        url, option = "http://localhost", f"--unix-socket {address.removeprefix('unix:')} "
    url = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")  # nobody can ask "everywhere"
    demo = default.startswith("demo/")
    lines = [
        "",
        f"  default model   {default or 'none: every request has to name one'}",
        f"  store           {redact_url(store)}",
        *([f"  workers         {workers}"] if workers > 1 else []),
        "",
        *providers,
        "",
        "  Try it:",
        f"    curl {option}{url}/v1/responses \\",
        "      -H 'content-type: application/json' \\",
        '      -d \'{"input": "Say hello"}\'',
    ]
    if demo:
        lines += [
            "",
            "  No provider key was found: the built-in demo model answers.",
            "  `isthmus init` sets up another.",
        ]
    return "\n".join(lines)


def set_up_logging(level: str, format: str, scrub: Scrub = unscrubbed) -> None:
    formatter = Scrubbed(JsonFormatter() if format == "json" else TextFormatter(), scrub)
    handler, others = Outlet(sys.stderr), Outlet(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger("isthmus")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
    # What libraries warn of is told in the same way, and its failure as little.
    others.setFormatter(formatter)
    others.setLevel(logging.WARNING)
    logging.lastResort = others


def _run(main: object) -> None:
    try:
        import uvloop
    except ImportError:  # Windows has none
        asyncio.run(main)  # type: ignore[arg-type]
    else:
        uvloop.run(main)  # type: ignore[arg-type]
