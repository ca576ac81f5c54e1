"""A request and its model's window: what is planned, what follows a summary, what is left out or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities, TokenLimits
from isthmus.bridge.fit import fit_request
from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused

Json = dict[str, Any]
KEY = b"k" * 32
TRIGGER: Json = {"type": "compaction_trigger"}
LONG = "The bridge is long. " * 300
TALK: list[Json] = [
    {"role": "user", "content": "Build."},
    {"role": "assistant", "content": LONG},
    {"role": "user", "content": "Red."},
]
MANAGED: Json = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}
SUMMARY: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "nobody's"}


def fit(body: Json, *, key: bytes | None = KEY, host: Host | None = None, history: Any = (), **facts: Any) -> Plan:
    request = parse_request(msgspec.json.encode({"model": "m", **body}))
    target = Target("p", "m", ProviderCapabilities(provider="p", model="m", **facts))
    return fit_request(request, target, host or Host(), history=history, envelope_key=key)


def paths(plan: Plan) -> list[str]:
    return [said.path for said in plan.diagnostics]


def test_most_requests_are_planned_as_they_are() -> None:
    plan = fit({"input": TALK})
    assert plan.compaction is None
    assert len(plan.body["messages"]) == 3


def test_a_trigger_plans_a_summary_and_nothing_after_it() -> None:
    plan = fit({"input": [*TALK, TRIGGER], "tools": [{"type": "function", "name": "f"}], "instructions": "Be brief."})
    assert plan.compaction is not None
    assert plan.compaction.then is None
    assert "tools" not in plan.body
    assert (plan.echo["instructions"], plan.echo["tools"][0]["name"]) == ("Be brief.", "f")
    assert paths(plan) == ["input[3]"]


def test_strict_mode_lets_a_summary_pass() -> None:
    assert fit({"input": [*TALK, TRIGGER]}, host=Host(strict=True)).compaction is not None


def test_without_a_seal_nothing_is_compacted_and_that_is_told() -> None:
    plan = fit({"input": [*TALK, TRIGGER], **MANAGED}, key=None)
    assert plan.compaction is None
    assert {"input[3]", "context_management"} <= {*paths(plan)}


def test_a_provider_that_compacts_by_itself_is_left_to_it() -> None:
    plan = fit({"input": TALK, **MANAGED}, parameters={"context_management": ParameterRule()})
    assert plan.compaction is None
    assert plan.body["context_management"] == MANAGED["context_management"]


@pytest.mark.parametrize("items", [[TRIGGER], [TRIGGER, TRIGGER]])
def test_a_trigger_alone_compacts_nothing(items: list[Json]) -> None:
    with pytest.raises(RequestRefused):
        fit({"input": items})


def test_past_the_threshold_the_answer_follows_the_summary() -> None:
    plan = fit({"input": TALK, "text": {"format": {"type": "json_object"}}, **MANAGED})
    assert plan.compaction is not None
    assert plan.compaction.then is not None
    assert plan.contract.requested == "json_object", "a schema is tried before anything is sent"
    without = plan.compaction.then(None)
    assert LONG in str(without.body)
    after = plan.compaction.then(SUMMARY)
    assert after.compaction is None
    assert LONG not in str(after.body)
    assert after.echo == plan.echo


def test_what_follows_keeps_the_paths_of_the_request() -> None:
    talk = [*TALK[:2], {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]
    plan = fit({"input": talk, **MANAGED})
    assert plan.compaction is not None
    assert plan.compaction.then is not None
    assert "input[2].content[0]" in paths(plan.compaction.then(SUMMARY))


def test_the_last_thing_that_the_user_said_may_be_stored_already() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": LONG}
    asked = {"type": "message", "role": "user", "content": "Build."}
    plan = fit({"input": [result], **MANAGED}, history=[asked, call])
    assert plan.compaction is not None
    assert plan.compaction.then is not None
    after = plan.compaction.then(SUMMARY)
    assert [message["content"] for message in after.body["messages"]] == ["Build."]


SMALL = TokenLimits(context=1000, output=100)


def test_what_surely_does_not_fit_is_refused() -> None:
    with pytest.raises(RequestRefused) as refused:
        fit({"input": LONG * 3}, limits=SMALL)
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")
    assert fit({"input": LONG}, limits=SMALL).body, "what may fit is the provider's to refuse"
    assert fit({"input": LONG * 3}).body, "nobody knows the window"
    rule = {"truncation": ParameterRule()}
    assert fit({"input": LONG * 3}, limits=SMALL, parameters=rule).body, "the provider sees to it itself"


def test_truncation_keeps_the_newest_turn_whatever_it_takes() -> None:
    plan = fit({"input": [*TALK, {"role": "user", "content": LONG}], "truncation": "auto"}, limits=SMALL)
    assert [message["content"] for message in plan.body["messages"]] == [LONG]
    assert paths(plan) == ["truncation"]
    assert plan.echo["truncation"] == "auto"


def test_truncation_of_what_never_was_bytes_is_the_same() -> None:
    """A library's request is read from an object."""
    request = parse_request({"model": "m", "input": [*TALK, {"role": "user", "content": LONG}], "truncation": "auto"})
    target = Target("p", "m", ProviderCapabilities(provider="p", model="m", limits=SMALL))
    plan = fit_request(request, target, Host(), envelope_key=KEY)
    assert [message["content"] for message in plan.body["messages"]] == [LONG]
    assert paths(plan) == ["truncation"]


def test_truncation_of_what_fits_changes_nothing() -> None:
    plan = fit({"input": TALK, "truncation": "auto"}, limits=TokenLimits(context=100_000))
    assert len(plan.body["messages"]) == 3
    assert paths(plan) == []


def test_truncation_without_a_known_window_is_told_as_lost() -> None:
    assert paths(fit({"input": TALK, "truncation": "auto"})) == ["truncation"]
