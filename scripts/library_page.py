"""The page about the library, read off its source: every public name, its fields, its methods, the options of a call.

What is written there stands under the fields and functions themselves; a name that has no place in `PLACES` is an
error, so that nothing public is left out.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from textwrap import dedent
from typing import Any

PLACES: Mapping[str, tuple[str, ...]] = {
    "Results": ("ChatResult", "RunResult", "RunStream", "Usage", "ModelInfo", "partial_result"),
    "Events": (
        *("RunEvent", "TextDelta", "ThinkingDelta", "RefusalDelta", "ToolCallStarted", "ToolCallDelta"),
        *("ToolCallReady", "TurnFinished", "ToolStarted", "ToolFinished", "ApprovalRequired", "Retrying"),
        *("HistoryRepaired", "RunFinished"),
    ),
    "Limits and retries": ("Limits", "Retry", "RateLimit"),
    "Tools": (
        *("tool", "Tool", "ToolBox", "ToolSet", "ToolContext", "ToolReturn", "ToolFailed", "StopRun", "ToolCall"),
        *("CallError", "ToolResult", "Approve", "Deny", "Provide", "http", "stdio"),
    ),
    "Messages": (
        *("Message", "user", "system", "assistant", "TextPart", "ThinkingPart", "ImagePart", "DocumentPart"),
        *("CodePart", "RefusalPart", "ToolCallPart", "ToolResultPart", "OpaquePart", "dump_messages", "load_messages"),
    ),
    "Calls in other libraries' messages": (
        *("reconcile", "Reconciliation", "prepare_tool_call_message", "extract_tool_calls"),
        *("extract_tool_calls_from_message", "format_tool_call_for_extraction", "format_tool_calls_for_extraction"),
    ),
}
"""Heading → names; `Bridge` and the options of its calls stand before them, errors behind them."""

OPTIONS = {"chat": "ChatOptions", "run": "RunOptions", "resume": "ResumeOptions"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def library_page() -> Iterator[str]:
    """Its lines, with one that is empty where several would be."""
    before = None
    for line in _lines():
        if line or before:
            yield line
        before = line


def _lines() -> Iterator[str]:
    import isthmus

    placed = ["Bridge", "__version__", *(name for names in PLACES.values() for name in names)]
    if wrong := set(placed) ^ set(isthmus.__all__):
        raise SystemExit(f"`PLACES` and `isthmus.__all__` differ about {', '.join(sorted(wrong))}")
    yield from ("# The library", "")
    yield "Every public name of `isthmus`, as the source has it. [The guide](../guides/client.md) shows how they are"
    yield from ("used, [another](../guides/tools.md) how tools are made. All of it is typed.", "", "## `Bridge`", "")
    bridge, client = _find("Bridge"), _node("isthmus.client.bridge", "BridgeClient")
    yield from (_words(bridge), "")
    for name, function in [*_methods(bridge), *_methods(client)]:
        if name != "__init__" or function in bridge.body:
            yield from _method(name, function, "Bridge")
    yield from _options()
    for heading, names in PLACES.items():
        yield from ("", f"## {heading}")
        for name in names:
            yield from _name(name)
    yield from _errors()


def _options() -> Iterator[str]:
    yield from ("", "## Options", "")
    yield "What `chat`, `run` and `resume` take by name, and so do their streams and their twins for scripts. What a"
    yield "provider cannot do becomes a diagnostic of the answer."
    yield from ("", "| option | type | for | |", "|---|---|---|---|")
    tables = {call: dict(_fields_of_options(options)) for call, options in OPTIONS.items()}
    tables["run"]["output_type"] = tables["resume"]["output_type"] = (
        "type | Mapping[str, Any]",
        "What the answer is to be: a pydantic model, a dataclass, any type that pydantic knows, or a JSON Schema.",
    )
    for option in dict.fromkeys(option for table in tables.values() for option in table):
        calls = [call for call, table in tables.items() if option in table]
        kind, words = tables[calls[-1]][option]
        for_whom = "all" if len(calls) == len(tables) else ", ".join(f"`{call}`" for call in calls)
        yield f"| `{option}` | `{_cell(kind)}` | {for_whom} | {_cell(words)} |"


def _fields_of_options(name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    home = "isthmus.client.asked" if name == "Parameters" else "isthmus.client.options"
    node = _node(home, name)
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id != "TypedDict":
            yield from _fields_of_options(base.id)
    for field, kind, _, words in _fields(node):
        yield field, (kind, words)


def _name(name: str) -> Iterator[str]:
    node = _find(name)
    yield from ("", f"### `{name}`", "")
    match node:
        case ast.ClassDef():
            yield from (_words(node), "")
            fields = [each for each in _fields(node) if not each[0].startswith("_")]
            if fields:
                yield from ("| field | type | default | |", "|---|---|---|---|")
                for field, kind, default, words in fields:
                    shown = f"`{_cell(default)}`" if default else ""
                    yield f"| `{field}` | `{_cell(kind)}` | {shown} | {_cell(words)} |"
                yield ""
            for method, function in _methods(node):
                yield from _method(method, function, name)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            shown = _signature(name, node, _overloads(node, _module(name).body))
            yield from ("```py", shown, "```", "", _words(node))
        case _:
            yield from ("```py", ast.unparse(node), "```")


def _method(name: str, function: _Function, owner: str) -> Iterator[str]:
    decorators = {ast.unparse(each) for each in function.decorator_list}
    kind = "property " if "property" in decorators else ""
    siblings = _overloads(function, _body_with(function, owner))
    shown = _signature(owner if name == "__init__" else f"{owner}.{name}", function, siblings)
    text = f"{owner}.{name} -> {_returns(function)}" if kind else shown
    yield from ("```py", text, "```", "")
    if words := _words(function):
        yield from (words, "")


def _body_with(function: _Function, owner: str) -> list[ast.stmt]:
    bodies = [_find(owner).body]
    if owner == "Bridge":
        bodies.append(_node("isthmus.client.bridge", "BridgeClient").body)
    return next(body for body in bodies if function in body)


def _overloads(function: _Function, body: list[ast.stmt]) -> list[_Function]:
    return [each for each in body if isinstance(each, _Function) and each.name == function.name and _is_overload(each)]


def _is_overload(function: _Function) -> bool:
    return any(ast.unparse(each) == "overload" for each in function.decorator_list)


def _methods(node: Any) -> Iterator[tuple[str, _Function]]:
    for each in node.body:
        if not isinstance(each, _Function) or _is_overload(each):
            continue
        plain = not each.name.startswith("_") or (each.name == "__init__" and node.name in ("Bridge", "ToolSet"))
        if plain:
            yield each.name, each


def _signature(name: str, function: _Function, overloads: list[_Function]) -> str:
    given = ast.unparse(ast.arguments(**_without_self(function.args)))
    waits = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    returns = list(dict.fromkeys(map(_returns, overloads))) or [_returns(function)]
    told = "" if function.name == "__init__" else f" -> {' or '.join(returns)}"
    parts = _split(given)
    line = f"{waits}{name}({', '.join(parts)}){told}"
    if len(line) <= 100:
        return line
    return f"{waits}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){told}"


def _split(given: str) -> list[str]:
    """At the commas between arguments, and at no other."""
    parts, depth = [""], 0
    for letter in given:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        elif letter == "=" and not depth and ": " in parts[-1]:
            parts[-1] += " = "
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _without_self(given: ast.arguments) -> dict[str, Any]:
    fields = {name: getattr(given, name) for name in given._fields}
    positional = [each for each in given.args if each.arg not in ("self", "cls")]
    return {**fields, "args": positional}


def _returns(function: _Function) -> str:
    return ast.unparse(function.returns) if function.returns is not None else "None"


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default, words."""
    for each, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    pass
                case _:
                    words = ""
            default = ast.unparse(each.value) if each.value is not None else ""
            yield each.target.id, ast.unparse(each.annotation), default, words


