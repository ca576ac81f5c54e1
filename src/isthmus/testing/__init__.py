"""Fakes for tests of your own, shipped with Isthmus: import it by name, `import isthmus` does not load it.

`ScriptedUpstream` is a model provider on a real socket: it records what it is sent and answers as a
script says, well or badly. `ScriptedModel` is the same without a socket, for agents. `create_test_tool`, its calls and
`ExecutionTracker` test tool loops; `ScriptedTool` is one that the gateway runs. The other names here build steps.
"""

from isthmus.testing.hosted import ScriptedTool
from isthmus.testing.model import Say, ScriptedModel, say
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
from isthmus.testing.tools import (
    ExecutionTracker,
    create_test_tool,
    create_tool_call,
    echo_handler,
    test_tool_handler,
    validate_tool_execution,
)

__all__ = [
    "CREATED",
    "CUT",
    "DONE",
    "HANG",
    "KEEPALIVE",
    "PATIENCE",
    "RESET",
    "Answer",
    "ExecutionTracker",
    "Gate",
    "Handler",
    "RecordedRequest",
    "Say",
    "ScriptedModel",
    "ScriptedTool",
    "ScriptedUpstream",
    "Signal",
    "Step",
    "chat",
    "chat_chunks",
    "chat_error",
    "chat_reply",
    "create_test_tool",
    "create_tool_call",
    "drop",
    "echo_handler",
    "error",
    "html_error",
    "malformed_json",
    "reply",
    "say",
    "silence",
    "sse",
    "stream",
    "test_tool_handler",
    "validate_tool_execution",
]
