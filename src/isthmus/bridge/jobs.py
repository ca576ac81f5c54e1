"""Work of the core that can take long, as plain data: it can be done here, or in another process.

In: a job. Out: its result. `run_job` does it; `encode_job`, `run_encoded` and `decode_result` carry it through a
pipe; `give_up` is the result of a job that nobody could finish. A client's schema or grammar decides how long a job
takes, and the libraries that do it hold on to the interpreter meanwhile: in a gateway, jobs run where they can be
killed.
"""

from __future__ import annotations

import json

import msgspec

from isthmus.bridge.contract.check import ContractCheck, check_answer
from isthmus.bridge.contract.validators import PARAM, compile_schema
from isthmus.bridge.tools.examine import Examined, ExamineInput, examine
from isthmus.bridge.types.plan import OutputContract
from isthmus.errors import SCHEMA_TOO_LARGE, RequestRefused


class AdmitSchema(msgspec.Struct, frozen=True, tag=True):
    """Whether answers can be checked against a schema (in canonical text), found out before anything is sent."""

    schema: str
    max_regex: int


class Admission(msgspec.Struct, frozen=True, tag=True):
    refusal: str = ""
    code: str = "invalid_json_schema"


class CheckAnswer(msgspec.Struct, frozen=True, tag=True):
    """Whether an answer keeps its contract, whose schema is in canonical text."""

    schema: str
    max_regex: int
    text: str


Job = AdmitSchema | CheckAnswer | ExamineInput
Result = Admission | ContractCheck | Examined


def run_job(job: Job) -> Result:
    match job:
        case AdmitSchema():
            return _admit(job)
        case CheckAnswer(schema, max_regex, text):
            return check_answer(schema.encode(), max_regex, text)
        case ExamineInput():
            return examine(job)


def _admit(job: AdmitSchema) -> Admission:
    try:
        compile_schema(job.schema.encode(), job.max_regex)
    except RequestRefused as error:
        return Admission(error.message)
    return Admission()


def give_up(job: Job, reason: str) -> Result:
    """The result of a job that was not done; `reason` names the limit and its setting."""
    match job:
        case AdmitSchema():
            return Admission(f"`{PARAM}` is more than can be compiled here: {reason}; simplify it", SCHEMA_TOO_LARGE)
        case CheckAnswer(text=text):
            return ContractCheck(False, text, unchecked=reason)
        case ExamineInput(text=text):
            return Examined(text, "", "unchecked", reason)


def admission_of(contract: OutputContract) -> AdmitSchema | None:
    return AdmitSchema(contract.canonical.decode(), contract.max_regex) if contract.canonical else None


def refuse(admission: Admission) -> None:
    if admission.refusal:
        raise RequestRefused(admission.refusal, code=admission.code, param=PARAM)


def admit_here(contract: OutputContract) -> None:
    """Admit a contract's schema on the spot: for callers that serve nobody else meanwhile."""
    job = admission_of(contract)
    if job is not None:
        refuse(_admit(job))


def encode_job(job: Job) -> bytes:
    # The standard library's JSON, because it carries what models really write: half surrogate pairs, huge numbers.
    return json.dumps(msgspec.to_builtins(job)).encode()


def run_encoded(data: bytes) -> bytes:
    """A job in, its result out, both encoded: what a worker process calls."""
    return json.dumps(msgspec.to_builtins(run_job(msgspec.convert(json.loads(data), Job)))).encode()


def decode_result(data: bytes) -> Result:
    result: Result = msgspec.convert(json.loads(data), Result)
    return result
