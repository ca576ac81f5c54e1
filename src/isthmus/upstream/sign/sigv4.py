"""AWS Signature Version 4: every request is signed with the account's secret key, which itself never travels.

In: a request, credentials, the time. Out: the headers `authorization`, `x-amz-date` and, for credentials that expire,
`x-amz-security-token`, as docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html tells
(2026-11-16), for services other than S3: their path is encoded once more. `sign_request` is pure; which credentials
there are is asked of `aws_credentials`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol
from urllib.parse import parse_qsl, quote, urlsplit

from isthmus.scrub import Secret
from isthmus.upstream.sign.aws_credentials import Credentials

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_UNRESERVED: Final = "-_.~"


class Found(Protocol):
    """Where credentials come from, each time anew: those of a role expire."""

    async def __call__(self) -> Credentials: ...


class SigV4Signer:
    """Signs for one service in one region."""

    def __init__(
        self, service: str, region: str, find: Found, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._service = service
        self._region = region
        self._find = find
        self._now = now
        self._secrets: tuple[Secret, ...] = ()

    @property
    def secrets(self) -> Sequence[Secret]:
        return self._secrets

    async def sign(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        credentials = await self._find()
        self._secrets = credentials.secrets
        return sign_request(
            method,
            url,
            {name: value for name, value in headers.items() if name.lower() == "content-type"},
            body,
            credentials=credentials,
            service=self._service,
            region=self._region,
            now=self._now(),
        )

    async def aclose(self) -> None:
        pass


def sign_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: Credentials,
    service: str,
    region: str,
    now: datetime,
) -> dict[str, str]:
    """What to send besides `headers`, all of which are signed."""
    parts = urlsplit(url)
    time = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    added = {"x-amz-date": time}
    if credentials.token:
        added["x-amz-security-token"] = credentials.token
    # A port that is no default one belongs to the host, as it does in the header that the client sends.
    signed = {"host": parts.netloc.rpartition("@")[2], **{k.lower(): v for k, v in headers.items()}, **added}
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            quote(parts.path or "/", safe=f"/{_UNRESERVED}"),
            _canonical_query(parts.query),
            *(f"{name}:{' '.join(signed[name].split())}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, time, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    shown = f"Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**added, "authorization": f"{_ALGORITHM} {shown}"}


def _canonical_query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    encoded = ((quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))
