"""Every client of the OpenAI Responses API, on every model.

The names below are loaded when they are first used: `import isthmus` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.client.events import ApprovalRequired as ApprovalRequired
    from isthmus.client.events import HistoryRepaired as HistoryRepaired
    from isthmus.client.events import RefusalDelta as RefusalDelta
    from isthmus.client.events import Retrying as Retrying
    from isthmus.client.events import RunEvent as RunEvent
    from isthmus.client.events import RunFinished as RunFinished
    from isthmus.client.events import TextDelta as TextDelta
    from isthmus.client.events import ThinkingDelta as ThinkingDelta
    from isthmus.client.events import ToolCallDelta as ToolCallDelta
    from isthmus.client.events import ToolCallReady as ToolCallReady
    from isthmus.client.events import ToolCallStarted as ToolCallStarted
    from isthmus.client.events import ToolFinished as ToolFinished
    from isthmus.client.events import ToolStarted as ToolStarted
    from isthmus.client.events import TurnFinished as TurnFinished
    from isthmus.client.limiter import RateLimit as RateLimit
    from isthmus.client.limits import Limits as Limits
    from isthmus.client.line import ModelInfo as ModelInfo
    from isthmus.client.reconcile import Reconciliation as Reconciliation
    from isthmus.client.reconcile import extract_tool_calls as extract_tool_calls
    from isthmus.client.reconcile import extract_tool_calls_from_message as extract_tool_calls_from_message
    from isthmus.client.reconcile import format_tool_call_for_extraction as format_tool_call_for_extraction
    from isthmus.client.reconcile import format_tool_calls_for_extraction as format_tool_calls_for_extraction
    from isthmus.client.reconcile import prepare_tool_call_message as prepare_tool_call_message
    from isthmus.client.reconcile import reconcile as reconcile
    from isthmus.client.result import ChatResult as ChatResult
    from isthmus.client.result import RunResult as RunResult
    from isthmus.client.result import partial_result as partial_result
    from isthmus.client.retry import Retry as Retry
    from isthmus.client.saved import dump_messages as dump_messages
    from isthmus.client.saved import load_messages as load_messages
    from isthmus.client.stream import RunStream as RunStream
    from isthmus.client.usage import Usage as Usage
    from isthmus.tools.calls import CallError as CallError
    from isthmus.tools.calls import ToolCall as ToolCall
    from isthmus.tools.context import Approve as Approve
    from isthmus.tools.context import Deny as Deny
    from isthmus.tools.context import Provide as Provide
    from isthmus.tools.context import StopRun as StopRun
    from isthmus.tools.context import ToolContext as ToolContext
    from isthmus.tools.context import ToolFailed as ToolFailed
    from isthmus.tools.context import ToolReturn as ToolReturn
    from isthmus.tools.definition import Tool as Tool
    from isthmus.tools.definition import ToolBox as ToolBox
    from isthmus.tools.definition import tool as tool
    from isthmus.tools.mcp import http as http
    from isthmus.tools.mcp import stdio as stdio
    from isthmus.tools.messages import CodePart as CodePart
    from isthmus.tools.messages import DocumentPart as DocumentPart
    from isthmus.tools.messages import ImagePart as ImagePart
    from isthmus.tools.messages import Message as Message
    from isthmus.tools.messages import OpaquePart as OpaquePart
    from isthmus.tools.messages import RefusalPart as RefusalPart
    from isthmus.tools.messages import TextPart as TextPart
    from isthmus.tools.messages import ThinkingPart as ThinkingPart
    from isthmus.tools.messages import ToolCallPart as ToolCallPart
    from isthmus.tools.messages import ToolResultPart as ToolResultPart
    from isthmus.tools.messages import assistant as assistant
    from isthmus.tools.messages import system as system
    from isthmus.tools.messages import user as user
    from isthmus.tools.results import ToolResult as ToolResult
    from isthmus.tools.toolset import ToolSet as ToolSet
    from isthmus.wiring_bridge import Bridge as Bridge

__version__ = "0.2.0.dev0"

_HOMES = {
    "isthmus.tools.calls": (
        "CallError",
        "ToolCall",
    ),
    "isthmus.client.events": (
        "ApprovalRequired",
        "HistoryRepaired",
        "RefusalDelta",
        "Retrying",
        "RunEvent",
        "RunFinished",
        "TextDelta",
        "ThinkingDelta",
        "ToolCallDelta",
        "ToolCallReady",
        "ToolCallStarted",
        "ToolFinished",
        "ToolStarted",
        "TurnFinished",
    ),
    "isthmus.client.limiter": ("RateLimit",),
    "isthmus.client.limits": ("Limits",),
    "isthmus.client.line": ("ModelInfo",),
    "isthmus.tools.mcp": (
        "http",
        "stdio",
    ),
    "isthmus.tools.messages": (
        "CodePart",
        "DocumentPart",
        "ImagePart",
        "Message",
        "OpaquePart",
        "RefusalPart",
        "TextPart",
        "ThinkingPart",
        "ToolCallPart",
        "ToolResultPart",
        "assistant",
        "system",
        "user",
    ),
    "isthmus.client.reconcile": (
        "Reconciliation",
        "extract_tool_calls",
        "extract_tool_calls_from_message",
        "format_tool_call_for_extraction",
        "format_tool_calls_for_extraction",
        "prepare_tool_call_message",
        "reconcile",
    ),
    "isthmus.client.result": (
        "ChatResult",
        "RunResult",
        "partial_result",
    ),
    "isthmus.client.retry": ("Retry",),
    "isthmus.client.saved": (
        "dump_messages",
        "load_messages",
    ),
    "isthmus.client.stream": ("RunStream",),
    "isthmus.tools.context": (
        "Approve",
        "Deny",
        "Provide",
        "StopRun",
        "ToolContext",
        "ToolFailed",
        "ToolReturn",
    ),
    "isthmus.tools.definition": (
        "Tool",
        "ToolBox",
        "tool",
    ),
    "isthmus.tools.results": ("ToolResult",),
    "isthmus.tools.toolset": ("ToolSet",),
    "isthmus.client.usage": ("Usage",),
    "isthmus.wiring_bridge": ("Bridge",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module `isthmus` has no attribute `{name}`")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
