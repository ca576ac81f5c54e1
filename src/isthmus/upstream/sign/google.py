"""Google's access tokens: fetched with the application's default credentials, and kept fresh in the background.

In: a scope. Out: `authorization: Bearer …`. google-auth knows all the ways to a token (a service account's file, the
login of gcloud, workload identity, the metadata server) and is written for threads; it runs in one, and what it wants
of the network goes over our own wire, with its proxies and limits. Worth knowing: a token that is about to expire is
still used while the next one is fetched, so a request waits only for the first one, or for one after a long silence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.log import tell
from isthmus.scrub import Secret
from isthmus.upstream.sign import CannotSign, Fetch

log: Final = logging.getLogger("isthmus.upstream")

_LOGIN: Final = "run `gcloud auth application-default login`, or set `GOOGLE_APPLICATION_CREDENTIALS` to a key file"


class GoogleSigner:
    """One set of credentials, one token at a time."""

    def __init__(self, provider: str, scope: str, fetch: Fetch, wait: float) -> None:
        """`wait`: how long fetching a token may take."""
        self._provider = provider
        self._scope = scope
        self._fetch = fetch
        self._wait = wait
        self._credentials: Any = None
        self._refreshing: asyncio.Task[None] | None = None

    @property
    def secrets(self) -> Sequence[Secret]:
        token = self._credentials.token if self._credentials is not None else None
        return (Secret(token, "authorization"),) if token else ()

    async def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        state = self._credentials.token_state.name if self._credentials is not None else "INVALID"
        if state != "FRESH":
            refreshing = self._begin()
            if state == "INVALID":
                await self._wait_for(refreshing)
        return {"authorization": f"Bearer {self._credentials.token}"}

    async def aclose(self) -> None:
        task, self._refreshing = self._refreshing, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=self._wait)

    def _begin(self) -> asyncio.Task[None]:
        """The one refresh that is under way: requests share it."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name=f"refresh the token of {self._provider}")
            self._refreshing.add_done_callback(self._tell)
        return self._refreshing

    async def _wait_for(self, refreshing: asyncio.Task[None]) -> None:
        try:
            async with asyncio.timeout(self._wait):
                await asyncio.shield(refreshing)  # others wait for it too
        except TimeoutError:
            words = f"was not asked: Google gave no token within {self._wait:g} s; see `timeouts.connect`"
            raise CannotSign(words, "upstream_timeout") from None

    async def _refresh(self) -> None:
        await asyncio.to_thread(self._refresh_in_thread, asyncio.get_running_loop())

    def _refresh_in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        import google.auth
        from google.auth import exceptions

        transport = _transport(self._fetch, loop, self._wait)
        try:
            if self._credentials is None:
                found, _ = google.auth.default(scopes=[self._scope], request=transport)
                found.refresh(transport)
                self._credentials = found
            else:
                self._credentials.refresh(transport)
        except exceptions.DefaultCredentialsError:
            raise CannotSign(f"was not asked: there are no Google credentials; {_LOGIN}") from None
        except exceptions.TransportError:
            words = "was not asked: Google's token server cannot be reached"
            raise CannotSign(words, "upstream_unreachable") from None
        except (exceptions.GoogleAuthError, ValueError) as error:  # the latter: a key file that holds no key
            # Its first argument is a sentence; what follows may be the whole answer.
            told = str(error.args[0]) if error.args else type(error).__name__
            raise CannotSign(f"was not asked: Google refuses a token: {told[:300]}; {_LOGIN}") from None

    def _tell(self, task: asyncio.Task[None]) -> None:
        """A refresh in the background has nobody who waits for its error: the old token may still do for a while."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            reason = error.words if isinstance(error, CannotSign) else type(error).__name__
            tell(log, "warning", "provider.token.failed", provider=self._provider, reason=reason)


def open_google(provider: str, scope: str, fetch: Fetch, wait: float) -> GoogleSigner:
    if find_spec("google") is None or find_spec("google.auth") is None:
        raise ConfigError(
            f"provider `{provider}` is asked with Google's tokens, and the package for them is missing; "
            "run `pip install 'isthmus[vertex]'`",
            param=f"providers.{provider}",
        )
    return GoogleSigner(provider, scope, fetch, wait)


def _transport(fetch: Fetch, loop: asyncio.AbstractEventLoop, wait: float) -> Callable[..., _Answer]:
    """google-auth's way out, from its thread into our loop."""
    from google.auth.exceptions import TransportError

    def request(
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> _Answer:
        data = body.encode() if isinstance(body, str) else body
        asked = asyncio.run_coroutine_threadsafe(fetch(method, url, headers or {}, data), loop)
        try:
            return _Answer(*asked.result(min(timeout or wait, wait)))
        except (UpstreamFailed, TimeoutError) as error:
            asked.cancel()
            raise TransportError("the token server cannot be reached") from error

    return request


@dataclass(frozen=True, slots=True)
class _Answer:
    """What google-auth wants of an answer."""

    status: int
    headers: Mapping[str, str]
    data: bytes
