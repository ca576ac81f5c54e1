"""`isthmus explain resp_…`: what was decided about a request that was made, and what was really sent.

In: an id, and what is kept of it. Out: the decisions and both sides as the trace has them. Where only hashes were kept,
the request is planned again, and the body is shown as what was sent if every hash agrees. Of a response without a
trace, what would be decided today.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer

from isthmus.cli.explain_view import show_explained
from isthmus.cli.json_view import JsonView
from isthmus.cli.kept import Kept
from isthmus.cli.replay import plan_again
from isthmus.cli.terminal import heading, open_console, print_json, size, words
from isthmus.cli.trace_source import LAST
from isthmus.cli.trace_view import show_trace
from isthmus.errors import ConfigError, IsthmusError
from isthmus.observe.sent import Origin, content_of, origin_of, sent_bytes
from isthmus.ports.traces import Trace
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


def explain_kept(kept: Kept, config: Config, *, full: bool, body_only: bool, as_json: bool) -> None:
    explained = _plan(kept, config)
    raw, origin = _body(kept, explained)
    if body_only:
        if raw is None:
            raise ConfigError(kept.missing or f"what was sent upstream for `{kept.id}` is not known")
        if origin != "sent":
            typer.echo(_NOTES[origin], err=True)
        typer.echo(raw if as_json else msgspec.json.format(raw, indent=2))
    elif as_json:
        print_json(_as_json(kept, explained, raw, origin))
    elif kept.trace is not None:
        _show(kept, kept.trace, raw, origin, full=full)
    elif explained is not None:
        console = open_console()
        console.print(words("no trace was kept; this is what would be decided today", "yellow"))
        show_explained(console, explained, title=explained.target.capabilities.provider, source=kept.id, full=full)
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


def _show(kept: Kept, trace: Trace, raw: bytes | None, origin: Origin, *, full: bool) -> None:
    console = open_console()
    show_trace(console, trace, full=full, plan_only=True)
    if raw is None or origin == "sent":
        return
    heading(console, "Upstream body", f"{size(len(raw))}, {_NOTES[origin]}")
    console.print(JsonView(console.width, full=full).render(msgspec.json.decode(raw)), soft_wrap=True)


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
