"""Sums in plain words: "what is 12*7?" → `12*7` → 84. Exact, without `eval`, and bounded."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

_LEAD: Final = r"(?:please\s+)?(?:what(?:\s+is|['’]s)|how\s+much\s+is|calculate|compute|solve|evaluate)?\s*"
_SIGNS: Final = (
    (r"\bplus\b", "+"),
    (r"\bminus\b", "-"),
    (r"\b(?:times|multiplied by)\b", "*"),
    (r"\b(?:divided by|over)\b", "/"),
    (r"\bto the power of\b|\^", "**"),
    (r"(?<=[\d)])\s*[x×]\s*(?=[\d(])", "*"),
    (r"÷", "/"),
)
_SUM: Final = re.compile(r"[\d\s.()+*/%-]*\d[\d\s.()+*/%-]*")
_OPERATORS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}
_LONGEST: Final = 200
_LARGEST: Final = 10**30


def find_expression(text: str) -> str | None:
    """The sum that the whole text asks for, if it does."""
    if len(text) > _LONGEST:
        return None
    asked = re.sub(rf"^\s*{_LEAD}", "", text, count=1, flags=re.IGNORECASE).rstrip(" ?=!.\n")
    for words, sign in _SIGNS:
        asked = re.sub(words, sign, asked, flags=re.IGNORECASE)
    asked = re.sub(r"\s+", " ", asked).strip()
    is_sum = _SUM.fullmatch(asked) and re.search(r"[\d)]\s*[-+*/%]", asked)
    is_date = re.fullmatch(r"\d{4}-\d\d?-\d\d?", asked)
    return asked if is_sum and not is_date else None


def solve(expression: str) -> str | None:
    """The value in plain digits; `None` where there is none that can be said."""
    try:
        value = _value(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    except ZeroDivisionError:
        return "undefined, for nothing can be divided by zero"
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.10g}"


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(Fraction(str(number)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _bounded(_OPERATORS[type(sign)](_value(left), _value(right)))
    raise ValueError("not a sum")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > 100:
        raise ValueError("not a power that can be said")
    return _bounded(Fraction(base**exponent.numerator))


def _bounded(value: Fraction) -> Fraction:
    if abs(value) > _LARGEST or value.denominator > _LARGEST:
        raise ValueError("too large to say")
    return value
