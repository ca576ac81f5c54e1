"""Which AWS credentials there are: those in the environment, or what botocore finds (profiles, SSO, roles, containers).

In: the environment. Out: a function that finds `Credentials`, each time anew. Worth knowing: the environment needs no
package at all; everything else is botocore's business, which asks files and servers and waits for them, so it is asked
in a thread, and only when the credentials it gave are about to expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from isthmus.errors import ConfigError
from isthmus.scrub import Secret
from isthmus.upstream.sign import CannotSign

_VARIABLES: Final = "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        return Secret(self.secret_key, "secret_access_key"), Secret(self.token, "session_token")


class InEnvironment:
    """Credentials that do not change."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def __call__(self) -> Credentials:
        return self._credentials


class ByBotocore:
    """The chain that every AWS tool follows; opened when a request first needs it."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._found: Any = None

    async def __call__(self) -> Credentials:
        if self._found is None or self._is_old():
            try:
                async with asyncio.timeout(self._wait):
                    await asyncio.to_thread(self._refresh)
            except TimeoutError:
                words = f"was not asked: AWS gave no credentials within {self._wait:g} s; see `timeouts.connect`"
                raise CannotSign(words, "upstream_timeout") from None
        if self._found is None:
            ways = f"set {_VARIABLES}, or `AWS_PROFILE`, or sign in (`aws sso login`)"
            raise CannotSign(f"was not asked: there are no AWS credentials; {ways}")
        frozen = self._found.get_frozen_credentials()
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token or "")

    def _is_old(self) -> bool:
        needed = getattr(self._found, "refresh_needed", None)  # only those that expire have it
        return needed is not None and bool(needed())

    def _refresh(self) -> None:
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session

        try:
            found = self._found or Session().get_credentials()
            if found is not None:
                found.get_frozen_credentials()  # asks for new ones where these are old
        except BotoCoreError as error:  # its words name profiles, files and servers, never secrets
            raise CannotSign(f"was not asked: AWS credentials cannot be had: {error}") from None
        self._found = found


def find_credentials(provider: str, environ: Mapping[str, str], wait: float) -> InEnvironment | ByBotocore:
    """`wait`: how long finding them may take. `ConfigError` where nothing can ever be found."""
    access, secret, token = (
        environ.get(name, "").strip() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    )
    if access and secret:
        return InEnvironment(Credentials(access, secret, token))
    if find_spec("botocore") is None:
        raise ConfigError(
            f"provider `{provider}` finds no AWS credentials; set {_VARIABLES}, or, for profiles, SSO and roles, "
            "run `pip install 'isthmus[bedrock]'`",
            param=f"providers.{provider}",
        )
    return ByBotocore(wait)
