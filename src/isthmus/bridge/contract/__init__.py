"""The output contract: what the provider is sent, what the model is told, how its answer is checked.

`plan_output_contract` carries out the decision on `text.format`; `validate_output_contract` checks an answer
against the client's own JSON Schema. When to check, and whether to ask again, is the turn's business.
"""

from __future__ import annotations

from isthmus.bridge.contract.check import (
    ContractCheck,
    applies_to,
    check_answer,
    contract_failure,
    repair_request,
    unchecked_failure,
    validate_output_contract,
)
from isthmus.bridge.contract.planner import plan_output_contract

__all__ = [
    "ContractCheck",
    "applies_to",
    "check_answer",
    "contract_failure",
    "plan_output_contract",
    "repair_request",
    "unchecked_failure",
    "validate_output_contract",
]
