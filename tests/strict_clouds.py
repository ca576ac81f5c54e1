"""Clouds that refuse what others forgive: whole requests are looked at, path, query, headers and body.

Each `refused_by_…` says what the cloud answers to a request that it does not take, as (status, words), and `None` to
one that it takes. `guarded` makes a step of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from aws_judge import judge
from isthmus.testing import RecordedRequest, Step, error, reply
from isthmus.upstream.sign.aws_credentials import Credentials
from strict_anthropic import refused_by_anthropic

Json = dict[str, Any]
Refused = tuple[int, str] | None

AZURE_KEY = "azure-key-0123456789"
ENTRA_TOKEN = "eyJhbGciOiJSUzI1NiJ9.entra.signature"
BEDROCK_KEY = "bedrock-api-key-0123456789"
AWS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEBYaD-session")
REGION = "eu-west-1"

CHAT_FIELDS = {
    *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "response_format", "verbosity"),
    *("max_completion_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "seed"),
    *("top_logprobs", "logit_bias", "stop", "parallel_tool_calls", "prompt_cache_key", "reasoning_effort", "user"),
}
RESPONSES_FIELDS = {
    *("model", "input", "instructions", "stream", "tools", "tool_choice", "text", "reasoning", "include", "store"),
    *("max_output_tokens", "max_tool_calls", "temperature", "top_p", "top_logprobs", "parallel_tool_calls", "user"),
    *("previous_response_id", "background", "metadata", "prompt_cache_key", "truncation"),
}


def guarded(refuses: Callable[[RecordedRequest], Refused], answer: Step) -> Step:
    """`answer` for a request that the cloud takes, its refusal for another."""

    def handle(request: RecordedRequest) -> Step:
        why = refuses(request)
        return answer if why is None else error(why[0], why[1])

    return handle


def refused_by_azure(deployments: set[str]) -> Callable[[RecordedRequest], Refused]:
    """learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle and …/reference (2026-11-16). Stricter than
    the v1 path in one thing: that takes a key as `Bearer` too, for OpenAI's own SDKs; the older path does not."""

    def refuses(request: RecordedRequest) -> Refused:
        version = request.query.get("api-version", [""])[0]
        new = re.fullmatch(r"/openai/v1/(chat/completions|responses)", request.path)
        old = re.fullmatch(r"/openai/deployments/([^/]+)/chat/completions", request.path)
        if new is None and old is None:
            return 404, "Resource not found"
        if new and version not in ("", "preview", "v1"):
            return 400, "API version not supported"
        if old and not re.fullmatch(r"\d{4}-\d\d-\d\d(-preview)?", version):
            return 404, "Resource not found"
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.headers.get("api-key") != AZURE_KEY and shown != ENTRA_TOKEN:
            return 401, "Access denied due to invalid subscription key or wrong API endpoint."
        name = old[1] if old else request.json["model"]
        if name not in deployments:
            return 404, "The API deployment for this resource does not exist."
        known = RESPONSES_FIELDS if new and new[1] == "responses" else CHAT_FIELDS
        return _unknown_fields(request.json, known)

    return refuses


def refused_by_mantle(*, signed: bool) -> Callable[[RecordedRequest], Refused]:
    """docs.aws.amazon.com/bedrock/latest/userguide/bedrock-mantle.html (2026-11-16): the path's beginning goes with the
    model, Responses is there for OpenAI's models, and a request is signed or carries a Bedrock key. Claude is there in
    Messages and in nothing else (…/inference-messages-api.html, 2026-11-17)."""

    def refuses(request: RecordedRequest) -> Refused:
        if request.path == "/anthropic/v1/messages":
            return _refused_messages(request, signed=signed)
        found = re.fullmatch(r"(/openai)?/v1/(chat/completions|responses)", request.path)
        if found is None:
            return 404, "Not Found"
        why = refused_signature(request) if signed else _refused_key(request)
        if why is not None:
            return why
        model = request.json["model"]
        newer = model.startswith("openai.gpt-5")
        if model.startswith("anthropic."):
            return 400, f"model `{model}` isn't supported on this route"
        if bool(found[1]) != newer or (found[2] == "responses" and not model.startswith("openai.")):
            return 400, f"model `{model}` isn't supported on this route"
        return _unknown_fields(request.json, RESPONSES_FIELDS if found[2] == "responses" else CHAT_FIELDS)

    return refuses


def _refused_messages(request: RecordedRequest, *, signed: bool) -> Refused:
    if signed:
        why = refused_signature(request)
        if why is not None:
            return why
    elif request.headers.get("x-api-key") != BEDROCK_KEY:
        return 403, "Authentication failed: Please make sure your API Key is valid."
    if not request.json["model"].startswith("anthropic."):
        return 400, f"model `{request.json['model']}` isn't supported on this route"
    if request.headers.get("anthropic-version") != "2023-06-01":
        return 400, "anthropic-version: header is required"
    known = {**request.json, "model": request.json["model"].removeprefix("anthropic.")}
    words = refused_by_anthropic(known)
    return None if words is None else (400, words)


def _refused_key(request: RecordedRequest) -> Refused:
    if request.headers.get("authorization") != f"Bearer {BEDROCK_KEY}":
        return 403, "Authentication failed: Please make sure your API Key is valid."
    return None


def refused_signature(request: RecordedRequest) -> Refused:
    url = f"http://{request.headers['host']}{request.target}"
    why = judge(request.method, url, request.headers, request.body, AWS, "bedrock-mantle", REGION)
    if why is None:
        made = datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs((datetime.now(UTC) - made).total_seconds()) > 300:
            why = "Signature expired"
    return None if why is None else (403, why)


def _unknown_fields(body: Json, known: set[str]) -> Refused:
    unknown = sorted(set(body) - known)
    return (400, f"Unknown parameter: '{unknown[0]}'.") if unknown else None


class TokenServer:
    """Google's token endpoint, for one service account: each exchange gives a new token."""

    def __init__(self, lifetime: int = 3600) -> None:
        self.lifetime = lifetime
        self.issued: list[str] = []

    def __call__(self, request: RecordedRequest) -> Step:
        form = request.body.decode()
        if request.method != "POST" or "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer" not in form:
            return reply({"error": "unsupported_grant_type"}, status=400)
        self.issued.append(f"ya29.token-{len(self.issued) + 1:04}")
        return reply({"access_token": self.issued[-1], "expires_in": self.lifetime, "token_type": "Bearer"})

    def takes(self, request: RecordedRequest) -> Refused:
        """Only the newest token is good, at the place of the project."""
        if not re.fullmatch(r"/v1/projects/p-1/locations/global/endpoints/openapi/chat/completions", request.path):
            return 404, "Not Found"
        if not self.issued or request.headers.get("authorization") != f"Bearer {self.issued[-1]}":
            return 401, "Request had invalid authentication credentials."
        return None


@lru_cache(maxsize=1)
def _rsa_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def service_account(folder: Path, token_url: str) -> Path:
    """A key file as Google's console gives it, whose key is good for nothing."""
    path = folder / "account.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "project_id": "p-1",
                "private_key_id": "1",
                "private_key": _rsa_key(),
                "client_email": "test@p-1.iam.gserviceaccount.com",
                "client_id": "1",
                "token_uri": token_url,
            }
        )
    )
    return path
