"""Tool markup that leaked into the text → tool calls, for models whose data says so and only when tools were offered.

In: text as it comes. Out: `Text` for words, calls for markup that is complete and names an offered tool, and a
`Markup` notice. Incremental: text may be cut anywhere and gives the same result. What could still become an
opening is held back, nothing else; a block that is not (or never becomes) such a call comes out as the text it was.
A block must be closed before it counts: models also talk about their own syntax.

The forms in which model families write calls, as the engines' own tool parsers read them:

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
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Markup, Text
from isthmus.bridge.dialects.chat.thinking import held_back
from isthmus.protocol.json import NOT_JSON, JsonObject, read_json

Schemas = Mapping[str, JsonObject | None]
Calls = list[tuple[str, str]]

_MORE: Final[Calls] = []  # the block does not read as a whole yet: its closing tag stood inside a value
_HEAD: Final = 256  # how much of a block's beginning decides whether it can become a call: no tool name is longer
_LONGEST: Final = 32  # no closing tag is longer
_MAX_BLOCK: Final = 1 << 20  # characters that a block may have before it is taken for text after all


class LeakedTools:
    """Reads the text of one reply. Slots of leaked calls are negative: the vendor's own count from zero."""

    def __init__(self, family: str, schemas: Schemas) -> None:
        self._forms = _FAMILIES[family]
        self._openings = _OPENINGS[family]
        self._schemas = schemas
        self._held = ""  # an opening that is not whole yet
        self._space = ""  # white space that belongs to a block if one follows, and to the text otherwise
        self._form: _Form | None = None
        """The form of the block that is being collected, and from here on what is known of it."""
        self._begins: tuple[str, ...] = ()  # how it must begin; nothing more to see once it has
        self._opening = self._tail = ""
        self._block: list[str] = []
        self._size = self._read = self._slots = 0
        self._after = self._told = False

    def feed(self, text: str, out: list[Delta]) -> None:
        while text:
            text = self._look(text, out) if self._form is None else self._collect(self._form, text, out)

    def end(self, out: list[Delta]) -> None:
        """The text is over (or something else begins): a block that is still open was text."""
        while self._form is not None:
            self.feed(self._release(out), out)
        held, self._held = self._held, ""
        self._say(held, out)
        if self._space:
            out.append(Text(self._space))
            self._space = ""

    def _look(self, text: str, out: list[Delta]) -> str:
        """Outside: words go out, an opening begins a block. Gives what is left to read."""
        text = self._held + text
        self._held = ""
        found = self._openings.search(text)
        if found is None:
            keep = held_back(text, self._forms, plain=_plain)
            self._held = text[len(text) - keep :]
            self._say(text[: len(text) - keep], out)
            return ""
        self._say(text[: found.start()], out)
        form = self._forms[_plain(found[0])]
        if form is not None:
            self._form, self._opening, self._tail = form, found[0], ""
            self._begins = tuple(begin.replace("%s", name) for begin in form.begins for name in self._schemas)
            self._size = self._read = 0
        elif not self._after:  # behind a call it is the end of a wrapper whose beginning was missing
            self._say(found[0], out)
        return text[found.end() :]

    def _collect(self, form: _Form, text: str, out: list[Delta]) -> str:
        """Inside: more of the block, until it is closed, or cannot be a call any more."""
        self._block.append(text)
        self._size += len(text)
        if self._begins:
            head = _plain("".join(self._block).lstrip())
            if head.startswith(self._begins):
                self._begins = ()
            elif self._size > _HEAD or not any(begin.startswith(head) for begin in self._begins):
                return self._release(out)
        window = self._tail + text
        self._tail = window[-_LONGEST:]
        if ">" in text and form.closing.search(window) is not None:
            block = "".join(self._block)
            self._block = [block]
            while (found := form.closing.search(block, self._read)) is not None:
                calls = form.read(block[: found.start()], self._schemas)
                if calls is None:
                    return self._release(out)
                if calls is not _MORE:
                    self._form, self._space, self._block = None, "", []
                    self._tell(calls, out)
                    return block[found.end() :]
                self._read = found.end()
        return self._release(out) if self._size > _MAX_BLOCK else ""

    def _release(self, out: list[Delta]) -> str:
        """The block was text: its opening is said, the rest is read anew."""
        block = "".join(self._block)
        self._form, self._block = None, []
        self._say(self._opening, out)
        return block

    def _tell(self, calls: Calls, out: list[Delta]) -> None:
        if not self._told:
            self._told = True
            out.append(Markup("tool calls that leaked into the text as markup were read as calls"))
        for name, arguments in calls:
            self._slots -= 1
            out += (CallOpened(self._slots, None, name), CallArguments(self._slots, arguments))
        self._after = True

    def _say(self, text: str, out: list[Delta]) -> None:
        """Words, with the white space at their end held until it is known what follows."""
        if self._after:
            text = text.lstrip()
        if text:
            self._after = False
            text = self._space + text
            words = text.rstrip()
            self._space = text[len(words) :]
            if words:
                out.append(Text(words))


# ── the forms ──────────────────────────────────────────────────────────────────────────────────────


class _Form(NamedTuple):
    begins: tuple[str, ...]  # how a block may begin; `%s` is the name of a tool
    closing: re.Pattern[str]
    read: Callable[[str, Schemas], Calls | None]  # the calls of a closed block; `None`: it is none, `_MORE`: read on


