"""Every page under `/ui`: who may see it, what stands in it, and what becomes of a mistake.

A handler makes the values of a template; `show` puts the frame around them. Whoever has to show a key first is sent
to the form, and back to where they wanted to go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.types import Receive, Scope, Send

from isthmus.config.load import Reading
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.ports.traces import TraceStore
from isthmus.server.bodies import BODY
from isthmus.server.callers import ADMIN, PAGE
from isthmus.server.deeds import note_deed
from isthmus.server.ended import Ended
from isthmus.server.exchange import exchange_of
from isthmus.server.http import header
from isthmus.server.options import ServerOptions, query, whole_number
from isthmus.server.readiness import Readiness
from isthmus.server.switches import CAPTURE
from isthmus.server.ui.access import Access, Viewer
from isthmus.server.ui.again import again_view
from isthmus.server.ui.catalogue import models_view, provider_view, providers_view, settings_view
from isthmus.server.ui.home import home_view
from isthmus.server.ui.keys import carry_out, keys_view
from isthmus.server.ui.live import Live
from isthmus.server.ui.overview import Remembered, overview_view
from isthmus.server.ui.play import plan_json, playground_view, send_request
from isthmus.server.ui.render import render, send_asset, send_away, send_page
from isthmus.server.ui.requests import request_view, requests_view
from isthmus.server.ui.usage import usage_csv, usage_view
from isthmus.server.usage import send_csv

Values = dict[str, Any]
View = Callable[["Look"], Awaitable[Values]]
MOST_MINUTES: Final = 24 * 60
"""Of full capture at a time."""
_MENU: Final = (
    ("home", "Home", PAGE),
    ("overview", "Overview", f"{PAGE}/overview"),
    ("requests", "Requests", f"{PAGE}/requests"),
    ("usage", "Usage", f"{PAGE}/usage"),
    ("playground", "Playground", f"{PAGE}/playground"),
    ("providers", "Providers", f"{PAGE}/providers"),
    ("models", "Models", f"{PAGE}/models"),
    ("keys", "Keys", f"{PAGE}/keys"),
    ("settings", "Settings", f"{PAGE}/settings"),
)


class Look:
    """One visitor at one page."""

    def __init__(self, pages: Pages, scope: Scope, visitor: Viewer) -> None:
        self.pages = pages
        self.gateway = pages.gateway
        self.options = pages.options
        self.traces = pages.traces
        self.readiness = pages.readiness
        self.reading = pages.reading
        self.scope = scope
        self.visitor = visitor
        self.asked = query(scope)

    @property
    def origin(self) -> str:
        """The address that this browser uses for us: what snippets should say."""
        return f"{self.scope.get('scheme', 'http')}://{header(self.scope, b'host')}{self.options.prefix}"


class Pages:
    def __init__(
        self,
        gateway: Gateway,
        options: ServerOptions,
        readiness: Readiness,
        *,
        create: Callable[[Scope, Receive, Send], Awaitable[None]],
    ) -> None:
        """`create` is what answers `/v1/responses`."""
        self.gateway = gateway
        self.options = options
        self.readiness = readiness
        self.reading: Reading | None = options.reading
        self.traces: TraceStore | None = gateway.tracing.store if gateway.tracing is not None else None
        self.create = create
        secret = gateway.settings.envelope_key
        self.access = Access(options.keys, local=options.local_only, secret=secret, ended=Ended(gateway.store))
        self.live = Live(self.traces)
        self.sums = Remembered()

    # ── pages ──────────────────────────────────────────────────────────────────────────────────────

    async def home(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "home", home_view)

    async def overview(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "overview", overview_view)

    async def requests(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = query(scope).get("id", "").strip()
        if wanted:  # somebody has it from a log, or from an answer
            await send_away(send, self.link(f"{PAGE}/requests/{quote(wanted, safe='')}"))
            return
        await self._page(scope, send, "requests", requests_view)

    async def usage(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "usage", usage_view)

    async def usage_csv(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_csv(send, await usage_csv(Look(self, scope, await self._visitor(scope))))

    async def request(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "requests", request_view, "request")

    async def replay(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "requests", again_view, "replay")

    async def playground(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "playground", playground_view)

    async def providers(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "providers", providers_view)

    async def provider(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "providers", provider_view, "provider")

    async def models(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "models", models_view)

    async def keys(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "keys", keys_view)

    async def change_keys(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make, rotate or revoke a key; a new one stands on the page that answers."""
        visitor, given = await self._visitor(scope), _fields(scope)
        self.access.check_form(scope, visitor, given.get("token", ""))
        look, made, problem = Look(self, scope, visitor), None, ""
        try:
            made = await carry_out(look, given)
        except RequestRefused as error:
            if error.code == "operator_only":
                raise
            exchange_of(scope).failure, problem = error, error.message
        if made is None and not problem:
            await send_away(send, self.link(f"{PAGE}/keys"))
            return

        async def view(look: Look) -> Values:
            return await keys_view(look, made, problem)

        await self._page(scope, send, "keys", view, visitor=visitor)

    async def settings(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._page(scope, send, "settings", settings_view)

    async def asset(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not await send_asset(scope, send, scope["path_params"]["name"]):
            raise RequestRefused("there is no such file", code="not_found")

    async def capture(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Switch full capture on for some minutes, or off."""
        visitor, given = await self._visitor(scope), _fields(scope)
        self.access.check_form(scope, visitor, given.get("token", ""))
        tracing = self.gateway.tracing
        if not visitor.operates or tracing is None:
            raise RequestRefused(
                "only the operator switches capture, and only where traces are kept", code="operator_only"
            )
        minutes = whole_number(given, "minutes", default=0, low=0, high=MOST_MINUTES)
        who, told = visitor.caller.key, {"seconds": minutes * 60}
        await note_deed(scope, self.gateway, self.options, CAPTURE, actor=who, details=told)
        tracing.capture_all(minutes * 60.0)
        await send_away(send, self.link(f"{PAGE}/settings"))

    # ── coming and going ───────────────────────────────────────────────────────────────────────────

    async def login(self, scope: Scope, receive: Receive, send: Send) -> None:
        if await self.access.visitor(scope) is not None:
            await send_away(send, self.link(PAGE))
            return
        await self._form(scope, send, "")

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = _fields(scope)
        try:
            self.access.check_form(scope, None, given.get("token", ""))
            cookie = self.access.enter(given.get("key", ""), exchange_of(scope).peer, secure=_secure(scope))
        except IsthmusError as error:
            exchange_of(scope).failure = error
            await self._form(scope, send, error.message, error.meaning.status, given.get("next", ""))
            return
        entered = self.options.keys.find(given.get("key", ""))
        if entered is not None and entered.scopes >= ADMIN:
            await note_deed(scope, self.gateway, self.options, "page.enter", actor=entered.key)
        await send_away(send, self.link(_inside(given.get("next", ""))), {"set-cookie": cookie})

    async def leave(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = await self._visitor(scope)
        self.access.check_form(scope, visitor, _fields(scope).get("token", ""))
        cookie = await self.access.leave(visitor, secure=_secure(scope))
        await send_away(send, self.link(f"{PAGE}/login"), {"set-cookie": cookie})

    async def _form(self, scope: Scope, send: Send, problem: str, status: int = 200, next: str | None = None) -> None:
        wanted = query(scope).get("next", "") if next is None else next
        values = {"problem": problem, "next": _inside(wanted), "needed": self.options.keys.needed}
        await send_page(send, self._render("login", scope, None, "login", values), status=status)

    # ── what scripts ask for ───────────────────────────────────────────────────────────────────────

    async def follow(self, scope: Scope, receive: Receive, send: Send) -> None:
        """New requests as they end, as rows of the list."""
        visitor = await self._visitor(scope)
        await self.live.serve(Look(self, scope, visitor), receive, send)

    async def plan(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = await self._visitor(scope)
        self.access.check_form(scope, visitor, header(scope, b"x-isthmus-token"))
        await plan_json(Look(self, scope, visitor), send)

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = await self._visitor(scope)
        self.access.check_form(scope, visitor, header(scope, b"x-isthmus-token"))
        await send_request(Look(self, scope, visitor), receive, send)

    # ── the frame ──────────────────────────────────────────────────────────────────────────────────

    async def _page(
        self, scope: Scope, send: Send, name: str, view: View, template: str = "", visitor: Viewer | None = None
    ) -> None:
        """`visitor`: who it was when they asked, where that has changed since."""
        try:
            visitor = visitor or await self.access.visitor(scope)
            if visitor is None:
                asked = scope["query_string"].decode("latin-1")
                at = quote(scope["path"] + (f"?{asked}" if asked else ""))
                await send_away(send, self.link(f"{PAGE}/login?next={at}"))
                return
            values, status, shown = await view(Look(self, scope, visitor)), 200, template or name
        except IsthmusError as error:
            exchange_of(scope).failure = error
            values, status, shown = {"error": error}, error.meaning.status, "error"
        # A large page is put together aside: streams go on meanwhile.
        page = await asyncio.to_thread(self._render, name, scope, visitor, shown, values)
        await send_page(send, page, status=status)

    def _render(self, name: str, scope: Scope, visitor: Viewer | None, template: str, values: Values) -> bytes:
        frame = {
            "at": name,
            "menu": _MENU if visitor is not None else (),
            "visitor": visitor,
            "token": self.access.token(visitor),
            "link": self.link,
            "tracing": self.traces is not None,
            "path": scope["path"],
        }
        return render(f"{template}.html", **frame, **values)

    async def _visitor(self, scope: Scope) -> Viewer:
        visitor = await self.access.visitor(scope)
        if visitor is None:
            raise RequestRefused("show a key first: open the page again", code="missing_api_key")
        return visitor

    def link(self, path: str) -> str:
        return self.options.prefix + path


def _fields(scope: Scope) -> dict[str, str]:
    """Of a form that was sent."""
    body: bytes = bytes(scope[BODY])
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50))
    except ValueError as error:
        raise RequestRefused(f"the form cannot be read: {error}") from error


def _inside(path: str) -> str:
    """A page of ours to go on to; anything else is not gone to."""
    parts = urlsplit(path)
    ours = not parts.scheme and not parts.netloc and (parts.path == PAGE or parts.path.startswith(f"{PAGE}/"))
    return path if ours and "\\" not in path else PAGE


def _secure(scope: Scope) -> bool:
    return scope.get("scheme") == "https"
