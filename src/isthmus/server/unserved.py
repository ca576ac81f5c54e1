"""What we do not serve, and where to look instead: one row for each endpoint that a client may well expect here.

In: a path. Out: the row that decides about it, or none. Whoever meets one of these is told so with a 404, in words, and
not with the bare "there is nothing": a client's author should know whether to wait, to ask elsewhere, or to do it
otherwise. `docs/reference/endpoints.md` is made from the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Unserved:
    path: str
    """All that is there, and below it."""
    name: str
    instead: str
    """What to do: words that follow a semicolon."""
    socket: bool = False
    """Whether the address in them is one of a WebSocket."""


_OWN_TOOLS: Final = "give the model a function tool that does it"
_AT_THE_VENDOR: Final = "ask the vendor itself: nothing of it is kept here"

UNSERVED: Final = (
    Unserved("/v1/files", "files", "send a file inside the request, as an `input_file` with `file_data` or `file_url`"),
    Unserved("/v1/uploads", "uploads", "send a file inside the request, as an `input_file` with `file_data`"),
    Unserved(
        "/v1/vector_stores", "vector stores", f"search with `/v1/embeddings` and an index of your own, or {_OWN_TOOLS}"
    ),
    Unserved("/v1/containers", "containers of the code interpreter", _OWN_TOOLS),
    Unserved("/v1/skills", "skills", "send their words as `instructions`"),
    Unserved("/v1/moderations", "moderations", _AT_THE_VENDOR),
    Unserved(
        "/v1/audio", "speech and transcriptions", "send audio inside a message to a model that hears, as `input_audio`"
    ),
    Unserved(
        "/v1/images/variations", "variations of images", "use `/v1/images/edits`, with words for what shall change"
    ),
    Unserved("/v1/videos", "videos", _AT_THE_VENDOR),
    Unserved("/v1/realtime", "the Realtime API", "open a WebSocket at `/v1/responses`", socket=True),
    Unserved(
        "/v1/completions",
        "legacy completions",
        "send the prompt as `input` to `/v1/responses`, or to `/v1/chat/completions`",
    ),
    Unserved("/v1/edits", "legacy edits", "use `/v1/responses`"),
    Unserved("/v1/engines", "legacy engines", "`/v1/models` lists the models"),
    Unserved("/v1/assistants", "the Assistants API", "use `/v1/responses`, which goes on with `previous_response_id`"),
    Unserved(
        "/v1/threads", "threads of the Assistants API", "use `/v1/responses`, which goes on with `previous_response_id`"
    ),
    Unserved("/v1/batches", "batches", 'send responses with `"background": true`, and fetch each when it is done'),
    Unserved("/v1/fine_tuning", "fine-tuning", f"{_AT_THE_VENDOR}; a tuned model is named like any other"),
    Unserved("/v1/fine-tunes", "legacy fine-tunes", f"{_AT_THE_VENDOR}; a tuned model is named like any other"),
    Unserved("/v1/evals", "evals", _AT_THE_VENDOR),
    Unserved("/v1/chatkit", "ChatKit", "use `/v1/responses`"),
    Unserved("/v1/organization", "the administration of an organization", _AT_THE_VENDOR),
    Unserved("/v1/projects", "the administration of projects", _AT_THE_VENDOR),
    Unserved("/v1/rerank", "reranking", f"{_AT_THE_VENDOR}, or sort by `/v1/embeddings`"),
    Unserved("/api/chat", "Ollama's own API", "use `/v1/chat/completions`"),
    Unserved("/api/generate", "Ollama's own API", "use `/v1/responses`"),
    Unserved("/api/embed", "Ollama's own API", "use `/v1/embeddings`"),
    Unserved("/api/embeddings", "Ollama's own API", "use `/v1/embeddings`"),
    Unserved("/api/tags", "Ollama's own API", "use `/v1/models`"),
    Unserved("/v1beta", "Gemini's own API", "use `/v1/responses` or `/v1/chat/completions`"),
)


def find_unserved(path: str) -> Unserved | None:
    for row in UNSERVED:
        if path == row.path or path.startswith(f"{row.path}/"):
            return row
    return None
