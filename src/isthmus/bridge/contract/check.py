"""`validate_output_contract`: does the answer keep the contract, and if not, what to tell whom.

In: a contract and the answer's text. Out: a `ContractCheck`. The candidates found in the text are checked against the
client's real schema; the longest that fits in the likeliest place is the answer, with what surrounded it removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from isthmus.bridge.contract.extract import Candidate, find_json
from isthmus.bridge.contract.validators import compile_schema, read_schema
from isthmus.bridge.types.plan import OutputContract
from isthmus.errors import OutputInvalid, OutputUnchecked

if TYPE_CHECKING:
    from jsonschema_rs import Validator

_MOST_ERRORS: Final = 5
_LONGEST_ERROR: Final = 300
_HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ContractCheck:
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
    if contract.schema is None:
        return check_answer(None, contract.max_regex, text)
    return check_answer(contract.canonical or read_schema(contract.schema), contract.max_regex, text)


def check_answer(canonical: bytes | None, max_regex: int, text: str) -> ContractCheck:
    """Check a text against a schema in canonical form; without one it must be a JSON object."""
    check = _checker(canonical, max_regex)
    nearest: Candidate | None = None
    for index, group in enumerate(find_json(text)):
        group.sort(key=lambda candidate: -len(candidate.text))
        for candidate in group:
            if not any(check(candidate)):
                whole = index == 0 and candidate.text == text.strip(" \t\r\n")
                return ContractCheck(True, text if whole else candidate.text, cleaned=not whole)
        nearest = nearest or group[0]
    if nearest is None:
        what = "the answer is empty" if not text.strip() else "the answer holds no JSON value that can be read"
        return ContractCheck(False, text, errors=(what,))
    return ContractCheck(False, text, errors=tuple(islice(check(nearest), _MOST_ERRORS)))


def contract_failure(
    contract: OutputContract, check: ContractCheck, *, provider: str, model: str, response_id: str
) -> OutputInvalid:
    """The error that ends a response whose answer breaks a binding contract."""
    of = f" `{contract.name}`" if contract.name else ""
    return OutputInvalid(
        f"the answer of `{model}` does not match the requested {contract.requested} format{of}: "
        f"{'; '.join(check.errors)}",
        metadata={
            "provider": provider,
            "model": model,
            "response_id": response_id,
            "errors": list(check.errors),
        },
    )


def unchecked_failure(
    contract: OutputContract, check: ContractCheck, *, provider: str, model: str, response_id: str
) -> OutputUnchecked:
    """The error that ends a response whose answer could not be held against a binding contract."""
    return OutputUnchecked(
        f"the answer of `{model}` could not be checked against the requested {contract.requested} format: "
        f"{check.unchecked}",
        metadata={"provider": provider, "model": model, "response_id": response_id},
    )


def repair_request(contract: OutputContract, check: ContractCheck) -> str:
    """The words that ask the model once more."""
    reminder = f"\n\n{contract.reminder}" if contract.reminder else ""
    problems = "\n".join(f"- {error}" for error in check.errors)
    return (
        f"Your last answer was checked against the required JSON format and failed:\n{problems}\n"
        f"Write the answer again: the corrected JSON value, whole, and nothing else.{reminder}"
    )


def _checker(canonical: bytes | None, max_regex: int) -> Callable[[Candidate], Iterator[str]]:
    """What finds the faults of a candidate, one by one; none when it fits."""
    faults = _object_faults if canonical is None else partial(_schema_faults, compile_schema(canonical, max_regex))

    def check(candidate: Candidate) -> Iterator[str]:
        if _HALF_PAIR.search(candidate.text) and not _is_text(candidate.value):
            yield "a string holds half of a surrogate pair, which no reader can count on"
        else:
            yield from faults(candidate.value)

    return check


def _object_faults(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "the answer must be a JSON object"


def _schema_faults(validator: Validator, value: Any) -> Iterator[str]:
    try:
        for error in validator.iter_errors(value):
            yield _place(error.instance_path) + _cut(error.message)
    except ValueError:  # Python's own bound on reading digits, met inside the validator
        yield "a number has more digits than can be checked"


def _is_text(value: Any) -> bool:
    """Whether all strings in a value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(path: list[str | int]) -> str:
    if not path:
        return ""
    steps = "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return _cut(f"at `/{steps}`") + ": "


def _cut(words: str) -> str:
    """Short enough to tell; the end is kept, because it says what is wrong with the value at the beginning."""
    if len(words) <= _LONGEST_ERROR:
        return words
    return f"{words[: _LONGEST_ERROR // 2]} … {words[-_LONGEST_ERROR // 2 :]}"
