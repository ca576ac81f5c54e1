from __future__ import annotations

from typing import Any, Literal

import pytest

from isthmus.bridge.dialects.codex.approvals import Answer, Refusal, answer_server_request


@pytest.mark.parametrize(
    ("method", "policy", "result"),
    [
        ("item/commandExecution/requestApproval", "decline", {"decision": "decline"}),
        ("item/commandExecution/requestApproval", "accept", {"decision": "accept"}),
        ("item/fileChange/requestApproval", "decline", {"decision": "decline"}),
        ("item/fileChange/requestApproval", "accept", {"decision": "accept"}),
        ("execCommandApproval", "decline", {"decision": "denied"}),
        ("applyPatchApproval", "accept", {"decision": "approved"}),
        ("item/permissions/requestApproval", "decline", {"permissions": {}}),
        ("item/permissions/requestApproval", "accept", {"permissions": {"network": {"enabled": True}}}),
        ("item/tool/requestUserInput", "accept", {"answers": {}}),
        ("mcpServer/elicitation/request", "accept", {"action": "decline", "content": None}),
    ],
)
def test_questions_are_answered_by_policy(
    method: str, policy: Literal["accept", "decline"], result: dict[str, Any]
) -> None:
    params = {"permissions": {"network": {"enabled": True}}}
    assert answer_server_request(method, params, policy) == Answer(result)


@pytest.mark.parametrize("method", ["attestation/generate", "item/tool/call", "made/up"])
def test_unknown_questions_are_refused_politely(method: str) -> None:
    refusal = answer_server_request(method, {})
    assert isinstance(refusal, Refusal)
    assert method in refusal.message
