"""Is a provider file sound? Every problem is found, each with its key and the next step.

In: the TOML values of one file. Out: problems, worded for the person who wrote it. Types and unknown keys come from the
structs (`schema`, `bridge.capabilities`) through the one reader, so that there is no second list to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from isthmus.bridge.capabilities import EFFORTS, ProviderCapabilities
from isthmus.bridge.resolve import nearest_name
from isthmus.providers.merge import is_boolean
from isthmus.providers.schema import FACT_FIELDS, FileHead, ModelHead
from isthmus.values.problems import KeyPath, Problem
from isthmus.values.read import fields_of, read_fields

_FACTS: Final = {name: field for name, field in fields_of(ProviderCapabilities).items() if name in FACT_FIELDS}
_FILE: Final = {**fields_of(FileHead), **_FACTS}
_MODEL: Final = {**fields_of(ModelHead), **_FACTS}


def find_problems(raw: Mapping[str, Any], stem: str, above: KeyPath = ()) -> list[Problem]:
    """Everything wrong with a file called `stem`; an empty list is a sound file. `above` is where the same tables stand
    in another file."""
    problems: list[Problem] = []
    own = {key: value for key, value in raw.items() if key != "models"}
    read_fields(_FILE, _left_over(own), problems, path=above)
    problems += _check_efforts(raw, above)
    problems += _check_head(raw, stem)
    models = raw.get("models", {})
    if not isinstance(models, Mapping):
        fix = 'write `[models."NAME"]` above the facts of each'
        return [*problems, Problem((*above, "models"), "must be a table of tables, one per model or glob", fix)]
    for pattern, entry in models.items():
        at = (*above, "models", pattern)
        read_fields(_MODEL, _left_over(entry), problems, path=at)
        problems += _check_efforts(entry, at)
    return problems


def _left_over(table: Any) -> Any:
    """The facts without what takes back; the head as it is."""
    if not isinstance(table, Mapping):
        return table
    facts = _without_taken_back({key: value for key, value in table.items() if key in _FACTS})
    return {**{key: value for key, value in table.items() if key not in _FACTS}, **facts}


def _without_taken_back(facts: Mapping[str, Any], above: KeyPath = ()) -> dict[str, Any]:
    """`false` in place of another type takes back what was inherited: only what is left has to have the right type."""
    return {
        key: _without_taken_back(value, (*above, key)) if isinstance(value, Mapping) else value
        for key, value in facts.items()
        if value is not False or is_boolean((*above, key))
    }


def _check_head(raw: Mapping[str, Any], stem: str) -> Iterator[Problem]:
    name = raw.get("name", stem)
    if isinstance(name, str) and name != stem:
        yield Problem(("name",), f"is `{name}`, but the file is called `{stem}.toml`", "make them the same")
    checked = raw.get("checked", "")
    if isinstance(checked, str) and checked and not re.fullmatch(r"\d{4}-\d\d-\d\d", checked):
        yield Problem(("checked",), "must be a day in quotes", 'write it like `"2026-11-15"`')
    endpoint = raw.get("endpoint")
    base_url = endpoint.get("base_url", "") if isinstance(endpoint, Mapping) else ""
    if isinstance(base_url, str) and base_url and not base_url.startswith(("http://", "https://", "${")):
        yield Problem(("endpoint", "base_url"), "must start with `http://` or `https://`", "write it whole")


def _check_efforts(table: Any, above: KeyPath) -> Iterator[Problem]:
    reasoning = table.get("reasoning") if isinstance(table, Mapping) else None
    if not isinstance(reasoning, Mapping):
        return
    scale, mapping = reasoning.get("scale"), reasoning.get("map")
    at = (*above, "reasoning")
    named = [("scale", effort) for effort in scale] if isinstance(scale, list) else []
    if isinstance(mapping, Mapping):
        named += [("map", effort) for pair in mapping.items() for effort in pair]
    for field, effort in named:
        if isinstance(effort, str) and effort not in EFFORTS:
            yield Problem((*at, field), f"names `{effort}`, which is not an effort", _suggest(effort, EFFORTS))
    known = [effort for effort in scale if effort in EFFORTS] if isinstance(scale, list) else []
    if known != sorted(known, key=EFFORTS.index):
        yield Problem((*at, "scale"), "must go from the weakest to the strongest effort", "turn it round")


def _suggest(word: str, known: Iterable[str]) -> str:
    near = nearest_name(word, known)
    return f"did you mean `{near}`?" if near else f"there are: {', '.join(known)}"
