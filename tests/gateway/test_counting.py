"""A request that is only counted is neither shortened nor refused."""

from __future__ import annotations

from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import Target
from isthmus.gateway.counting import countable, without_window
from isthmus.providers import load_provider


def test_what_would_shorten_it_is_taken_away() -> None:
    request = parse_request({"input": "hi", "truncation": "auto", "context_management": [{"type": "compaction"}]})
    found = countable(request, ())
    assert found.body == {"input": "hi"}
    assert found.items == request.items


def test_one_that_says_nothing_yet_gets_the_least_there_is() -> None:
    empty = parse_request({"instructions": "Be brief."})
    (item,) = countable(empty, ()).items
    assert item["role"] == "user"
    assert countable(empty, ({"type": "message", "role": "user", "content": "before"},)).items == ()


def test_a_target_without_its_window_is_the_same_in_all_else() -> None:
    facts = load_provider("deepseek").capabilities()
    assert facts.limits.context
    found = without_window(Target("deepseek", facts.model, facts)).capabilities
    assert found.limits.context is None
    assert (found.limits.output, found.parameters) == (facts.limits.output, facts.parameters)
