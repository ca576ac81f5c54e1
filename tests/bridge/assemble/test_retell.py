"""A finished response told again as a stream."""

from __future__ import annotations

from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.deltas import (
    Annotation,
    CallArguments,
    CallOpened,
    Finished,
    HostedCall,
    ItemBegan,
    ItemEnded,
    PartBegan,
    Reasoning,
    Refusal,
    Text,
    Usage,
    Used,
)
from isthmus.testing.fold import plan_for, stream
from wire.oracle import check_stream

TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "custom", "name": "note"},
    {"type": "shell"},
]
CITATION = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
APPROVAL = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"}


def test_a_finished_response_can_be_told_again_as_a_stream() -> None:
    _, response = stream(
        [
            Reasoning("t"),
            Reasoning("s", "summary"),
            *(ItemBegan("message", "commentary"), Text("a"), Annotation(CITATION)),
            *(PartBegan("output_text"), Text("b"), ItemEnded()),
            HostedCall(APPROVAL),
            *(Text("c"), Refusal("no")),
            *(CallOpened(0, "a", "f"), CallArguments(0, "{}")),
            *(CallOpened(1, "b", "note"), CallArguments(1, '{"input": "x"}')),
            *(CallOpened(2, "c", "shell"), CallArguments(2, '{"commands": ["ls"]}')),
            Used(Usage(1, 2, 3)),
            Finished("stop"),
        ],
        plan=plan_for({"tools": TOOLS}),
    )
    told = check_stream(replay_events(response))
    assert told == response
