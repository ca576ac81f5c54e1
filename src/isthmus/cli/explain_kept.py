"""`isthmus explain resp_…`: what was decided about a request that was made, and what was really sent.

In: an id, and what is kept of it. Out: the decisions and both sides as the trace has them. Where only hashes were kept,
the request is planned again, and the body is shown as what was sent if every hash agrees. Of a response without a
trace, what would be decided today.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer

from isthmus.cli.explain_view import show_body, show_explained
from isthmus.cli.kept import Kept
from isthmus.cli.replay import plan_again
from isthmus.cli.terminal import heading, open_console, print_json, words
from isthmus.cli.trace_source import LAST
from isthmus.cli.trace_view import show_head, show_plan
from isthmus.errors import ConfigError, IsthmusError
from isthmus.observe.sent import Origin, content_of, origin_of, sent_bytes
from isthmus.ports.traced import Trace
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.cli.explain_plan import Explained
    from isthmus.config.schema import Config

_ID: Final = re.compile(r"(resp|req|emb|img|chatcmpl|cmpl|msg)[_-][A-Za-z0-9_-]{6,}")
_NOTES: Final[dict[Origin, str]] = {
    "sent": "as it was sent",
    "proven": "planned again: every part has the hash of what was sent",
    "planned": "planned again, as it would be sent today; what was sent then is not known",
}


def is_id(request: str) -> bool:
    """Whether the argument is the name of something that was asked, rather than of a file."""
    return request == LAST or _ID.fullmatch(request) is not None


@dataclass(frozen=True, slots=True)
class Shown:
    """How much is shown, and for whom."""

    body: bool
    full: bool
    body_only: bool
    as_json: bool


def explain_kept(kept: Kept, config: Config, shown: Shown) -> None:
    explained = _plan(kept, config)
    raw, origin = _body(kept, explained)
    if shown.body_only:
        if raw is None:
            raise ConfigError(kept.missing or f"what was sent upstream for `{kept.id}` is not known")
        if origin != "sent":
            typer.echo(_NOTES[origin], err=True)
        typer.echo(raw if shown.as_json else msgspec.json.format(raw, indent=2))
    elif shown.as_json:
        print_json(_as_json(kept, explained, raw, origin))
    elif kept.trace is not None:
        _show(kept.trace, raw, origin, shown)
    elif explained is not None:
        console, title = open_console(), explained.target.capabilities.provider
        show_explained(console, explained, title=title, source=kept.id, full=shown.full, body=shown.body)
        console.print(words("no trace was kept; this is what would be decided today", "yellow"))
    else:
        raise ConfigError(kept.missing)


def _plan(kept: Kept, config: Config) -> Explained | None:
    """Made again where its body is not kept; `None`: there is nothing to make it from."""
    if kept.request is None or (kept.trace is not None and sent_bytes(kept.trace) is not None):
        return None
    with suppress(IsthmusError):  # its provider may not be known here any more
        return plan_again(kept, config)
    return None


def _body(kept: Kept, explained: Explained | None) -> tuple[bytes | None, Origin]:
    kept_body = None if kept.trace is None else sent_bytes(kept.trace)
    if kept_body is not None:
        return kept_body, "sent"
    if explained is None or explained.plan is None:
        return None, "planned"
    return msgspec.json.encode(explained.body), origin_of(kept.trace, explained.plan.body, kept.envelope_key)


def _show(trace: Trace, raw: bytes | None, origin: Origin, shown: Shown) -> None:
    console = open_console()
    show_plan(console, trace, full=shown.full, body=shown.body)
    if raw is not None and origin != "sent" and shown.body:
        show_body(console, msgspec.json.decode(raw), full=shown.full, note=f", {_NOTES[origin]}")
    heading(console, "In short", "" if raw is None or shown.body else "`--body` shows what was sent upstream")
    show_head(console, trace)


def _as_json(kept: Kept, explained: Explained | None, raw: bytes | None, origin: Origin) -> JsonObject:
    shown: dict[str, Any] = {"id": kept.id, "provider": kept.provider, "model": kept.model}
    if kept.trace is not None:
        trace = kept.trace
        request = content_of(trace.request)
        shown |= {
            "decisions": trace.decisions,
            "diagnostics": trace.diagnostics,
            "request": request if request is not None else kept.request,
            "request_kept": request is not None,
            "calls": trace.calls,
        }
    elif explained is not None:
        told = explained.to_json()
        shown |= {"decisions": told["decisions"], "diagnostics": told["diagnostics"], "request": kept.request}
    return {**shown, "body": None if raw is None else msgspec.Raw(raw), "body_origin": None if raw is None else origin}
