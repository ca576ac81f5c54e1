"""Fakes for tests of your own, shipped with Isthmus: import it by name, `import isthmus` does not load it.

`ScriptedUpstream` is a model provider on a real socket: it records what it is sent and answers as a
script says, well or badly. The other names here build its steps.
"""

from isthmus.testing.replies import CREATED, DONE, KEEPALIVE, chat_chunks, chat_error, chat_reply, sse
from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import (
    CUT,
    HANG,
    RESET,
    Answer,
    Handler,
    Step,
    chat,
    drop,
    error,
    html_error,
    malformed_json,
    reply,
    silence,
    stream,
)
from isthmus.testing.server import ScriptedUpstream
from isthmus.testing.signals import PATIENCE, Gate, Signal

__all__ = [
    "CREATED",
    "CUT",
    "DONE",
    "HANG",
    "KEEPALIVE",
    "PATIENCE",
    "RESET",
    "Answer",
    "Gate",
    "Handler",
    "RecordedRequest",
    "ScriptedUpstream",
    "Signal",
    "Step",
    "chat",
    "chat_chunks",
    "chat_error",
    "chat_reply",
    "drop",
    "error",
    "html_error",
    "malformed_json",
    "reply",
    "silence",
    "sse",
    "stream",
]
