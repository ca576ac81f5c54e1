"""The names that OpenTelemetry gives to things, in one place: semantic conventions 1.41.0, checked on 2026-11-17.

That is the last version whose own pages speak of GenAI; since then these are kept apart, without versions so far, and
names change there (`gen_ai.client.inference.duration` …). Whoever raises the version looks at each of these
(https://github.com/open-telemetry/semantic-conventions/tree/v1.41.0/docs/gen-ai).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERSION: Final = "1.41.0"
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"

# ── spans ──────────────────────────────────────────────────────────────────────────────────────────
CHAT: Final = "chat"
EMBEDDINGS: Final = "embeddings"
GENERATE: Final = "generate_content"
EXECUTE_TOOL: Final = "execute_tool"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
ERROR: Final = "error.type"
HTTP_METHOD: Final = "http.request.method"
HTTP_ROUTE: Final = "http.route"
HTTP_STATUS: Final = "http.response.status_code"

# ── metrics ────────────────────────────────────────────────────────────────────────────────────────
TOKEN_TYPE: Final = "gen_ai.token.type"
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TOKEN_USAGE: Final = "gen_ai.client.token.usage"
REQUEST_DURATION: Final = "gen_ai.server.request.duration"
FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"
PER_TOKEN: Final = "gen_ai.server.time_per_output_token"

SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Buckets that the conventions ask for, of durations."""
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
FIRST_TOKENS: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
PER_TOKENS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)

# ── ours ───────────────────────────────────────────────────────────────────────────────────────────
REQUEST_ID: Final = "isthmus.request.id"
STATUS: Final = "isthmus.response.status"
DOOR: Final = "isthmus.door"
PLACE: Final = "isthmus.provider"
"""The provider's name in our configuration: there may be two of one vendor."""
ATTEMPT: Final = "isthmus.attempt"
WHY: Final = "isthmus.attempt.why"
RETRIES: Final = "isthmus.attempt.retries"
DEGRADED: Final = "isthmus.plan.degraded"
IGNORED: Final = "isthmus.plan.ignored"
COST: Final = "isthmus.cost.usd"

VENDORS: Final[Mapping[str, str]] = {
    "azure-openai": "azure.ai.openai",
    "azure": "azure.ai.openai",
    "amazon-bedrock": "aws.bedrock",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""What we call a vendor, where the conventions call it otherwise."""


def operation_of(run: str) -> str:
    """What a model is asked for, by the id of what is made."""
    return EMBEDDINGS if run.startswith("emb_") else GENERATE if run.startswith("img_") else CHAT


def vendor_name(provider: str) -> str:
    return VENDORS.get(provider, provider)
