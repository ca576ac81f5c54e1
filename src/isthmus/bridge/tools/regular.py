"""Client grammars turned into one regular expression, matched in linear time.

In: a Lark grammar or a regular expression of a custom tool. Out: a matcher, or a reason why there is none.
The grammars that agents really send (patches, scripts with a pragma line) have no recursion, so they describe
regular languages: rules are written out into one pattern for the Rust engine behind `jsonschema_rs`, which never
backtracks. A client's pattern never reaches Python's own `re`, which can be made to run for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lark.load_grammar import Grammar

Matcher = Callable[[str], bool]

MAX_DEFINITION: Final = 16_000
_MAX_PATTERN: Final = 100_000
_MAX_NODES: Final = 20_000
_MAX_COMPILED: Final = 8 * 1024 * 1024  # bytes of a pattern once compiled


class NotRegular(Exception):
    """The grammar is fine, but it cannot be written as one regular expression."""


class Unreadable(Exception):
    """The definition is not one that we can (or want to) read; the message says why."""


def compile_regex(pattern: str) -> Matcher:
    """A matcher for whole texts, with the meaning that the Rust `regex` crate gives to `pattern`."""
    import jsonschema_rs

    if len(pattern) > _MAX_PATTERN:
        raise Unreadable("the pattern is too long")
    schema = {"type": "string", "pattern": f"\\A(?:{_translate(pattern)})\\z"}
    try:
        limits = jsonschema_rs.RegexOptions(size_limit=_MAX_COMPILED, dfa_size_limit=_MAX_COMPILED)
        validator = jsonschema_rs.Draft202012Validator(schema, pattern_options=limits)
    except ValueError as error:
        raise Unreadable("the pattern is not one that a linear-time engine can match") from error
    return validator.is_valid


def compile_regular_grammar(definition: str) -> Matcher:
    """A matcher for a Lark grammar without recursion; `NotRegular` or `Unreadable` otherwise."""
    pattern = _Lowering(load_lark_grammar(definition)).pattern()
    try:
        return compile_regex(pattern)
    except Unreadable as error:
        raise NotRegular(str(error)) from error


def load_lark_grammar(definition: str) -> Grammar:
    """Lark's own reading of a definition, before it is expanded into anything larger."""
    from lark.exceptions import LarkError
    from lark.load_grammar import GrammarBuilder

    if len(definition) > MAX_DEFINITION:
        raise Unreadable("the grammar is too long")
    if any(source != "common" for source in _IMPORT.findall(definition)):
        # Lark would look for other grammars on this machine's disk.
        raise Unreadable("the grammar imports from elsewhere than `common`")
    if _is_explosive(definition):
        raise Unreadable("the grammar's terminals multiply beyond reason")
    builder = GrammarBuilder()
    try:
        builder.load_grammar(definition, "<client>")
        return builder.build()
    except (LarkError, AssertionError, ValueError, OSError, RecursionError) as error:
        raise Unreadable(f"the grammar cannot be read: {str(error).strip().splitlines()[0][:120]}") from error


_IMPORT: Final = re.compile(r"^[ \t]*%import[ \t]+(\.*\w*)", re.MULTILINE)
_LITERAL: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/(?:\\.|[^/\\\n])+/')
_TERMINAL: Final = re.compile(r"^[ \t]*(?:%(?:extend|override)[ \t]+)?(_?[A-Z][A-Z0-9_]*)", re.MULTILINE)
_REFERENCE: Final = re.compile(r"\b_?[A-Z][A-Z0-9_]*\b")


