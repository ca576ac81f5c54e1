"""Two parts of the page of providers: what holds in each dialect, and every question asked of every provider.

The questions are those of `tests/conformance`, asked here: a tick is an answer that was given while the page was made.
A provider is a row, so that who looks for one finds all its answers in one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SPOKEN = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages", "codex": "Codex"}
KEPT, LACKING, UNASKED = "✓", "✗", "–"


# ── what holds in each dialect ─────────────────────────────────────────────────────────────────────


def dialects_table(providers: list[Any]) -> Iterator[str]:
    yield from ("", "## Dialects", "")
    yield "What a provider takes hangs on how it is spoken to. Bold is how that is done unless `dialect` says"
    yield "otherwise; the model is the default one, or the first that the endpoint has."
    yield from ("", "| provider | dialect | formats | beside tools | tool choice | efforts | strict tools | reads |")
    yield "|---|---|---|---|---|---|---|---|"
    for provider in providers:
        for name, facts, used in _spoken(provider):
            title = f"**{SPOKEN[name]}**" if used else SPOKEN[name]
            yield f"| `{provider.name}` | {title} | {' | '.join(_held(facts))} |"


def _spoken(provider: Any) -> Iterator[tuple[str, Any, bool]]:
    from isthmus.providers.dialects import capabilities_in, dialect_of
    from isthmus.providers.responses import serves

    models = [provider.default_model, *(entry.example for entry in provider.models)]
    own = provider.capabilities().dialect
    sections = {own: None, "responses": provider.responses, "messages": provider.messages_endpoint}
    for name, section in sections.items():
        if name != own and section is None:
            continue
        model = next((each for each in models if section is None or serves(section, each)), "")
        yield name, capabilities_in(provider, model, name), dialect_of(provider, model) == name  # type: ignore[arg-type]


def _held(facts: Any) -> Iterator[str]:
    yield (
        ", ".join(each for each in ("json_object", "json_schema") if each in facts.response_formats.supported) or "text"
    )
    yield "yes" if facts.response_formats.with_tools and facts.response_formats.supported != {"text"} else ""
    order = ("auto", "none", "required", "function")
    choices = ", ".join(each for each in order if each in facts.tool_choice.supported)
    free = facts.tool_choice.while_thinking
    yield choices if free is None else f"{choices}; thinking: {', '.join(each for each in order if each in free)}"
    match facts.reasoning.effort:
        case "native":
            yield " ".join(facts.reasoning.scale)
        case "boolean":
            yield "on, off" if facts.reasoning.off else "on"
        case _:
            yield ""
    yield "yes" if facts.tools.strict else ""
    yield ", ".join(sorted(facts.messages.input))


# ── questions ──────────────────────────────────────────────────────────────────────────────────────


def conformance_tables(names: list[str], snapshot: list[str]) -> Iterator[str]:
    """`names`: those with a file, of whom everything is asked; `snapshot`: the others."""
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        import provider_facts
        from conformance import test_message_rules, test_provider_bodies, test_provider_dialects, test_providers
        from conformance.test_snapshot_providers import general_questions
    finally:
        sys.path.pop(0)
    of_files = _questions(["name", "return"], test_providers, test_provider_bodies)
    of_rules = _questions(["name", "return"], test_message_rules)
    of_ends = _questions(["name", "dialect", "return"], test_provider_dialects)
    general = dict(general_questions())

    def verdict(question: Callable[..., None], *given: str) -> str:
        provider_facts.UNASKED.clear()
        try:
            question(*given)
        except AssertionError:
            return LACKING
        times = len(provider_facts.MODELS[given[0]]) if hasattr(question, "per_model") else 1
        return UNASKED if len(provider_facts.UNASKED) >= times else KEPT

    def answer(question: Callable[..., None], name: str) -> str:
        """As often as it is asked of this provider: of each of its endpoints, or once, or not at all."""
        asked = [mark.args[1] for mark in question.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
        given = [one if isinstance(one, tuple) else (one,) for values in asked for one in values]
        found = [verdict(question, *one) for one in given if one[0] == name]
        return LACKING if LACKING in found else KEPT if KEPT in found else UNASKED

    numbered = {**of_files, **of_rules, **of_ends}
    numbers = {name: number for number, name in enumerate(numbered, start=1)}
    yield from ("", "## Conformance", "")
    yield "The same questions are asked of every provider, for each model that its file names and one that it does not"
    yield f"(`pytest tests/conformance`). {KEPT}: the planners' answers are as they must be. {UNASKED}: the question"
    yield "has no meaning there, as one about an endpoint that the provider does not have. Look for a provider, and"
    yield "read its line; the numbers are those of the questions."
    yield from ("", "| | question | asked of |", "|---|---|---|")
    for name, number in numbers.items():
        of = "every provider" if name in general else "other endpoints" if name in of_ends else "files"
        yield f"| {number} | {name[5:].replace('_', ' ')} | {of} |"
    yield from ("", f"| provider | {' | '.join(map(str, numbers.values()))} |", "|---" * (len(numbers) + 1) + "|")
    for name in names:
        yield f"| `{name}` | {' | '.join(answer(question, name) for question in numbered.values())} |"
    shared = {name: number for name, number in numbers.items() if name in general}
    yield from ("", "### Without a file", "", "The general questions, asked of every provider of the snapshot.", "")
    yield from (f"| provider | {' | '.join(map(str, shared.values()))} |", "|---" * (len(shared) + 1) + "|")
    for name in snapshot:
        yield f"| `{name}` | {' | '.join(verdict(general[asked], name) for asked in shared)} |"


def _questions(takes: list[str], *modules: Any) -> dict[str, Callable[..., None]]:
    return {
        name: question
        for module in modules
        for name, question in vars(module).items()
        if name.startswith("test_") and list(getattr(question, "__annotations__", {})) == takes
    }
