"""`Tool`: what a model may call. Made from a function (`@tool`), from a JSON Schema, or from a class full of methods.

In: a function, or a name, a schema and a handler. Out: a `Tool`: the declaration that is sent, the reader that checks
arguments against it, and the rules under which it runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, ParamSpec, TypeVar, overload

from isthmus.bridge.contract.validators import validator_for
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.tools.context import ToolContext
from isthmus.tools.signature import InvalidArguments, Reader, read_signature, takes_context
from isthmus.tools.strict import strict_schema

P = ParamSpec("P")
R = TypeVar("R")

NeedsApproval = bool | Callable[[ToolContext[Any], Mapping[str, Any]], bool | Awaitable[bool]]
"""Whether a person must agree first; a function may look at the context and the checked arguments."""
OnError = Literal["detail", "generic"] | Callable[[Exception], str]
"""What the model reads of an exception: its words, only that there was one, or what your function makes of it."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[P, R]):
    """A tool. It can still be called as the function it was made from."""

    name: str
    description: str
    parameters: JsonObject
    function: Callable[P, R] | None
    """Who carries it out. `None`: somebody else does; the run pauses and hands the call over."""
    read: Reader = field(repr=False)
    context: str | None = None
    """The parameter that takes the context; empty text: the first one, by position."""
    whole: bool = False
    """The handler takes the arguments as one mapping, not one by one."""
    timeout: float | None = None
    """Seconds; none: that of the run's `Limits`."""
    exclusive: bool = False
    """Never runs beside another call."""
    needs_approval: NeedsApproval = False
    max_result_chars: int | None = None
    strict: bool = False
    """Ask the provider to keep to the schema exactly, where it can."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """Your own facts about the tool; never sent."""
    on_error: OnError = "detail"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.function is None:
            raise TypeError(f"tool `{self.name}` has no handler here")
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        """A tool on a class: taken from an instance it is bound, as a method is."""
        if instance is None or self.function is None:
            return self
        bind = self.function.__get__
        return replace(self, function=bind(instance, owner))

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        handler: Callable[..., Any] | None = None,
        *,
        timeout: float | None = None,
        exclusive: bool = False,
        needs_approval: NeedsApproval = False,
        max_result_chars: int | None = None,
        strict: bool = False,
        hints: Mapping[str, Any] | None = None,
        on_error: OnError = "detail",
    ) -> Tool[..., Any]:
        """A tool with a JSON Schema of your own, which arguments are really checked against.

        `handler` gets the arguments as one mapping (after the context, if its first parameter asks for one).
        Without a handler the call is handed over to you: the run pauses, and `resume` brings the result.
        """
        schema = dict(parameters)
        return Tool(
            name=check_name(name),
            description=description,
            parameters=schema,
            function=handler,
            read=_schema_reader(name, schema),
            context="" if handler is not None and takes_context(handler) else None,
            whole=True,
            timeout=timeout,
            exclusive=exclusive,
            needs_approval=needs_approval,
            max_result_chars=max_result_chars,
            strict=strict,
            hints=dict(hints or {}),
            on_error=on_error,
        )

    def declaration(self) -> JsonObject:
        """The tool as a request declares it."""
        parameters = strict_schema(self.parameters) if self.strict else self.parameters
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
            # Said in so many words: the Responses API takes silence for `true`.
            "strict": self.strict,
        }


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    exclusive: bool = False,
    needs_approval: NeedsApproval = False,
    max_result_chars: int | None = None,
    strict: bool = False,
    hints: Mapping[str, Any] | None = None,
    on_error: OnError = "detail",
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    exclusive: bool = False,
    needs_approval: NeedsApproval = False,
    max_result_chars: int | None = None,
    strict: bool = False,
    hints: Mapping[str, Any] | None = None,
    on_error: OnError = "detail",
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a function a tool: its annotations are the schema, its docstring is the description.

    Plain functions run in a thread of their own, `async` ones on the loop.
    """

    def make(function: Callable[P, R]) -> Tool[P, R]:
        signature = read_signature(function)
        return Tool(
            name=check_name(name or function.__name__),
            description=description if description is not None else signature.description,
            parameters=signature.parameters,
            function=function,
            read=signature.read,
            context=signature.context,
            timeout=timeout,
            exclusive=exclusive,
            needs_approval=needs_approval,
            max_result_chars=max_result_chars,
            strict=strict,
            hints=dict(hints or {}),
            on_error=on_error,
        )

    return make if function is None else make(function)


class ToolBox:
    """A class whose `@tool` methods belong together and share state: pass an instance as one of the `tools`."""

    def tools(self) -> list[Tool[..., Any]]:
        names = dict.fromkeys(name for kind in reversed(type(self).__mro__) for name in vars(kind))
        found = (getattr(self, name) for name in names if isinstance(getattr(type(self), name, None), Tool))
        return [one for one in found if isinstance(one, Tool)]


ToolLike = Tool[..., Any] | ToolBox | Callable[..., Any]
"""A tool, a box of them, or a plain function that becomes one."""


def as_tools(given: Iterable[ToolLike]) -> list[Tool[..., Any]]:
    """One list of tools; two of the same name are refused."""
    found: list[Tool[..., Any]] = []
    for one in given:
        if isinstance(one, Tool):
            found.append(one)
        elif isinstance(one, ToolBox):
            found += one.tools()
        else:
            found.append(tool(one))
    _refuse_twins(found)
    return found


def check_name(name: str) -> str:
    if not name or len(name) > MAX_NAME or not all(one.isascii() and (one.isalnum() or one in "_-") for one in name):
        raise RequestRefused(
            f"`{name}` cannot be a tool's name; use letters, digits, `_` and `-`, at most {MAX_NAME} of them",
            code="invalid_value",
            param="tools.name",
        )
    return name


MAX_NAME: Final = 64


def _refuse_twins(tools: Sequence[Tool[..., Any]]) -> None:
    seen: set[str] = set()
    for one in tools:
        if one.name in seen:
            raise RequestRefused(
                f"two tools are called `{one.name}`; give one of them another name, `@tool(name=…)`",
                code="duplicate_tool",
                param="tools",
            )
        seen.add(one.name)


def _schema_reader(name: str, schema: JsonObject) -> Reader:
    try:
        validator = validator_for(schema, param=f"{name}.parameters")
    except RequestRefused as error:
        raise RequestRefused(
            f"the parameters of tool `{name}` are not a usable JSON Schema: {error.message}",
            code=error.code,
            param="parameters",
        ) from error

    def read(arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        problems = [
            f"`{'.'.join(map(str, problem.instance_path)) or 'arguments'}`: {problem.message[:200]}"
            for problem, _ in zip(validator.iter_errors(given), range(8), strict=False)
        ]
        if problems:
            raise InvalidArguments("; ".join(problems))
        return given

    return read
