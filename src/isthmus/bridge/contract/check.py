"""`validate_output_contract`: does the answer keep the contract, and if not, what to tell whom.

In: a contract and the answer's text. Out: a `ContractCheck`. Models wrap their JSON in other text: candidates are the
whole answer, what stands in code fences, and values amid prose, each with its exact text (numbers and spacing as the
model wrote them). They are checked against the client's real schema; the longest that fits in the likeliest place is
the answer, with what surrounded it removed. The work is bounded by the length of the text, whatever the text is:
failed attempts are paid for out of a budget.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from isthmus.bridge.contract.validators import compile_schema, read_schema
from isthmus.bridge.types.plan import OutputContract
from isthmus.errors import OutputInvalid, OutputUnchecked

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_SPACE: Final = " \t\r\n"
_START: Final = re.compile(r'\{[ \t\r\n]*["}]|\[[ \t\r\n]*[\[\]{"\-0-9tfn]')
_FENCE: Final = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
_MOST_CANDIDATES: Final = 64
_MOST_FENCES: Final = 2 * _MOST_CANDIDATES
_LEAST_COST: Final = 64
"""What an attempt costs at least, in characters: an exception is dearer than reading a few of them."""
_LONGEST_INT: Final = 4000
"""Python refuses to read longer digit strings as `int`."""
_MOST_ERRORS: Final = 5
_LONGEST_ERROR: Final = 300
_HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class ContractCheck(msgspec.Struct, frozen=True, tag=True):
    valid: bool
    text: str
    """The answer: the JSON alone when something around it was removed (`cleaned`), else the text as it came."""
    cleaned: bool = False
    errors: tuple[str, ...] = ()
    """What is wrong, each with its place (a JSON pointer); empty when valid."""
    unchecked: str = ""
    """Why there was no check at all; empty: there was one."""


def applies_to(contract: OutputContract, status: str, has_calls: bool, refused: bool) -> bool:
    """Whether this turn's text is a final answer: tool calls, refusals and cut-off turns are left alone."""
    return contract.mode != "none" and status == "completed" and not has_calls and not refused


def validate_output_contract(contract: OutputContract, text: str) -> ContractCheck:
    """Check an answer. The result is the same for the same text, however it arrived."""
    if contract.mode == "none":
        return ContractCheck(True, text)
    canonical = contract.canonical or (None if contract.schema is None else read_schema(contract.schema))
    return check_answer(canonical, contract.max_regex, text)


def check_answer(canonical: bytes | None, max_regex: int, text: str) -> ContractCheck:
    """Check a text against a schema in canonical form; without one it must be a JSON object."""
    validator = None if canonical is None else compile_schema(canonical, max_regex)
    nearest: Candidate | None = None
    for index, group in enumerate(find_json(text)):
        group.sort(key=lambda candidate: -len(candidate.text))
        for candidate in group:
            if not any(_faults(candidate, validator)):
                whole = index == 0 and candidate.text == text.strip(" \t\r\n")
                return ContractCheck(True, text if whole else candidate.text, cleaned=not whole)
        nearest = nearest or group[0]
    if nearest is None:
        what = "the answer is empty" if not text.strip() else "the answer holds no JSON value that can be read"
        return ContractCheck(False, text, errors=(what,))
    return ContractCheck(False, text, errors=tuple(islice(_faults(nearest, validator), _MOST_ERRORS)))


def contract_failure(
    contract: OutputContract, check: ContractCheck, *, provider: str, model: str, response_id: str
) -> OutputInvalid | OutputUnchecked:
    """The error that ends a response whose answer breaks a binding contract, or could not be held against it."""
    facts = {"provider": provider, "model": model, "response_id": response_id}
    asked = f"the requested {contract.requested} format"
    if check.unchecked:
        words = f"the answer of `{model}` could not be checked against {asked}: {check.unchecked}"
        return OutputUnchecked(words, metadata=facts)
    of = f" `{contract.name}`" if contract.name else ""
    words = f"the answer of `{model}` does not match {asked}{of}: {'; '.join(check.errors)}"
    return OutputInvalid(words, metadata={**facts, "errors": list(check.errors)})


def repair_request(contract: OutputContract, check: ContractCheck) -> str:
    reminder = f"\n\n{contract.reminder}" if contract.reminder else ""
    problems = "\n".join(f"- {error}" for error in check.errors)
    return (
        f"Your last answer was checked against the required JSON format and failed:\n{problems}\n"
        f"Write the answer again: the corrected JSON value, whole, and nothing else.{reminder}"
    )


def _faults(candidate: Candidate, validator: Validator | None) -> Iterator[str]:
    if _HALF_PAIR.search(candidate.text) and not _is_text(candidate.value):
        yield "a string holds half of a surrogate pair, which no reader can count on"
    elif validator is None:
        if not isinstance(candidate.value, dict):
            yield "the answer must be a JSON object"
    else:
        try:
            for error in validator.iter_errors(candidate.value):
                steps = [str(step).replace("~", "~0").replace("/", "~1") for step in error.instance_path]
                yield (_cut(f"at `/{'/'.join(steps)}`") + ": " if steps else "") + _cut(error.message)
        except ValueError:  # Python's own bound on reading digits, met inside the validator
            yield "a number has more digits than can be checked"


def _is_text(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True


def _cut(words: str) -> str:
    """Short enough to tell; the end is kept, because it says what is wrong with the value at the beginning."""
    if len(words) <= _LONGEST_ERROR:
        return words
    return f"{words[: _LONGEST_ERROR // 2]} … {words[-_LONGEST_ERROR // 2 :]}"


class Candidate(msgspec.Struct, frozen=True):
    text: str
    value: Any


def find_json(text: str) -> Iterator[list[Candidate]]:
    """Candidates in groups: the whole text; what stands in fences; what stands in prose. Empty groups are left out."""
    whole = parse_json(text)
    if whole is not None:
        yield [whole]
        inner = parse_json(whole.value) if isinstance(whole.value, str) else None
        if inner is not None:  # JSON that was encoded twice
            yield [inner]
        return
    for find in (_in_fences, _in_prose):
        if found := find(text):
            yield found


def parse_json(text: str) -> Candidate | None:
    inner = text.strip(_SPACE)
    try:
        value, end = _DECODER.raw_decode(inner)
    except (ValueError, RecursionError):
        return None
    return Candidate(inner, value) if end == len(inner) else None


def _in_fences(text: str) -> list[Candidate]:
    marks = list(islice(_FENCE.finditer(text), _MOST_FENCES))
    pairs = zip(marks[::2], [*marks[1::2], None], strict=False)
    inside = (text[opened.end() : closed.start() if closed else len(text)] for opened, closed in pairs)
    return [found for found in map(parse_json, inside) if found is not None]


def _in_prose(text: str) -> list[Candidate]:
    found: list[Candidate] = []
    budget = 4 * len(text) + 64 * 1024
    start = _START.search(text)
    while start is not None and budget > 0 and len(found) < _MOST_CANDIDATES:
        at = start.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # The exception counts the lines up to its place: cheap per character, but from the very beginning.
            budget -= max(error.pos - at, _LEAST_COST) + error.pos // 32
            end = at + 1
        except (ValueError, RecursionError):
            budget -= max(len(text) - at, _LEAST_COST)
            end = at + 1
        else:
            found.append(Candidate(text[at:end], value))
        start = _START.search(text, end)
    return found


def _read_int(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _LONGEST_INT else Decimal(digits)


def _read_float(digits: str) -> float | Decimal:
    value = float(digits)
    return value if math.isfinite(value) else Decimal(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_read_int, parse_float=_read_float, parse_constant=_refuse_constant)
