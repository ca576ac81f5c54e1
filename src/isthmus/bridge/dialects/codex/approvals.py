"""What we say when Codex asks us something, apart from tool calls.

In: a server request's method and parameters, and the operator's policy. Out: a result, or a polite refusal
as a JSON-RPC error: Codex takes that as a "no" and the turn goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from isthmus.protocol.json import JsonObject

ApprovalPolicy = Literal["decline", "accept"]

_METHOD_NOT_FOUND: Final = -32601
_ACCEPT: Final = {
    "item/commandExecution/requestApproval": "accept",
    "item/fileChange/requestApproval": "accept",
    "execCommandApproval": "approved",
    "applyPatchApproval": "approved",
}
_DECLINE: Final = {
    "item/commandExecution/requestApproval": "decline",
    "item/fileChange/requestApproval": "decline",
    "execCommandApproval": "denied",
    "applyPatchApproval": "denied",
}


@dataclass(frozen=True, slots=True)
class Answer:
    result: JsonObject


@dataclass(frozen=True, slots=True)
class Refusal:
    code: int
    message: str


def answer_server_request(
    method: str, params: Mapping[str, Any], policy: ApprovalPolicy = "decline"
) -> Answer | Refusal:
    """Approvals follow the policy; nobody sits here to answer questions or forms."""
    decisions = _ACCEPT if policy == "accept" else _DECLINE
    if method in decisions:
        return Answer({"decision": decisions[method]})
    match method:
        case "item/permissions/requestApproval":
            asked = params.get("permissions")
            granted = asked if policy == "accept" and isinstance(asked, Mapping) else {}
            return Answer({"permissions": dict(granted)})
        case "item/tool/requestUserInput":
            return Answer({"answers": {}})
        case "mcpServer/elicitation/request":
            return Answer({"action": "decline", "content": None})
        case _:
            return Refusal(_METHOD_NOT_FOUND, f"this client does not answer `{method}`")
