"""The options of `chat`, `run` and `resume`, as their callers write them → one frozen `Asked`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from isthmus.client.asked import Asked, Parameters, ToolChoice
from isthmus.client.limits import Limits, OnLimit
from isthmus.client.loop import Hear
from isthmus.client.output import plan_output
from isthmus.client.result import RunResult
from isthmus.client.retry import Retry
from isthmus.errors import RequestRefused
from isthmus.tools.context import Approval
from isthmus.tools.definition import Tool, ToolLike
from isthmus.tools.messages import Message
from isthmus.tools.toolset import Ask, ToolSet

Resumable = RunResult[Any] | Sequence[Message]
"""A run that waits, or only its messages."""


class ChatOptions(Parameters, total=False):
    tools: Iterable[ToolLike] | None
    """Exactly these; not given: the client's own (`bridge.tools`)."""
    tool_choice: ToolChoice
    output_type: Any
    """Asks for a format; read the answer with `run`, or from `text` yourself."""
    timeout: float | None
    retry: Retry | None
    stream: bool
    """How the provider is asked; the answer is the same."""


class RunOptions(Parameters, total=False):
    tools: Iterable[ToolLike] | None
    """Exactly these; not given: the client's own (`bridge.tools`)."""
    tool_choice: ToolChoice
    limits: Limits | None
    on_limit: OnLimit
    deps: Any
    """Handed to tools in their context."""
    approve: Ask | None
    """Asked on the spot about calls that need approval; without it the run pauses."""
    on_event: Hear | None
    """Hears every event, the last one of a cancelled run included."""
    retry: Retry | None
    stream: bool
    output_retries: int
    """How often the model is asked again when its answer breaks a validator of yours."""


class ResumeOptions(RunOptions, total=False):
    approvals: Mapping[str, Approval]
    """By call id: `Approve()`, `Deny("why")`, or `Provide(value)` for a call carried out elsewhere."""
    model: str | None
    output_type: Any


_PARAMETERS = frozenset(Parameters.__annotations__)


def read_options(
    model: str | None,
    options: Mapping[str, Any],
    tools: Iterable[Tool[..., Any]],
    limits: Limits,
    retry: Retry,
    output_type: Any = None,
) -> Asked:
    """`tools`, `limits` and `retry` are the client's own, for what the options leave out."""
    given = options.get("tools")
    wanted = output_type if output_type is not None else options.get("output_type")
    return Asked(
        model=model,
        tools=ToolSet(tools if given is None else given),
        tool_choice=options.get("tool_choice", "auto"),
        parameters=cast(Parameters, {key: value for key, value in options.items() if key in _PARAMETERS}),
        output=plan_output(wanted),
        limits=options.get("limits") or limits,
        on_limit=options.get("on_limit", "return"),
        deps=options.get("deps"),
        ask=options.get("approve"),
        retry=options.get("retry") or retry,
        stream=options.get("stream", True),
        output_retries=options.get("output_retries", 1),
    )


def read_resume(run: Resumable, options: Mapping[str, Any], fresh: Asked) -> Asked:
    """What a resumed run is asked: as before, except for what is said anew."""
    if not isinstance(run, RunResult) or run.asked is None:
        return fresh
    asked = run.asked
    changes: dict[str, Any] = {field: getattr(fresh, field) for option, field in _RENAMED.items() if option in options}
    parameters = {**asked.parameters, **fresh.parameters}
    # A forced choice was honoured before the pause.
    choice = changes.get("tool_choice", "none" if asked.tool_choice == "none" else "auto")
    return replace(asked, **{**changes, "tool_choice": choice, "parameters": cast(Parameters, parameters)})


def check_approvals(approvals: Mapping[str, Approval], run: Resumable) -> None:
    """A decision about a call that does not wait is a mistake of the caller's."""
    if not isinstance(run, RunResult):
        return
    waiting = [call.id for call in run.pending]
    unknown = [id for id in approvals if id not in waiting]
    if unknown:
        raise RequestRefused(
            f"`approvals` names `{unknown[0]}`, but the calls that wait are: {', '.join(waiting) or 'none'}",
            code="unknown_call",
            param="approvals",
        )


_RENAMED = {
    "model": "model",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "output_type": "output",
    "limits": "limits",
    "on_limit": "on_limit",
    "deps": "deps",
    "approve": "ask",
    "retry": "retry",
    "stream": "stream",
    "output_retries": "output_retries",
}
"""Option → field of `Asked`."""
