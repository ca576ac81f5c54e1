"""Every way out of a gateway, one row each: what leads there, and how a test has it go to an address.

A new way is a new row; `test_ways_out.py` asks all of them the same questions, and finds a module that opens a way and
has no row. `go` gives the refusal in words, or nothing where the address was called: where the operator's configuration
is what names the address, its check is a part of the way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from httpx2 import InvalidURL
from mcp.shared._httpx_utils import request_within_origin

from isthmus.bridge.tools.mcp_rules import McpRule
from isthmus.config.check_webhooks import check_webhooks
from isthmus.config.schema import WebhookEndpoint, Webhooks
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.ports import Notice
from isthmus.tools.mcp_session import Http
from isthmus.upstream.mcp.host import McpHost, Server
from isthmus.upstream.mcp.sessions import Sessions
from isthmus.upstream.search.extract import run_encoded
from isthmus.upstream.search.pages import PageRules, Pages
from isthmus.upstream.visit import Visitor
from isthmus.upstream.webhook import WebhookMessenger

KEY: Final = b"the key of the receiver, long enough"


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    """As `docs/concepts/ways-out.md` calls it."""
    modules: tuple[str, ...]
    """Whose files open it."""
    go: Callable[[str], Awaitable[str]]
    redirects: Literal["never", "checked"] = "never"
    """Whether it follows one: never, or after it was looked at like the first address."""
    plain: bool = False
    """Whether it also speaks http, at its usual port."""


async def _webhook(url: str) -> str:
    """The operator has named a host of the same name, and allowed it: nothing but its address is in the way."""
    settings = Webhooks(
        allowed_hosts=[_host_in(url) or "x"], endpoints={"hook": WebhookEndpoint(url=url, secret=KEY.decode())}
    )
    problems = [problem for problem in check_webhooks(settings) if problem.severity == "error"]
    if problems:
        return problems[0].message
    made = WebhookMessenger("hook", url, [KEY], timeout=20.0, at_once=1)
    try:
        refused = await made.send(Notice("wh_1", "hook", "response.completed", "resp_1", b"{}"))
        return "" if refused is None else refused.reason
    finally:
        await made.aclose()


async def _image(url: str) -> str:
    """A provider that answers with the address of an image in place of the image."""
    visitor = Visitor("the image", timeout=20.0, at_once=1)
    try:
        await visitor.fetch(url, most=1000)
    except UpstreamFailed as failure:
        return failure.message
    finally:
        await visitor.aclose()
    return ""


class _InThisProcess:
    async def run(self, kind: str, payload: bytes) -> bytes:
        return run_encoded(payload)


async def _page(url: str) -> str:
    """A model that names a page."""
    pages = Pages(_InThisProcess(), PageRules(timeout=20.0))
    try:
        await pages.open(url)
    except UpstreamFailed as failure:
        # What the public host of the test says is no page; it was called all the same.
        return "" if failure.message.endswith("which is no text") else failure.message
    finally:
        await pages.aclose()
    return ""


async def _mcp(url: str) -> str:
    """A client that names an MCP server (`server_url`), on a host that the operator has named for that."""
    server = Server(McpRule("hosts", allowed_hosts=(_host_in(url) or "x",)))
    sessions = Sessions({"hosts": server.bounds})
    try:
        place = McpHost({"hosts": server}, sessions).find({"type": "mcp", "server_url": url}).place
    except RequestRefused as refused:
        return refused.message
    target = sessions._prepare(place)._target
    assert isinstance(target, Http)
    assert target.way is not None
    async with target.way(target.headers) as client:
        try:
            answer = await request_within_origin(client, "POST", target.url, json={})  # as the SDK asks, once
        except InvalidURL as error:
            return str(error)
    if answer.is_success:
        return ""
    return "sent elsewhere" if answer.is_redirect else str(answer.json()["error"]["message"])


def _host_in(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


WAYS: Final = (
    Way("webhooks", ("upstream/webhook.py",), _webhook),
    Way("MCP servers", ("upstream/mcp/sessions.py",), _mcp),
    Way("images", ("upstream/visit.py", "wiring_images.py"), _image, redirects="checked"),
    Way("pages", ("upstream/search/pages.py",), _page, redirects="checked", plain=True),
)
