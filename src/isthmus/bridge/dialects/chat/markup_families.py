"""The forms in which model families write tool calls, as the engines' own tool parsers read them.

    qwen   <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>
           <tool_call><function=f><parameter=a>1</parameter></function></tool_call>    (wrapper may be missing)
    glm    <tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>
    dsml   <｜DSML｜tool_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>
           </｜DSML｜invoke></｜DSML｜tool_calls>    (V3.2 says `function_calls`; the wrapper may be missing)

The bars of DSML are seen as `｜`, `|` and `‖`, single and double (vllm#48931, cline#13348, checked 2026-11-15).
A value is text where the tool's schema says `string` (DSML says it itself), JSON where it can be read so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isthmus.protocol.json import JsonObject

Schemas = Mapping[str, JsonObject | None]
Calls = list[tuple[str, str]]

MORE: Final[Calls] = []
"""The block does not read as a whole yet: its closing tag stood inside a value."""

HEAD: Final = 256
"""How much of a block's beginning decides whether it can become a call: no tool name is longer."""
LONGEST: Final = 32
"""No closing tag is longer."""


@dataclass(frozen=True, slots=True)
class Family:
    opening: re.Pattern[str]
    partial: Callable[[str], int]
    """How many characters at the end of a text could be the beginning of an opening."""
    closing: Callable[[str], re.Pattern[str]]
    plausible: Callable[[str, str, Schemas], bool]
    """Whether a block that begins so can still become a call."""
    read: Callable[[str, str, Schemas], Calls | None]
    """The calls of a closed block; `None`: it is none, `MORE`: read on."""
    stray: Callable[[str], bool] = lambda opening: False
    """Whether an opening is only the end of a wrapper whose beginning was missing."""


# ── qwen ───────────────────────────────────────────────────────────────────────────────────────────

_TAG: Final = "<tool_call>"
_END: Final = "</tool_call>"
_FUNCTION: Final = "<function="
_QWEN_OPENING: Final = re.compile(r"<tool_call>|<function=|</tool_call>")
_CLOSE_TAG: Final = re.compile(_END)
_CLOSE_FUNCTION: Final = re.compile("</function>")
_CODER: Final = re.compile(r"\s*<function=([^>\n]+)>(.*?)</function>\s*\Z", re.DOTALL)
_PARAMETER: Final = re.compile(r"<parameter=([^>\n]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)


def _qwen_closing(opening: str) -> re.Pattern[str]:
    return _CLOSE_TAG if opening == _TAG else _CLOSE_FUNCTION


def _qwen_plausible(opening: str, block: str, schemas: Schemas) -> bool:
    if opening == _END:
        return False
    if opening == _FUNCTION:
        return _names(block.partition(">"), schemas)
    inner = block.lstrip()
    return not inner or inner[0] == "{" or _FUNCTION.startswith(inner[: len(_FUNCTION)])


def _read_qwen(opening: str, block: str, schemas: Schemas) -> Calls | None:
    if opening == _FUNCTION:
        return _read_coder(f"{_FUNCTION}{block}</function>", schemas)
    if not block.lstrip().startswith("{"):
        return _read_coder(block, schemas) if "</function>" in block else MORE
    try:
        call = msgspec.json.decode(block)
    except (msgspec.DecodeError, RecursionError):
        return MORE
    name, arguments = call.get("name"), call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, RecursionError):
            return None
    if not isinstance(name, str) or name not in schemas or not isinstance(arguments, dict):
        return None
    return [(name, _encode(arguments))]


def _read_coder(block: str, schemas: Schemas) -> Calls | None:
    found = _CODER.fullmatch(block)
    name = found[1].strip() if found else ""
    if found is None or name not in schemas:
        return None
    values = {
        key.strip(): _value(text.removeprefix("\n").removesuffix("\n"), key.strip(), schemas[name])
        for key, text in _PARAMETER.findall(found[2])
    }
    return [(name, _encode(values))]


# ── glm ────────────────────────────────────────────────────────────────────────────────────────────

_GLM_OPENING: Final = re.compile(_TAG)
_PAIR: Final = re.compile(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)


def _glm_plausible(opening: str, block: str, schemas: Schemas) -> bool:
    return _names(_split_name(block), schemas)


def _split_name(block: str) -> tuple[str, str, str]:
    inner = block.lstrip()
    found = re.search(r"[\s<]", inner)
    return (inner[: found.start()], found[0], inner[found.start() :]) if found else (inner, "", "")


def _read_glm(opening: str, block: str, schemas: Schemas) -> Calls | None:
    name, _, rest = _split_name(block)
    if name not in schemas:
        return None
    values: dict[str, Any] = {}
    position = 0
    while (pair := _PAIR.match(rest, position)) is not None:
        key = pair[1].strip()
        values[key] = _value(pair[2], key, schemas[name])
        position = pair.end()
    left = rest[position:].strip()
    if left:
        return MORE if left.startswith("<arg_") else None
    return [(name, _encode(values))]


