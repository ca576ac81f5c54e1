"""A stand-in for binaries that know only the older methods: none of those can be installed any more.

Started as a program by the tests. It writes down what it is asked, speaks before it answers, asks things
nobody should answer, and repeats what it was told.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ASKED = open(sys.argv[1], "a")  # noqa: SIM115 - lives as long as the program


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def event(kind: str, **fields: Any) -> None:
    params = {"conversationId": "conv-1", "id": "0", "msg": {"type": kind, **fields}}
    send({"method": f"codex/event/{kind}", "params": params})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        ASKED.write(line)
        ASKED.flush()
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            sys.stdout.write("a banner that is no JSON\n")
            send({"id": identity, "result": {"userAgent": "older/0.92"}})
        elif method == "newConversation":
            send({"id": identity, "result": {"conversationId": "conv-1", "model": "m"}})
        elif method in ("sendUserMessage", "sendUserTurn"):
            event("agent_message_delta", delta="Let me ")
            send({"id": identity, "result": {}})
            send({"id": "odd", "method": "made/up", "params": {"conversationId": "conv-1"}})
            event("agent_message_delta", delta="see.")
            call = {"callId": "call_1", "turnId": "0", "tool": "lookup", "arguments": {"id": 1}}
            event("dynamic_tool_call_request", **call)
            send({"id": 0, "method": "item/tool/call", "params": {"threadId": "conv-1", **call}})
        elif identity == 0 and "result" in message:
            event("agent_message", message=message["result"]["output"])
            event("task_complete")
        elif method is not None and identity is not None:
            if method in ("addConversationListener", "interruptConversation", "removeConversationListener"):
                send({"id": identity, "result": {"subscriptionId": "s"}})
            else:
                text = f"Invalid request: unknown variant `{method}`, expected one of `newConversation`"
                send({"id": identity, "error": {"code": -32600, "message": text}})


main()
