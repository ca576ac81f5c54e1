"""Whether a request carries the signature that AWS would make of it: botocore makes it anew and both are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from isthmus.upstream.sign.aws_credentials import Credentials


def judge(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    credentials: Credentials,
    service: str,
    region: str,
) -> str | None:
    """What AWS would say to it; `None`: it takes it. How old the signature is, is for the caller to look at."""
    lower = {name.lower(): value for name, value in headers.items()}
    authorization = lower.get("authorization", "")
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([a-z0-9;-]+),"
        r" Signature=([0-9a-f]{64})",
        authorization,
    )
    if found is None:
        return "Missing Authentication Token"
    access, day, its_region, its_service, names, signature = found.groups()
    date = lower.get("x-amz-date", "")
    if (access, its_region, its_service) != (credentials.access_key, region, service) or not date.startswith(day):
        return "Credential should be scoped to a valid region and service"
    if not {"host", "x-amz-date"} <= set(names.split(";")) or "content-type" not in names.split(";"):
        return "the signed headers lack one that must be signed"
    if credentials.token and lower.get("x-amz-security-token") != credentials.token:
        return "The security token included in the request is invalid"
    signed = {name: lower[name] for name in names.split(";") if name in lower and name != "host"}
    request = AWSRequest(method=method, url=url, headers=signed, data=body)
    request.context["timestamp"] = date
    frozen = BotocoreCredentials(credentials.access_key, credentials.secret_key, credentials.token or None)
    signer = SigV4Auth(frozen, service, region)
    canonical = signer.canonical_request(request)
    expected = signer.signature(signer.string_to_sign(request, canonical), request)
    return None if expected == signature else "The request signature we calculated does not match"