# ── dsml ───────────────────────────────────────────────────────────────────────────────────────────

_BARS: Final = "[｜|‖]{1,2}"
_DSML: Final = f"{_BARS}DSML{_BARS}"
_WRAPPER: Final = "(?:tool_calls|function_calls)"
_DSML_OPENING: Final = re.compile(f'</?{_DSML}{_WRAPPER}>|<{_DSML}invoke name="')
_DSML_END: Final = re.compile(f"</{_DSML}{_WRAPPER}>")
_INVOKE_END: Final = re.compile(f"</{_DSML}invoke>")
_INVOKE: Final = re.compile(f'\\s*<{_DSML}invoke name="([^"]+)"\\s*>(.*?)</{_DSML}invoke>', re.DOTALL)
_ARGUMENT: Final = re.compile(
    f'\\s*<{_DSML}parameter name="([^"]+)"(?:\\s+string="(true|false)")?\\s*>(.*?)</{_DSML}parameter>', re.DOTALL
)
_SPELLINGS: Final = (
    "<|DSML|tool_calls>",
    "<|DSML|function_calls>",
    '<|DSML|invoke name="',
    "</|DSML|tool_calls>",
    "</|DSML|function_calls>",
)


def _is_invoke(opening: str) -> bool:
    return opening.endswith('"')


def _is_end(opening: str) -> bool:
    return opening.startswith("</")


def _dsml_closing(opening: str) -> re.Pattern[str]:
    return _INVOKE_END if _is_invoke(opening) else _DSML_END


def _dsml_plausible(opening: str, block: str, schemas: Schemas) -> bool:
    if _is_end(opening):
        return False
    if _is_invoke(opening):
        return _names(block.partition('"'), schemas)
    inner = _plain(block.lstrip())
    return _SPELLINGS[2].startswith(inner[: len(_SPELLINGS[2])])


def _read_dsml(opening: str, block: str, schemas: Schemas) -> Calls | None:
    calls: Calls = []
    rest = f'<|DSML|invoke name="{block}</|DSML|invoke>' if _is_invoke(opening) else block
    position = 0
    while (invoke := _INVOKE.match(rest, position)) is not None:
        values = _read_arguments(invoke[2], schemas.get(invoke[1]))
        if invoke[1] not in schemas or values is None:
            return None
        calls.append((invoke[1], _encode(values)))
        position = invoke.end()
    return calls if calls and not rest[position:].strip() else None


def _read_arguments(text: str, schema: JsonObject | None) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    position = 0
    while (given := _ARGUMENT.match(text, position)) is not None:
        key, form, value = given.groups()
        values[key] = value if form == "true" else _value(value, key, None if form == "false" else schema)
        position = given.end()
    return None if text[position:].strip() else values


def _plain(text: str) -> str:
    """All spellings of the bars as one, so that a beginning can be compared with a beginning."""
    return re.sub("[｜|‖]{1,2}", "|", text)


# ── shared ─────────────────────────────────────────────────────────────────────────────────────────


def _partial_of(*openings: str, plain: Callable[[str], str] = str) -> Callable[[str], int]:
    longest = max(map(len, openings)) + 4

    def partial(text: str) -> int:
        start = text.rfind("<", max(len(text) - longest, 0))
        if start < 0:
            return 0
        tail = plain(text[start:])
        return len(text) - start if any(opening.startswith(tail) for opening in openings) else 0

    return partial


def _names(parts: tuple[str, str, str], schemas: Schemas) -> bool:
    """Whether what stands before the separator is an offered tool, or can still become one."""
    name, ended, _ = parts
    return name in schemas if ended else any(known.startswith(name) for known in schemas)


def _value(text: str, key: str, schema: JsonObject | None) -> Any:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    wanted = properties.get(key) if isinstance(properties, dict) else None
    if isinstance(wanted, dict) and wanted.get("type") == "string":
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _encode(arguments: Mapping[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode()


FAMILIES: Final[Mapping[str, Family]] = {
    "qwen": Family(
        _QWEN_OPENING,
        _partial_of(_TAG, _FUNCTION, _END),
        _qwen_closing,
        _qwen_plausible,
        _read_qwen,
        stray=lambda opening: opening == _END,
    ),
    "glm": Family(_GLM_OPENING, _partial_of(_TAG), lambda opening: _CLOSE_TAG, _glm_plausible, _read_glm),
    "dsml": Family(
        _DSML_OPENING,
        _partial_of(*_SPELLINGS, plain=_plain),
        _dsml_closing,
        _dsml_plausible,
        _read_dsml,
        stray=_is_end,
    ),
}
