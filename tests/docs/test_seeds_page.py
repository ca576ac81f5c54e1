"""The page that maps the seeds to the code: complete, and every place on it exists."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from doc_pages import ROOT

PAGE = (ROOT / "docs" / "concepts" / "seeds.md").read_text()
ROWS = re.findall(r"^\| (?!seed \||-)(.*?) \| (.*) \|$", PAGE, re.MULTILINE)
PLACES = sorted({place for _, here in ROWS for place in re.findall(r"`(isthmus\.[\w.]+)`", here)})

NAMED_BY_THE_SEEDS = {
    "tool planning": (
        "planTools buildToolCatalog planToolDeclaration createProviderNameAllocator ToolIdentityMap restoreToolCall "
        "renderProviderToolDeclarations planProviderToolChoice renderProviderToolChoice defaultToolNameCodec "
        "requestedName providerName requestedType providerType assertMaxTools ToolDeclarationPlan nativeToolTypes "
        "degradedToolTypes toProviderName maxTools ChatFunctionToolDeclaration degradedCustomToolDescription "
        "degradedCustomToolParameters LocalShellCall ShellCall FunctionCall BRIDGE_REQUEST_UNSUPPORTED_PARAMETER"
    ),
    "compatibility planning": (
        "ProviderCapabilities CompatibilityPlan CompatibilityDecision CompatibilityDiagnostic planBridgeCompatibility "
        "planOutputContract parameters.supported tools.supported tools.degraded toolChoice.supported "
        "responseFormats.supported reasoning.effort streaming.usage ToolPlanningProfile requiresValidJson BridgeError"
    ),
    "response reconstruction": (
        "reconstructResponseObject firstChoice outputText validateOutputContract mapProviderFinishReason "
        "validateResponseOutputContract ResponseObject BridgeFailure BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT "
        "accessor.usage()"
    ),
    "tool-call reconciliation": (
        "prepareToolCallMessage formatToolCallForExtraction extractToolCallsFromMessage message.toolCalls "
        "message.metadata.tool_calls Message ToolCall ToolDefinition BridgeClient createTestTool testToolHandler "
        "validateToolExecution createToolCall e2e_echo_tool"
    ),
    "dynamic tools": (
        "buildDynamicTools buildToolCallDeltaFromDynamicRequest buildNewConversationParams buildSendUserTurnParams "
        "buildSendUserMessageParams NewConversationParams SendUserTurnParams SendUserMessageParams "
        "BuildNewConversationOptions BuildSendUserTurnOptions BuildSendUserMessageOptions #ensureConversation "
        "dynamic_tool_call_request createStreamEventRouter handleParsedEvent toolCallAggregator hasToolCalls"
    ),
}


@pytest.mark.parametrize("seed", NAMED_BY_THE_SEEDS)
def test_the_page_names_every_concept_of_the_seed(seed: str) -> None:
    left = "\n".join(concept for concept, _ in ROWS)
    missing = [name for name in NAMED_BY_THE_SEEDS[seed].split() if f"`{name}`" not in left]
    assert not missing


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_every_row_leads_to_a_place(row: tuple[str, str]) -> None:
    assert re.search(r"`isthmus\.", row[1])


@pytest.mark.parametrize("place", PLACES)
def test_the_place_exists_and_can_be_imported(place: str) -> None:
    find(place)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("isthmus.bridge.types.tools.ToolIdentity", "requested_name provider_name requested_type provider_type"),
        ("isthmus.bridge.capabilities.ToolSupport", "native degraded max"),
        ("isthmus.bridge.capabilities.ProviderCapabilities", "parameters tools tool_choice streaming_usage"),
        ("isthmus.bridge.contract.planner.OutputContract", "requires_valid_json"),
        ("isthmus.tools.messages.Message", "metadata"),
    ],
)
def test_the_fields_that_rows_speak_of_are_there(place: str, names: str) -> None:
    assert all(hasattr(find(place), name) or name in find(place).__annotations__ for name in names.split())


def find(place: str) -> Any:
    """The object at a dotted path: the longest importable module, then attributes."""
    parts = place.split(".")
    for cut in range(len(parts), 0, -1):
        name = ".".join(parts[:cut])
        try:
            found: Any = import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"nothing at {place}")
