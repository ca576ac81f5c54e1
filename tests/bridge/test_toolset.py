"""Tools that remember: the same answers as ever, only sooner."""

from __future__ import annotations

import contextlib
import copy
import json
from functools import partial, reduce
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits, check_body
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.toolset import MOST_KEPT, MOST_MADE, MOST_TEXT, Toolset, find_toolset, toolset_of
from isthmus.bridge.types.managed import Managed
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.providers import load_provider

FUNCTION: Final = {
    "type": "function",
    "name": "look",
    "description": "Look it up.",
    "strict": None,
    "parameters": {"type": "object", "properties": {"where": {"type": "string", "pattern": "^a"}}},
}
TOOLSETS: Final[list[list[dict[str, Any]]]] = [
    [FUNCTION],
    [FUNCTION, {**FUNCTION, "name": "see", "async": True}],
    [{**FUNCTION, "name": "see", "defer_loading": True}, {"type": "tool_search"}],
    [{"type": "custom", "name": "patch"}, {"type": "namespace", "name": "box", "tools": [FUNCTION]}],
    [{"type": "web_search"}, FUNCTION],
    [{"type": "mcp", "server_label": "wiki", "server_url": "https://wiki.example/secretsecretsecret"}, FUNCTION],
    [{"type": "local_shell"}, {"type": "apply_patch"}, {"type": "computer_use_preview"}],
    [{"type": "function"}],
    [{"type": "function", "name": "deep", "parameters": {"a": {"a": {"a": {"a": {"a": {}}}}}}}],
]
CHOICES: Final = [None, "auto", "required", "none", "nonsense", {"type": "function", "name": "see"}]
INPUTS: Final[list[Any]] = [
    "Hi",
    [{"role": "user", "content": "Hi"}, {"type": "additional_tools", "tools": [{**FUNCTION, "name": "late"}]}],
    [
        {"type": "function_call", "call_id": "c", "name": "see", "arguments": "{}"},
        {"role": "user", "content": "And?"},
        {"type": "function_call_output", "call_id": "c", "output": "a tree"},
    ],
]
PROVIDERS: Final = ("deepseek", "openai", "anthropic", "mistral", "codex")
TARGETS: Final = [
    Target(name, "m", load_provider(name).capabilities(model))
    for name in PROVIDERS
    for model in ("", load_provider(name).default_model)
]
HOSTS: Final = [Host(), Host(strict=True), Host(managed=Managed(search="searxng"))]
LIMITS: Final = [DEFAULT_LIMITS, RequestLimits(max_values=30), RequestLimits(max_depth=6), RequestLimits(max_tools=2)]


@st.composite
def askings(draw: st.DrawFn) -> tuple[bytes, Target, Host, RequestLimits]:
    body: dict[str, Any] = {"model": "m", "input": draw(st.sampled_from(INPUTS))}
    body["tools"] = draw(st.sampled_from(TOOLSETS))
    if (choice := draw(st.sampled_from(CHOICES))) is not None:
        body["tool_choice"] = choice
    if draw(st.booleans()):
        body["reasoning"] = {"effort": draw(st.sampled_from(["none", "high"]))}
    return json.dumps(body).encode(), *(draw(st.sampled_from(each)) for each in (TARGETS, HOSTS, LIMITS))  # type: ignore[return-value]


@given(st.lists(askings(), min_size=2, max_size=6))
def test_what_is_remembered_is_what_would_be_found_anew(asked: list[tuple[bytes, Target, Host, RequestLimits]]) -> None:
    toolset_of.cache_clear()
    remembered = [_outcome(*each) for each in [*asked, *asked]]
    anew = []
    for each in [*asked, *asked]:
        toolset_of.cache_clear()
        anew.append(_outcome(*each))
    assert remembered == anew


def _outcome(raw: bytes, target: Target, host: Host, limits: RequestLimits) -> bytes:
    try:
        request = parse_request(raw, limits)
        plan = plan_request(request, target, host)
    except RequestRefused as error:
        return repr((error.code, error.param, error.message, error.metadata)).encode()
    said = (plan.body, plan.decisions, plan.diagnostics, plan.echo, plan.leaks, plan.tools.choice, request.values)
    return msgspec.json.encode((*said, list(plan.tools.identities)), enc_hook=sorted)


def planned(tools: object, target: Target = TARGETS[0]) -> Plan:
    return plan_request(parse_request(json.dumps({"input": "Hi", "tools": tools}).encode()), target)


LEAVES: Final = st.one_of(st.none(), st.integers(0, 9), st.text('a\n {[,"', max_size=4))
NAMES: Final = st.text(max_size=1)
NESTED: Final = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


