"""Calls that run here, as items: what each says at its end, what is kept for the next request, and what it cost."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.assemble.managed import _MAX_SEALED, _MAX_SOURCES, ManagedCalls
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.envelope import Sealed
from isthmus.bridge.tools.pictures import image_made
from isthmus.bridge.types.managed import Listing, Ran
from isthmus.bridge.types.tools import ToolIdentity

SEARCH = ToolIdentity(
    "web_search", "web_search", "web_search", "function", managed="web_search", tool={"type": "web_search"}
)
ASK = ToolIdentity("ask", "mcp", "docs__ask", "function", "docs", managed="mcp")
PAINT = ToolIdentity("image_generation", "image_generation", "image_generation", "function", managed="image_generation")
FOUND = {"url": "https://a.example", "title": "A"}


def sealer(sealed: Sealed, kind: Any = "reasoning") -> str:
    return f"{kind}:{sealed.text}"


def calls(**more: Any) -> tuple[ManagedCalls, Output]:
    output = Output("resp_ab")
    return ManagedCalls(output, more.pop("seal", sealer), **more), output


def item_of(ran: Ran, identity: ToolIdentity = SEARCH, arguments: str = '{"query": "a"}', **more: Any) -> Any:
    made, output = calls(**more)
    made.open(made.new_id(identity), identity, arguments)
    (call,) = made.take_waiting()
    made.ran(call.id, ran)
    return output.items[0]


def test_ids_name_the_reply_and_the_call() -> None:
    made, output = calls()
    assert [made.new_id(SEARCH), made.new_id(ASK), made.new_id(PAINT)] == ["ws_ab_c1", "mcp_ab_c2", "ig_ab_c3"]
    output.mark = "abr1"
    assert made.new_id(ToolIdentity("ask", "mcp", "x", "function", "docs", managed="mcp", asks=True)) == "mcpr_abr1_c4"


@pytest.mark.parametrize(
    ("ran", "identity", "sealed"),
    [
        (Ran("read"), SEARCH, 'tool_result:"read"'),
        (Ran("said", {"output": "said"}), ASK, None),
        (Ran("said more", {"output": "said"}), ASK, 'tool_result:"said more"'),
        (
            Ran([{"type": "input_text", "text": "x"}], {"output": "x"}),
            ASK,
            'tool_result:[{"type":"input_text","text":"x"}]',
        ),
        (Ran(image_made("aGk="), {"result": "aGk="}), PAINT, None),
        (Ran("x" * (_MAX_SEALED + 1)), SEARCH, None),
    ],
)
def test_an_item_carries_what_the_model_read_unless_it_says_so_itself(
    ran: Ran, identity: Any, sealed: str | None
) -> None:
    assert item_of(ran, identity, _most=10_000_000).get("encrypted_content") == sealed


def test_without_a_key_nothing_is_sealed_and_the_model_is_told_all_the_same() -> None:
    made, output = calls(seal=None)
    made.open(made.new_id(SEARCH), SEARCH, '{"query": "a"}')
    (call,) = made.take_waiting()
    made.ran(call.id, Ran("read"))
    assert made.results == {call.id: "read"}
    assert "encrypted_content" not in output.items[0]


@pytest.mark.parametrize(("asked", "told"), [(True, [{"type": "url", **FOUND}]), (False, None)])
def test_pages_are_told_to_whoever_asks_for_them(asked: bool, told: Any) -> None:
    ran = Ran("read", {"action": {"type": "search", "query": "a", "sources": ["made up"]}}, sources=(FOUND,))
    assert item_of(ran, _tells_sources=asked)["action"].get("sources") == told


def test_a_runner_cannot_change_what_an_item_is() -> None:
    item = item_of(Ran("x", {"type": "message", "id": "other", "status": "in_progress"}))
    assert (item["type"], item["id"], item["status"]) == ("web_search_call", "ws_ab_c1", "completed")


def test_what_tools_cost_is_summed_and_has_all_its_figures() -> None:
    made, _ = calls()
    rans = [
        (SEARCH, '{"query": "a"}', Ran("x")),
        (SEARCH, '{"query": "b"}', Ran("x", usage={"num_requests": 3})),
        (SEARCH, '{"query": "c"}', Ran("x", failed=True)),
        (SEARCH, '{"url": "https://a.example"}', Ran("x")),
        (ASK, "{}", Ran("x")),
        (PAINT, "{}", Ran("x", usage={"total_tokens": 7, "input_tokens_details": {"text_tokens": 2}})),
        (PAINT, "{}", Ran("x", usage={"total_tokens": 5})),
    ]
    for identity, arguments, ran in rans:
        made.open(made.new_id(identity), identity, arguments)
        (call,) = made.take_waiting()
        made.ran(call.id, ran)
    assert made.usage["web_search"] == {"num_requests": 4}
    assert made.usage["image_gen"] == {
        "input_tokens": 0,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 2},
        "output_tokens": 0,
        "total_tokens": 12,
    }


def test_a_server_alone_costs_nothing_that_is_told() -> None:
    made, _ = calls()
    made.open(made.new_id(ASK), ASK, "{}")
    made.ran(made.take_waiting()[0].id, Ran("x"))
    assert made.usage == {}


def test_a_step_that_says_nothing_new_is_not_told_twice() -> None:
    made, output = calls()
    made.open(made.new_id(PAINT), PAINT, '{"prompt": "x"}')
    (call,) = made.take_waiting()
    output.take()
    made.began(call.id)
    made.step(call.id, "generating", {})
    made.step(call.id, "partial_image", {"partial_image_index": 0})
    made.began(call.id)
    assert [event["type"] for event in output.take()] == [
        "response.image_generation_call.generating",
        "response.image_generation_call.partial_image",
    ]
    made.ran(call.id, Ran("x"))
    output.take()
    made.step(call.id, "partial_image", {"partial_image_index": 1})
    assert output.take() == []


def test_texts_are_cut_and_images_are_not() -> None:
    made, _ = calls(_most=4)
    made.open(made.new_id(ASK), ASK, "{}")
    (call,) = made.take_waiting()
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    made.ran(call.id, Ran([{"type": "input_text", "text": "abc"}, picture, {"type": "input_text", "text": "defg"}]))
    first, image, last = made.results[call.id]
    assert (first["text"], image) == ("abc", picture)  # type: ignore[index]
    assert last["text"] == "d\n[cut: 3 characters more]"  # type: ignore[index]


def test_citations_point_to_no_more_pages_than_they_may() -> None:
    made, _ = calls()
    made.open(made.new_id(SEARCH), SEARCH, '{"query": "a"}')
    (call,) = made.take_waiting()
    assert not made.cites
    made.ran(call.id, Ran("x", sources=tuple({"url": f"https://a.example/{n}"} for n in range(_MAX_SOURCES + 5))))
    assert made.cites
    assert made.cite("https://a.example/3")
    assert not made.cite(f"https://a.example/{_MAX_SOURCES + 1}")


def test_a_known_list_is_not_told() -> None:
    made, output = calls()
    made.list_tools("docs", Listing(known=True))
    assert output.take() == []


def test_what_does_not_run_here_is_not_opened() -> None:
    made, _ = calls()
    with pytest.raises(AssertionError, match="does not run here"):
        made.open("x", ToolIdentity("mine", "function", "mine", "function"), "{}")
