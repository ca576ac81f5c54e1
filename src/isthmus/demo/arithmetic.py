"""Sums in plain words: "what is 12*7?" → `12*7` → 84. Exact, without `eval`, and bounded."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

_LEAD: Final = re.compile(
    r"\s*(?:please\s+)?(?:what(?:\s+is|['’]s)|how\s+much\s+is|calculate|compute)?\s*", re.IGNORECASE
)
_SUM: Final = re.compile(r"(?=.*\d\)?\s*[-+*/])[\d\s.()+*/-]+")
_DATE: Final = re.compile(r"\d{4}-\d\d?-\d\d?")
_OPERATORS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_LONGEST: Final = 200
_LARGEST: Final = 10**30


def find_expression(text: str) -> str | None:
    """The sum that the whole text asks for, if it does."""
    if len(text) > _LONGEST:
        return None
    asked = _LEAD.sub("", text, count=1).rstrip(" ?=!.\n")
    return asked if _SUM.fullmatch(asked) and not _DATE.fullmatch(asked) else None


def solve(expression: str) -> str | None:
    """The value in plain digits; `None` where there is none that can be said."""
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    except ZeroDivisionError:
        return "undefined, for nothing can be divided by zero"
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number):
            value = Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = -_value(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            value = _OPERATORS[type(sign)](_value(left), _value(right))
        case _:
            raise ValueError("not a sum")
    if abs(value) > _LARGEST or value.denominator > _LARGEST:
        raise ValueError("too large to say")
    return value