@given(st.lists(st.dictionaries(NAMES, NESTED, max_size=3), min_size=1, max_size=3), st.integers(1, 40))
def test_what_they_weigh_by_their_text_refuses_no_more_and_no_less(tools: list[dict[str, Any]], most: int) -> None:
    kept = find_toolset(json.loads(json.dumps(tools)), as_text=True)
    assert kept is not None
    assert kept.weight is not None
    for limits in (RequestLimits(max_values=most), RequestLimits(max_depth=most), RequestLimits(max_tools=most)):
        assert _refused_by(limits, kept) == _refused_by(limits, tools)


@pytest.mark.parametrize("depth", [1, 2, 61, 62, 63, 64, 96, 97, 98, 99, 100, 200])
def test_deep_ones_too(depth: int) -> None:
    for innermost in ("", 1, {}, []):
        tools: Any = [{"type": "odd", "a": reduce(lambda inner, _: {"a": inner}, range(depth), innermost)}]
        kept = find_toolset(tools, as_text=True)
        assert kept is not None
        assert kept.weight is not None
        assert _refused_by(DEFAULT_LIMITS, kept) == _refused_by(DEFAULT_LIMITS, tools)


def _refused_by(limits: RequestLimits, tools: list[dict[str, Any]]) -> str:
    try:
        check_body({"tools": tools}, limits)
    except RequestRefused as refused:
        return refused.message
    return ""


def test_the_same_tools_are_surveyed_once_for_each_model() -> None:
    toolset_of.cache_clear()
    first, again, other = planned([FUNCTION]), planned([FUNCTION]), planned([FUNCTION], TARGETS[2])
    assert again.tools is first.tools
    assert again.echo["tools"] is first.echo["tools"]
    assert other.tools is not first.tools


def test_another_text_is_another_list() -> None:
    one, other = planned([{**FUNCTION, "strict": True}]), planned([{**FUNCTION, "strict": False}])
    assert one.tools.identities.by_request("look") != other.tools.identities.by_request("look")


def test_planning_and_sending_change_no_tool() -> None:
    toolset_of.cache_clear()
    for target in TARGETS:
        for tools in TOOLSETS[:7]:
            kept = find_toolset(tools, as_text=True)
            before = copy.deepcopy(kept)
            with contextlib.suppress(RequestRefused):
                planned(tools, target)
            assert kept == before


def test_an_object_of_the_library_keeps_what_json_has_no_word_for() -> None:
    kept = find_toolset([{"type": "odd", "a": [1, 2]}], as_text=True)
    assert find_toolset([{"type": "odd", "a": [1, 2]}], as_text=False) is kept
    assert find_toolset([{"type": "odd", "a": (1, 2)}], as_text=False) is None
    assert find_toolset([{"type": "odd", "a": float("nan")}], as_text=False) is None
    assert find_toolset([{"type": "odd", "a": object()}], as_text=False) is None


def test_the_clients_own_object_stays_as_it_was() -> None:
    tools = [dict(FUNCTION)]
    body = {"input": "Hi", "tools": tools}
    request = parse_request(body)
    assert body == {"input": "Hi", "tools": [FUNCTION]}
    assert body["tools"] is tools
    tools[0]["name"] = "changed since"
    assert request.body["tools"] == [FUNCTION]


def test_what_is_kept_has_its_bounds() -> None:
    toolset_of.cache_clear()
    for number in range(MOST_KEPT + 5):
        planned([{**FUNCTION, "name": f"f{number}"}])
    assert toolset_of.cache_info().currsize == MOST_KEPT
    long = [{**FUNCTION, "description": "x" * MOST_TEXT}]
    assert find_toolset(long, as_text=True) == long
    assert find_toolset(long, as_text=True) is not find_toolset(long, as_text=True)
    kept = Toolset([FUNCTION])
    for number in range(5 * MOST_MADE):
        assert kept.once(number, partial(str, number)) == str(number)
        assert len(kept._made) <= MOST_MADE


def test_what_is_made_of_another_object_is_another_thing() -> None:
    kept, one, other = Toolset([FUNCTION]), ["a"], ["a"]
    made = kept.once("it", lambda: "of one", one)
    assert (made, kept.once("it", lambda: "of other", other)) == ("of one", "of other")
    assert kept.once("it", lambda: "never made", one) == "of one"


@pytest.mark.parametrize("tools", [None, [], "x", {"a": 1}, [FUNCTION, 1]])
def test_what_is_no_list_of_tools_is_left_alone(tools: object) -> None:
    assert find_toolset(tools, as_text=True) is None


def test_a_malformed_tool_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(RequestRefused, match="has no `name`"):
            planned([{"type": "function"}])
