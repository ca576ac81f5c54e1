"""Every way out of a gateway, one row each: what leads there, and how a test has it go to an address.

A new way is a new row; `test_ways_out.py` asks all of them the same questions, and finds a module that opens a way and
has no row. `go` gives the refusal in words, or nothing where the address was called: where the operator's configuration
is what names the address, its check is a part of the way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from isthmus.config.check_webhooks import check_webhooks
from isthmus.config.schema import WebhookEndpoint, Webhooks
from isthmus.errors import UpstreamFailed
from isthmus.ports import Notice
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


async def _webhook(url: str) -> str:
    """The operator has named a host of the same name, and allowed it: nothing but its address is in the way."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
    settings = Webhooks(allowed_hosts=[host or "x"], endpoints={"hook": WebhookEndpoint(url=url, secret=KEY.decode())})
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


WAYS: Final = (
    Way("webhooks", ("upstream/webhook.py",), _webhook),
    Way("images", ("upstream/visit.py", "wiring_images.py"), _image, redirects="checked"),
)
