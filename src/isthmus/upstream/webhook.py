"""The way to a receiver of webhooks: a signed POST, to nobody but the host that the operator has named.

In: a notice. Out: `None` if it was taken (2xx), or why not. Worth knowing: the signature is that of Standard Webhooks,
made anew for each attempt, so that its time is never older than the attempt; the body and the `webhook-id` stay. A
redirect is not followed, and nothing of an answer is read but its status: a receiver has nothing to tell us. No proxy
takes part, because the address that was looked at must be the one that is connected to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from standardwebhooks import Webhook

from isthmus.addresses import is_public
from isthmus.errors import UpstreamFailed
from isthmus.ports import Notice, Refused
from isthmus.scrub import Secret
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.guard import Lookup
from isthmus.upstream.wire import Wire

USER_AGENT: Final = "isthmus (webhooks)"
_GONE: Final = 410
"""It wants no more of this, by HTTP's own words."""


class WebhookMessenger:
    def __init__(
        self,
        name: str,
        url: str,
        keys: Sequence[bytes],
        *,
        timeout: float,
        at_once: int,
        anywhere: bool = False,
        more_secrets: Sequence[Secret] = (),
        lookup: Lookup | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`keys`: what is signed with, the newest first. `anywhere`: its host may lead into a private network."""
        self._signers = [Webhook(key) for key in keys]
        self._now = now
        endpoint = Endpoint(
            provider=name,
            called=f"receiver `{name}`",
            url=url,
            headers={"user-agent": USER_AGENT, "accept-encoding": "identity"},
            trust_env=False,
            max_connections=at_once,
            patience=Patience(connect=timeout, first_byte=timeout, idle=timeout),
            allows=None if anywhere else is_public,
            lookup=lookup,
        )
        self._wire = Wire(endpoint, more_secrets)

    async def send(self, notice: Notice) -> Refused | None:
        try:
            answer = await self._wire.send(notice.body, headers=self._sign(notice))
        except UpstreamFailed as failure:
            return Refused(failure.message)
        try:
            if answer.ok:
                await answer.let_end()
                return None
            wait = answer.retry_after or 0.0
            return Refused(f"it answered HTTP {answer.status}", wait=wait, final=answer.status == _GONE)
        finally:
            answer.close()

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _sign(self, notice: Notice) -> dict[str, str]:
        at = datetime.fromtimestamp(int(self._now()), UTC)
        signatures = [signer.sign(notice.id, at, notice.body.decode()) for signer in self._signers]
        return {
            "webhook-id": notice.id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": " ".join(signatures),
        }
