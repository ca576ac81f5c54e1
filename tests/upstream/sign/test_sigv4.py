"""AWS signatures: AWS's own published examples, and botocore as the judge of everything else."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import pytest

from aws_judge import judge
from isthmus.upstream.sign.aws_credentials import Credentials, InEnvironment
from isthmus.upstream.sign.sigv4 import SigV4Signer, sign_request

# The credentials, the time and the signatures of AWS's Signature Version 4 test suite (aws-sig-v4-test-suite).
EXAMPLE = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
THEN = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

PUBLISHED = {
    "get-vanilla": ("GET", "/", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    "get-vanilla-query-order-key-case": (
        "GET",
        "/?Param2=value2&Param1=value1",
        {},
        b"",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "post-vanilla": ("POST", "/", {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    "post-x-www-form-urlencoded": (
        "POST",
        "/",
        FORM,
        b"Param1=value1",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}


@pytest.mark.parametrize(("method", "path", "headers", "body", "signature"), PUBLISHED.values(), ids=list(PUBLISHED))
def test_the_published_examples_come_out(
    method: str, path: str, headers: dict[str, str], body: bytes, signature: str
) -> None:
    url = f"https://example.amazonaws.com{path}"
    made = sign_request(
        method, url, headers, body, credentials=EXAMPLE, service="service", region="us-east-1", now=THEN
    )
    assert made["x-amz-date"] == "20150830T123600Z"
    names = "content-type;host;x-amz-date" if headers else "host;x-amz-date"
    assert made["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders={names}, Signature={signature}"
    )


REQUESTS = {
    "a chat body": ("POST", "https://bedrock-mantle.us-east-1.api.aws/v1/chat/completions", b'{"model":"m"}'),
    "a list": ("GET", "https://bedrock-mantle.eu-west-1.api.aws/v1/models", b""),
    "a port": ("POST", "http://127.0.0.1:8080/v1/responses", b"{}"),
    "a query": ("POST", "https://x.api.aws/v1/a?b=2&a=1&a=0&empty=&sp=a%20b&plus=%2B", b"{}"),
    "an odd path": ("POST", "https://x.api.aws/model/amazon.nova:0/a%20b/%E2%82%AC", b"{}"),
    "no path": ("GET", "https://x.api.aws", b""),
}


@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzEBYaD"], ids=["a user's", "a role's"])
@pytest.mark.parametrize(("method", "url", "body"), REQUESTS.values(), ids=list(REQUESTS))
def test_botocore_makes_the_same_signature(method: str, url: str, body: bytes, token: str) -> None:
    credentials = Credentials("AKIDEXAMPLE", EXAMPLE.secret_key, token)
    headers = {"content-type": "application/json"}
    made = sign_request(
        method, url, headers, body, credentials=credentials, service="bedrock-mantle", region="us-east-1", now=THEN
    )
    assert judge(method, url, {**headers, **made}, body, credentials, "bedrock-mantle", "us-east-1") is None
    assert ("x-amz-security-token" in made) is bool(token)


def test_the_judge_notices_every_change() -> None:
    method, url, body = REQUESTS["a chat body"]
    headers = {"content-type": "application/json"}
    made = sign_request(
        method, url, headers, body, credentials=EXAMPLE, service="bedrock-mantle", region="us-east-1", now=THEN
    )
    whole = {**headers, **made}
    asked = (EXAMPLE, "bedrock-mantle", "us-east-1")
    assert judge(method, url, whole, body + b" ", *asked)
    assert judge(method, f"{url}/x", whole, body, *asked)
    assert judge("PUT", url, whole, body, *asked)
    assert judge(method, url, {**whole, "content-type": "text/plain"}, body, *asked)
    assert judge(method, url, {**whole, "x-amz-date": "20150830T123601Z"}, body, *asked)
    assert judge(method, url, whole, body, EXAMPLE, "bedrock", "us-east-1")
    assert judge(method, url, {}, body, *asked)


def test_the_secret_key_never_travels_and_is_known_to_the_scrubber() -> None:
    credentials = Credentials("AKIDEXAMPLE", EXAMPLE.secret_key, "session-token-1")
    signer = SigV4Signer("bedrock-mantle", "us-east-1", InEnvironment(credentials))
    made = asyncio.run(signer.sign("POST", "https://x.api.aws/v1", {"user-agent": "u"}, b"{}"))
    assert EXAMPLE.secret_key not in str(made)
    assert "user-agent" not in re.findall("SignedHeaders=([^,]+)", made["authorization"])[0]
    assert {secret.value for secret in signer.secrets} == {EXAMPLE.secret_key, "session-token-1"}
    assert EXAMPLE.secret_key not in repr(credentials)


def test_every_attempt_is_signed_at_its_own_time() -> None:
    times = iter([THEN, datetime(2015, 8, 30, 12, 37, tzinfo=UTC)])
    signer = SigV4Signer("s", "us-east-1", InEnvironment(EXAMPLE), now=lambda: next(times))

    async def twice() -> list[str]:
        return [(await signer.sign("GET", "https://x.api.aws/", {}, b""))["authorization"] for _ in range(2)]

    first, second = asyncio.run(twice())
    assert first != second
