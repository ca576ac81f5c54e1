"""One address for whichever app serves: connections outlive a configuration, and what comes next goes to the newest."""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.types import Receive, Scope, Send

from isthmus.server.app import App


class Board:
    def __init__(self, app: App) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self.app(scope, receive, send)