_BARS: Final = re.compile("[｜|‖]{1,2}")


def _plain(text: str) -> str:
    """All spellings of the bars as one, so that a beginning can be compared with a beginning."""
    return _BARS.sub("|", text)


def _tag(tag: str) -> str:
    """The pattern of a tag, with any spelling of its bars."""
    return re.escape(tag).replace(r"\|", _BARS.pattern)


_PARAMETER: Final = re.compile(r"<parameter=([^>\n]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_PAIR: Final = re.compile(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_INVOKE: Final = re.compile(
    rf"""\s*{_tag('<|DSML|invoke name="')}([^"]+)"\s*>(.*?){_tag("</|DSML|invoke>")}""", re.DOTALL
)
_ARGUMENT: Final = re.compile(
    rf"""\s*{_tag('<|DSML|parameter name="')}([^"]+)"(?:\s+string="(true|false)")?\s*>"""
    rf"""(.*?){_tag("</|DSML|parameter>")}""",
    re.DOTALL,
)


def _read_qwen(block: str, schemas: Schemas) -> Calls | None:
    block = block.strip()
    if not block.startswith("{"):
        if not block.endswith("</function>"):
            return None if "</function>" in block else _MORE
        return _read_coder(block.removeprefix("<function=").removesuffix("</function>"), schemas)
    call = _json(block)
    if not isinstance(call, dict):
        return _MORE
    name, arguments = call.get("name"), call.get("arguments", call.get("parameters", {}))
    values = _json(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(name, str) or name not in schemas or not isinstance(values, dict):
        return None
    return [_call(name, values)]


def _read_coder(block: str, schemas: Schemas) -> Calls | None:
    name, _, parameters = block.partition(">")
    name = name.strip()
    if name not in schemas:
        return None
    values = {
        key.strip(): _value(text.removeprefix("\n").removesuffix("\n"), key.strip(), schemas[name])
        for key, text in _PARAMETER.findall(parameters)
    }
    return [_call(name, values)]


def _read_glm(block: str, schemas: Schemas) -> Calls | None:
    inner = block.lstrip()
    name = re.split(r"[\s<]", inner, maxsplit=1)[0]
    pairs, left = _each(_PAIR, inner[len(name) :])
    if name not in schemas or left:
        return _MORE if name in schemas and left.startswith("<arg_") else None
    return [_call(name, {key.strip(): _value(text, key.strip(), schemas[name]) for key, text in pairs})]


def _read_dsml(block: str, schemas: Schemas) -> Calls | None:
    calls: Calls = []
    invokes, left = _each(_INVOKE, block)
    for name, inner in invokes:
        arguments, more = _each(_ARGUMENT, inner)
        if name not in schemas or more:
            return None
        values: JsonObject = {}
        for key, form, text in arguments:
            values[key] = text if form == "true" else _value(text, key, None if form == "false" else schemas[name])
        calls.append(_call(name, values))
    return calls if calls and not left else None


def _read_invoke(block: str, schemas: Schemas) -> Calls | None:
    return _read_dsml(f'<|DSML|invoke name="{block}</|DSML|invoke>', schemas)


def _call(name: str, arguments: JsonObject) -> tuple[str, str]:
    return name, msgspec.json.encode(arguments).decode()


def _each(pattern: re.Pattern[str], text: str) -> tuple[list[tuple[Any, ...]], str]:
    """The groups of all matches that follow each other, and what is left behind them."""
    found: list[tuple[Any, ...]] = []
    position = 0
    while (match := pattern.match(text, position)) is not None:
        found.append(match.groups())
        position = match.end()
    return found, text[position:].strip()


def _value(text: str, key: str, schema: JsonObject | None) -> Any:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    wanted = properties.get(key) if isinstance(properties, dict) else None
    return text if isinstance(wanted, dict) and wanted.get("type") == "string" else _json(text)


def _json(text: str) -> Any:
    """The value that the text is; the text itself where it is none."""
    value = read_json(text)
    return text if value is NOT_JSON else value


_TOOL_CALL_END: Final = re.compile("</tool_call>")
_WRAPPED: Final = _Form(
    ('<|DSML|invoke name="',), re.compile(_tag("</|DSML|") + "(?:tool_calls|function_calls)>"), _read_dsml
)
_FAMILIES: Final[Mapping[str, Mapping[str, _Form | None]]] = {
    "qwen": {
        "<tool_call>": _Form(("{", "<function="), _TOOL_CALL_END, _read_qwen),
        "<function=": _Form(("%s>",), re.compile("</function>"), _read_coder),
        "</tool_call>": None,
    },
    "glm": {"<tool_call>": _Form(("%s<", "%s\n", "%s ", "%s\t", "%s\r"), _TOOL_CALL_END, _read_glm)},
    "dsml": {
        "<|DSML|tool_calls>": _WRAPPED,
        "<|DSML|function_calls>": _WRAPPED,
        '<|DSML|invoke name="': _Form(('%s"',), re.compile(_tag("</|DSML|invoke>")), _read_invoke),
        "</|DSML|tool_calls>": None,
        "</|DSML|function_calls>": None,
    },
}
"""Forms by the tag that opens a block; `None`: it only ends a wrapper."""
_OPENINGS: Final = {name: re.compile("|".join(map(_tag, forms))) for name, forms in _FAMILIES.items()}
