"""What traces are held to: the requests and streams that are counted without them and with them (`tracing.py`)."""

from __future__ import annotations

from typing import Final

from bench.gateways.answers import Door
from bench.gateways.workloads import Workload

LIMIT: Final = 0.09
"""What traces may add at most, of what is counted without them."""
SHORT, LONG = 50, 250
"""Deltas of two streams: what counts is the difference between these."""
STREAMS: Final[dict[str, Door]] = {"Responses": "responses", "Chat": "chat", "Messages": "messages"}
WHOLE: Final = (
    Workload("Responses, whole", "responses", "text-10-0"),
    Workload("Chat, whole", "chat", "text-10-0"),
    Workload("Messages, whole", "messages", "text-10-0"),
    Workload("WebSocket, small", "websocket", "text-10-0", stream=True),
    Workload("Codex request, whole", "responses", "text-10-0", part="codex", size=41_000),
)
WORKLOADS: Final = (
    *WHOLE,
    *(
        Workload(f"{title}, {deltas} deltas", door, f"text-{deltas}-0", stream=True)
        for title, door in STREAMS.items()
        for deltas in (SHORT, LONG)
    ),
)
