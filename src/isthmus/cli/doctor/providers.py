"""The configured providers: does each answer at its address, and is its key good? Free of charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from isthmus.cli.doctor.finding import Finding, State
from isthmus.config.load import Reading
from isthmus.values.problems import Problem

if TYPE_CHECKING:
    from isthmus.upstream.knock import Verdict
    from isthmus.wiring_checkup import Checkup

_STATES: Final[Mapping[Verdict, State]] = {
    "ready": "ok",
    "unproven": "ok",
    "limited": "warning",
    "failing": "warning",
}
"""What is not here keeps the provider from being used until somebody does something."""


async def look_at_providers(reading: Reading, within: float, *, offline: bool) -> Sequence[Finding]:
    names = list(reading.config.providers)
    if offline:
        words = f"not asked: {', '.join(f'`{name}`' for name in names)}"
        return [Finding("provider", "skipped", words, "", {"providers": names})]
    from isthmus.wiring_checkup import check_providers

    found = await check_providers(reading.config, names, _faults(reading.errors), within=within)
    return [_finding(each) for each in found]


def _finding(found: Checkup) -> Finding:
    facts: dict[str, Any] = {
        "provider": found.provider,
        "verdict": found.verdict,
        "address": found.address or None,
        "credential": found.credential or None,
        "models": None if found.models is None else len(found.models),
        "seconds": round(found.seconds, 3),
    }
    state = _STATES.get(found.verdict, "problem")
    where = f" ({found.address})" if found.address else ""
    return Finding("provider", state, f"`{found.provider}`{where} {found.told}", found.remedy, facts)


def _faults(problems: Sequence[Problem]) -> dict[str, str]:
    return {problem.key[1]: problem.text for problem in reversed(problems) if problem.key[:1] == ("providers",)}
