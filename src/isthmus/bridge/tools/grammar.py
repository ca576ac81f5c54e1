"""A custom tool's input, checked against the grammar that the client gave for it.

In: the tool's `format` and a text. Out: whether the text matches. Three ways, the first that applies: a regular
grammar is matched in linear time at any size (see `regular`); a recursive one is parsed with LALR, whose *yes* is
certain; its *no* may only mean that one token of lookahead was too little, so a short text is parsed again with
Earley. Longer ones stay unchecked, and the verdict says so: Earley can take cubic time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from isthmus.bridge.tools import regular
from isthmus.bridge.tools.regular import NotRegular, Unreadable, load_lark_grammar

if TYPE_CHECKING:
    from lark import Lark

MAX_LALR: Final = 50_000
MAX_EARLEY: Final = 40
_MAX_EXPANSIONS: Final = 2_000
_COMMON: Final = (
    *("CNAME", "CR", "DECIMAL", "DIGIT", "ESCAPED_STRING", "FLOAT", "HEXDIGIT", "INT", "LCASE_LETTER", "LETTER"),
    *("LF", "NEWLINE", "NUMBER", "SIGNED_FLOAT", "SIGNED_INT", "SIGNED_NUMBER", "UCASE_LETTER", "WORD", "WS"),
    "WS_INLINE",
)

VerdictState = Literal["free", "matches", "differs", "unchecked"]


class GrammarVerdict(NamedTuple):
    state: VerdictState
    """`free`: there is no grammar to match."""
    detail: str = ""


def examine_input(format: Any, text: str) -> GrammarVerdict:
    """Whether the text is in the tool's language, and whether that could be checked at all."""
    if not isinstance(format, dict) or format.get("type") != "grammar":
        return _FREE
    syntax, definition = format.get("syntax"), format.get("definition")
    if not isinstance(definition, str) or not isinstance(syntax, str):
        return GrammarVerdict("unchecked", "the grammar has no definition")
    try:
        return _prepare_check(syntax, definition)(text)
    except RecursionError:
        return GrammarVerdict("unchecked", "it is nested too deeply")
    except ValueError:
        return GrammarVerdict("unchecked", "the text is not valid Unicode")


_FREE: Final = GrammarVerdict("free")
_MATCHES: Final = GrammarVerdict("matches")

Check = Callable[[str], GrammarVerdict]


@lru_cache(maxsize=64)
def _prepare_check(syntax: str, definition: str) -> Check:
    """Read a grammar once; one that cannot be read gives a check that says why."""
    try:
        match syntax:
            case "regex":
                return _check_pattern(syntax, regular.compile_regex(definition))
            case "lark":
                try:
                    return _check_pattern(syntax, regular.compile_regular_grammar(definition))
                except NotRegular:
                    return _check_recursive(definition)
        reason = f"the grammar syntax `{syntax}` is not known here"
    except Unreadable as error:
        reason = str(error)
    except RecursionError:
        reason = "the grammar is nested too deeply"
    unchecked = GrammarVerdict("unchecked", reason)
    return lambda text: unchecked


def _check_pattern(syntax: str, matches: Callable[[str], bool]) -> Check:
    differs = GrammarVerdict("differs", f"it does not match the tool's {syntax} grammar")
    return lambda text: _MATCHES if matches(text) else differs


def _check_recursive(definition: str) -> Check:
    lalr, earley = _compile_recursive(definition)

    def check(text: str) -> GrammarVerdict:
        if lalr is not None and len(text) <= MAX_LALR and _parse(lalr, text).state == "matches":
            return _MATCHES
        if len(text) > MAX_EARLEY:
            return GrammarVerdict("unchecked", f"the grammar is recursive and the text over {MAX_EARLEY} characters")
        return _parse(earley, text)

    return check


def _parse(parser: Lark, text: str) -> GrammarVerdict:
    from lark.exceptions import UnexpectedEOF, UnexpectedInput

    try:
        parser.parse(text)
    except UnexpectedEOF:
        return GrammarVerdict("differs", "it does not match the tool's lark grammar: it ends too early")
    except UnexpectedInput as error:
        where = f"at line {error.line}, column {error.column}"
        return GrammarVerdict("differs", f"it does not match the tool's lark grammar {where}")
    return _MATCHES


def _compile_recursive(definition: str) -> tuple[Lark | None, Lark]:
    from lark import Lark
    from lark.exceptions import LarkError

    for _, _, tree, _ in load_lark_grammar(definition).rule_defs:
        if tree is not None and _count_expansions(tree) > _MAX_EXPANSIONS:
            raise Unreadable("the grammar's options multiply beyond reason")
    try:
        full = Lark(definition, parser="earley")
    except (LarkError, AssertionError, ValueError, re.error) as error:
        raise Unreadable("the grammar cannot be compiled") from error
    if not all(map(_is_tame, _patterns(full))):
        raise Unreadable("the grammar is recursive and its terminals too involved to be matched safely")
    try:
        return Lark(definition, parser="lalr"), full
    except LarkError:
        return None, full


def _count_expansions(tree: Any) -> int:
    """Into how many plain alternatives Lark would multiply a rule out; saturates above the bound."""
    name = str(getattr(tree, "data", ""))
    if name not in ("expansions", "expansion", "alias", "maybe", "expr", "value"):
        return 1
    inner = [_count_expansions(child) for child in tree.children if hasattr(child, "data")] or [1]
    match name:
        case "expansions":
            count = sum(inner)
        case "maybe":
            count = inner[0] + 1
        case "expr":
            operator, *times = map(str, tree.children[1:])
            most = int(times[-1]) if operator == "~" else 1
            powers = range(int(times[0]) if operator == "~" else 0, most + 1)
            count = _MAX_EXPANSIONS + 1 if most > 50 else sum(inner[0] ** power for power in powers)
        case _:
            count = prod(inner)
    return min(count, _MAX_EXPANSIONS + 1)


_ATOM: Final = r"(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\](){}|*+?^$])"
_TAME: Final = re.compile(rf"(?:\(\?[imsx]+:)?(?:{_ATOM}\??)*(?:(?:{_ATOM}|\(\?:{_ATOM}\))[*+]\??)?{_ATOM}*\)?")


def _is_tame(pattern: str) -> bool:
    """Whether Python's backtracking engine takes linear time: one repetition, no group in it, few options. Lark matches
    terminals with `re`; a client's terminal must not be able to keep it busy for ever."""
    few = len(pattern) <= 200 and pattern.count("?") <= 4
    return pattern in _common_patterns() or (few and _TAME.fullmatch(pattern) is not None)


def _patterns(parser: Any) -> list[str]:
    return [terminal.pattern.to_regexp() for terminal in parser.terminals]


@lru_cache(maxsize=1)
def _common_patterns() -> frozenset[str]:
    """The terminals of Lark's own `common` library, which are known to be harmless."""
    from lark import Lark

    names = ", ".join(_COMMON)
    return frozenset(_patterns(Lark(f"start: {' | '.join(_COMMON)}\n%import common ({names})\n")))