def _is_explosive(definition: str) -> bool:
    """Whether terminals refer to each other so often that Lark, which copies them into each other, would not end."""
    bare = _LITERAL.sub('""', definition)
    starts = [*_TERMINAL.finditer(bare), None]
    sizes: dict[str, int] = {}
    bodies: dict[str, list[str]] = {}
    for begin, following in pairwise(starts):
        if begin is not None:
            body = bare[begin.end() : following.start() if following else len(bare)]
            bodies.setdefault(begin[1], []).extend(_REFERENCE.findall(body))

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = 1  # A terminal inside itself is an error that Lark reports.
            sizes[name] = min(_MAX_NODES, 1 + sum(map(size, bodies.get(name, ()))))
        return sizes[name]

    return any(size(name) >= _MAX_NODES // 4 for name in bodies)


class _Lowering:
    def __init__(self, grammar: Grammar) -> None:
        self._trees: dict[str, Any] = {name: tree for name, (tree, _) in grammar.term_defs}
        self._terminals = frozenset(self._trees)
        self._templates = {name for name, params, _, _ in grammar.rule_defs if params}
        self._trees.update({name: tree for name, _, tree, _ in grammar.rule_defs})
        self._ignored = [str(name) for name in grammar.ignore]
        self._done: dict[str, str] = {}
        self._open: set[str] = set()
        self._nodes = 0
        self._gap = ""

    def pattern(self) -> str:
        if "start" not in self._trees:
            raise Unreadable("the grammar has no rule `start`")
        if self._ignored:
            self._gap = f"(?:{'|'.join(self._rule(name) for name in self._ignored)})*"
        return self._gap + self._rule("start")

    def _rule(self, name: str) -> str:
        if name in self._done:
            return self._done[name]
        tree = self._trees.get(name)
        if tree is None or name in self._templates or name in self._open:
            raise NotRegular(f"`{name}` is recursive, a template or declared outside")
        self._open.add(name)
        gap, self._gap = self._gap, "" if name in self._terminals else self._gap
        written = self._tree(tree)
        self._gap = gap
        self._open.discard(name)
        self._done[name] = written
        return written

    def _tree(self, tree: Any) -> str:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise NotRegular("the grammar is too large to write out")
        children = tree.children
        match str(tree.data):
            case "expansions":
                written = "(?:" + "|".join(map(self._tree, children)) + ")"
            case "expansion":
                written = "".join(map(self._tree, children))
            case "alias":
                written = self._tree(children[0])
            case "maybe":
                written = f"(?:{self._tree(children[0])})?"
            case "expr":
                operator, *bounds = map(str, children[1:])
                times = operator if operator != "~" else f"{{{bounds[0]},{bounds[-1]}}}"
                written = f"(?:{self._tree(children[0])}){times}"
            case "value":
                name = str(getattr(children[0], "name", ""))
                written = self._rule(name) if name else self._tree(children[0])
                written += self._gap if name in self._terminals else ""
            case "literal" | "range":
                written = _write_literal(tree) + self._gap
            case other:
                raise NotRegular(f"`{other}` cannot be written as a pattern")
        if len(written) > _MAX_PATTERN:
            raise NotRegular("the grammar is too large to write out")
        return written


def _write_literal(tree: Any) -> str:
    from lark.exceptions import LarkError
    from lark.lexer import PatternStr
    from lark.load_grammar import PrepareLiterals
    from lark.tree import Tree

    try:
        pattern: Any = PrepareLiterals().transform(Tree(tree.data, list(tree.children))).children[0]
    except (LarkError, AssertionError, ValueError) as error:
        raise Unreadable("the grammar has a literal that cannot be read") from error
    flags = "".join(sorted(set(pattern.flags) & set("imsx")))
    body = pattern.value
    if isinstance(pattern, PatternStr):
        body = "".join(char if char.isalnum() else f"\\x{{{ord(char):x}}}" for char in body)
    return f"(?{flags}:{body})"


_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
_ESCAPED: Final[Mapping[str, tuple[str, str]]] = {
    "d": (r"\p{Nd}", r"\p{Nd}"),
    "D": (r"\P{Nd}", r"\P{Nd}"),
    "w": (f"[{_WORD}]", _WORD),
    "W": (f"[^{_WORD}]", r"\W"),
    "Z": (r"\z", r"\z"),
}
"""Outside and inside a class. `jsonschema_rs` reads `\\d` and `\\w` as ECMA does, ASCII only."""


def _translate(pattern: str) -> str:
    """The pattern in the words of the engine at hand, with the meaning of the Rust `regex` crate."""
    out: list[str] = []
    in_class = False
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            known = _ESCAPED.get(pattern[index + 1])
            out.append(known[in_class] if known else pattern[index : index + 2])
            index += 2
            continue
        if in_class and pattern[index : index + 2] in ("[:", "&&", "--", "~~"):
            raise Unreadable("the pattern uses class operations that this engine reads differently")
        if char == "[":
            in_class = True
        elif char == "]" and in_class and not pattern.endswith(("[", "[^"), 0, index):
            in_class = False
        out.append(char)
        index += 1
    return "".join(out)