def _errors() -> Iterator[str]:
    from isthmus import errors

    _, tree, *rest = (inspect.getdoc(errors) or "").split("\n\n")
    yield from (
        "",
        "## Errors",
        "",
        "Of `isthmus.errors`, each below what it is:",
        "",
        "```text",
        dedent(tree),
        "```",
        "",
    )
    yield " ".join(rest[0].split("Anything")[0].split())


def _words(node: Any) -> str:
    """Of its docstring; what is indented there is code."""
    parts = (ast.get_docstring(node) or "").split("\n\n")
    shown = (f"```py\n{dedent(part)}\n```" if part.startswith("    ") else " ".join(part.split()) for part in parts)
    return "\n\n".join(shown)


def _find(name: str) -> Any:
    return _node_in(_module(name), name)


def _module(name: str) -> ast.Module:
    import isthmus

    return _source(isthmus._HOME[name])


def _node(module: str, name: str) -> Any:
    return _node_in(_source(module), name)


def _node_in(module: ast.Module, name: str) -> Any:
    for node in reversed(module.body):  # the last is the function itself, its overloads stand before it
        match node:
            case ast.ClassDef(name=found) | ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found):
                if found == name:
                    return node
            case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return node
    raise SystemExit(f"`{name}` was not found where `isthmus` says that it is")


@cache
def _source(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
