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
    """`auto`, `none`, `required`, or the name of the tool that must be called first."""
    output_type: Any
    """Asks for a format; read the answer with `run`, or from `text` yourself."""
    timeout: float | None
    """Seconds for the whole call; not given: as the provider is configured."""
    retry: Retry | None
    """How often, and after how long, it is asked again; not given: the client's own."""
    stream: bool
    """How the provider is asked (as a stream unless you say `False`); the answer is the same."""


class RunOptions(Parameters, total=False):
    tools: Iterable[ToolLike] | None
    """Exactly these; not given: the client's own (`bridge.tools`)."""
    tool_choice: ToolChoice
    """`auto`, `none`, `required`, or the name of the tool that must be called first."""
    limits: Limits | None
    """How far it may go; not given: the client's own."""
    on_limit: OnLimit
    """What a limit does: `return` what there is, `finalize` with one last answer, or `raise`."""
    deps: Any
    """Handed to tools in their context."""
    approve: Ask | None
    """Asked on the spot about calls that need approval; without it the run pauses."""
    on_event: Hear | None
    """Hears every event, the last one of a cancelled run included."""
    retry: Retry | None
    """How often, and after how long, a provider is asked again; not given: the client's own."""
    stream: bool
    """How the provider is asked (as a stream unless you say `False`); the events are the same."""
    output_retries: int
    """How often the model is asked again when its answer breaks a validator of yours; once unless you say more."""


class ResumeOptions(RunOptions, total=False):
    approvals: Mapping[str, Approval]
    """By call id: `Approve()`, `Deny("why")`, or `Provide(value)` for a call carried out elsewhere."""
    model: str | None
    """Another one than before; needed where only messages are given."""


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
    if fresh.output is not None:
        changes["output"] = fresh.output
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
    "limits": "limits",
    "on_limit": "on_limit",
    "deps": "deps",
    "approve": "ask",
    "retry": "retry",
    "stream": "stream",
    "output_retries": "output_retries",
}
"""Option → field of `Asked`."""
