"""Tools that run here, over real sockets: every dialect, streamed and whole, and everything that can go wrong."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from isthmus.bridge.types.managed import Listing, ManagedCall, Ran, ToolLimits
from isthmus.ports.tools import Tell
from isthmus.testing import Gate, chat
from running_tools import ASK, DIALECTS, DOCS, MINE, OTTERS, SEARCH, TOOLS, Json, found, tools_here
from waiting import until

MIXED = [
    ("web_search", {"query": "otters"}),
    ("web_search", {"query": "beavers"}),
    ("docs__ask", {"q": "b"}),
    ("mine", {}),
]


def ask(**more: Any) -> Json:
    return {"input": [{"type": "message", "role": "user", "content": "hi"}], "tools": TOOLS, "store": False, **more}


def going_on(request: Json, response: Json, *more: Json) -> Json:
    return {**request, "input": [*request["input"], *response["output"], *more]}


def output_of(response: Json, result: str) -> Json:
    (call,) = [item for item in response["output"] if item["type"] == "function_call"]
    return {"type": "function_call_output", "call_id": call["call_id"], "output": result}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_searches_a_server_and_a_call_of_the_clients_in_one_turn(dialect: str) -> None:
    with tools_here(dialect) as scene:
        scene.script(scene.calls(*MIXED), scene.calls(*MIXED))
        whole, streamed = scene.talk.both(ask())
        kinds = [(item["type"], item["status"]) for item in whole["output"]]
        assert kinds == [
            *[("web_search_call", "completed")] * 2,
            ("mcp_call", "completed"),
            ("function_call", "completed"),
        ]
        assert whole["status"] == "completed"
        assert whole["tool_usage"]["web_search"] == {"num_requests": 2}
        assert [call.arguments["query"] for call in scene.search.calls] == ["otters", "beavers"] * 2
        assert whole["output"][2]["output"] == "docs say {'q': 'b'}"
        # The client answers its own call: the next request has the results of all four.
        scene.script(scene.says("All done."))
        request = going_on(ask(), streamed, output_of(streamed, "mine says so"))
        final = scene.talk.create(request)
        assert final["output_text"] == "All done."
        assert scene.results(scene.sent[-1]) == [
            ("web_search", f"Found otters: {OTTERS['url']}"),
            ("web_search", f"Found beavers: {OTTERS['url']}"),
            ("docs__ask", "docs say {'q': 'b'}"),
            ("mine", "mine says so"),
        ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_model_goes_on_with_what_was_found_and_usage_is_summed(dialect: str) -> None:
    with tools_here(dialect) as scene:
        steps = [
            scene.calls(*MIXED[:3]),
            scene.calls(("image_generation", {"prompt": "an otter"})),
            scene.says("There."),
        ]
        scene.script(*steps, *steps)
        whole, _ = scene.talk.both(ask())
        assert [item["type"] for item in whole["output"]] == [
            *("web_search_call", "web_search_call", "mcp_call", "image_generation_call", "message"),
        ]
        one = whole["usage"]["output_tokens"] // 3
        assert whole["usage"]["output_tokens"] == 3 * one > 0
        assert whole["tool_usage"]["web_search"] == {"num_requests": 2}
        assert whole["tool_usage"]["image_gen"]["total_tokens"] == 7
        assert [name for name, _ in scene.results(scene.sent[2])] == [
            *("web_search", "web_search", "docs__ask", "image_generation"),
        ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_later_request_begins_with_the_bytes_of_the_earlier_ones(dialect: str) -> None:
    with tools_here(dialect) as scene:
        scene.script(
            scene.calls(*MIXED[:3], text="Let me look."),
            scene.calls(("docs__ask", {"q": "again"})),
            scene.says("There."),
            scene.says("And more."),
        )
        first = scene.talk.create(ask())
        user = {"type": "message", "role": "user", "content": "more"}
        scene.talk.create(going_on(ask(), first, user))
        prefixes = [scene.prefix(body) for body in scene.sent]
        for shorter, longer in pairwise(prefixes):
            assert longer.startswith(shorter)


def test_the_same_holds_for_what_is_stored_here() -> None:
    with tools_here() as scene:
        scene.script(scene.calls(*MIXED[:3]), scene.says("There."), scene.says("And more."))
        first = scene.talk.create(ask(store=True))
        scene.talk.create({"input": "more", "tools": TOOLS, "previous_response_id": first["id"]})
        assert scene.prefix(scene.sent[2]).startswith(scene.prefix(scene.sent[1]))


def test_items_and_events_come_in_the_documented_order() -> None:
    listing = Listing((ASK,))
    with tools_here(listing=listing) as scene:
        scene.script(scene.calls(("docs__ask", {"q": "b"})), scene.says(f"See [otters]({OTTERS['url']})."))
        events, _ = scene.talk.stream(ask(tools=[DOCS]))
        assert [event["type"].removeprefix("response.") for event in events] == [
            *("created", "in_progress"),
            *("output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done"),
            *("output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done"),
            *("mcp_call.completed", "output_item.done"),
            *("output_item.added", "content_part.added", *["output_text.delta"] * 3),
            *("output_text.done", "content_part.done", "output_item.done", "completed"),
        ]


def test_pages_that_were_found_and_named_are_cited() -> None:
    with tools_here() as scene:
        answer = f"See [otters]({OTTERS['url']}) and https://elsewhere.example/."
        steps = [scene.calls(MIXED[0]), scene.says(answer)]
        scene.script(*steps, *steps, *steps)
        whole, _ = scene.talk.both(ask())
        (part,) = whole["output"][-1]["content"]
        link = f"[otters]({OTTERS['url']})"
        start = answer.index(link)
        assert part["annotations"] == [
            {"type": "url_citation", "start_index": start, "end_index": start + len(link), **OTTERS},
        ]
        assert "sources" not in whole["output"][0]["action"]
        told = scene.talk.create(ask(include=["web_search_call.action.sources"]))
        assert told["output"][0]["action"]["sources"] == [{"type": "url", **OTTERS}]
        assert told["isthmus"]["diagnostics"] == []


def test_a_stored_stream_can_be_read_again_from_any_event() -> None:
    with tools_here(listing=Listing((ASK,))) as scene:
        image = ("image_generation", {"prompt": "an otter"})
        scene.script(scene.calls(*MIXED[:3], image), scene.says(f"See [otters]({OTTERS['url']})."))
        events, response = scene.talk.stream(ask(store=True, include=["web_search_call.action.sources"]))
        for after in (0, 7, len(events) // 2):
            path = f"/v1/responses/{response['id']}?stream=true&starting_after={after}"
            with scene.talk.streaming(path, method="GET") as stream:
                assert list(stream) == events[after + 1 :]


# What goes wrong


def broken(call: ManagedCall, tell: Tell) -> Ran:
    raise RuntimeError("the runner itself is broken: sk-secret")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("failing", [broken, Ran("[it failed: 503]", failed=True)], ids=["a bug", "a failure"])
def test_a_tool_that_fails_is_a_failed_item_and_a_result(dialect: str, failing: Any) -> None:
    with tools_here(dialect, search=failing) as scene:
        steps = [scene.calls(*MIXED[:3]), scene.says("Without it, then.")]
        scene.script(*steps, *steps)
        whole, _ = scene.talk.both(ask())
        assert whole["status"] == "completed"
        assert [(item["type"], item["status"]) for item in whole["output"]] == [
            *[("web_search_call", "failed")] * 2,
            ("mcp_call", "completed"),
            ("message", "completed"),
        ]
        told = dict(scene.results(scene.sent[1]))
        assert "failed" in told["web_search"]
        assert "sk-secret" not in str(scene.sent) + str(whole)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tool_that_takes_too_long_has_failed(dialect: str) -> None:
    gate = Gate("search")

    async def slow(call: ManagedCall, tell: Tell) -> Ran:
        await gate.opened.waited(None)
        return found(call)

    with tools_here(dialect, search=slow, limits=ToolLimits(timeout=30.0)) as scene:
        scene.script(scene.calls(*MIXED[:3]), scene.says("Without it, then."))
        with scene.talk.streaming("/v1/responses", ask(stream=True)) as stream:
            stream.until("response.mcp_call.completed")
            until(lambda: scene.search.running == 2, "both searches run")
            scene.server.skip(30.1)
            final = stream.until("response.completed")["response"]
        statuses = [(item["type"], item["status"]) for item in final["output"]]
        assert statuses == [*[("web_search_call", "failed")] * 2, ("mcp_call", "completed"), ("message", "completed")]
        assert "30 seconds" in dict(scene.results(scene.sent[1]))["web_search"]
        assert scene.search.stopped == 2


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_end_of_the_budget_is_told_to_the_model(dialect: str, streamed: bool) -> None:
    with tools_here(dialect) as scene:
        scene.script(scene.calls(*MIXED[:3]), scene.says("So much for that."))
        request = ask(max_tool_calls=2)
        response = scene.talk.stream(request)[1] if streamed else scene.talk.create(request)
        assert [item["type"] for item in response["output"]] == ["web_search_call", "web_search_call", "message"]
        assert (scene.docs.calls, response["max_tool_calls"]) == ([], 2)
        *_, (name, words) = scene.results(scene.sent[1])
        assert (name, "not carried out" in words) == ("docs__ask", True)
        assert response["isthmus"]["diagnostics"] == []


def test_a_model_that_never_stops_is_asked_to_answer_without() -> None:
    with tools_here(limits=ToolLimits(rounds=3)) as scene:
        scene.script(*[scene.calls(MIXED[0])] * 3, scene.says("Enough."))
        response = scene.talk.create(ask())
        assert [item["type"] for item in response["output"]] == [*["web_search_call"] * 3, "message"]
        offered = [[tool["function"]["name"] for tool in body["tools"]] for body in scene.sent]
        assert offered == [["web_search", "docs__ask", "image_generation", "mine"]] * 3 + [["mine"]]


def test_so_many_run_at_once_and_no_more() -> None:
    gate = Gate("searches")

    async def wait(call: ManagedCall, tell: Tell) -> Ran:
        await gate.opened.waited(None)
        return found(call)

    with tools_here(search=wait, limits=ToolLimits(parallel=2)) as scene:
        scene.script(scene.calls(*[("web_search", {"query": f"q{n}"}) for n in range(5)]), scene.says("There."))
        with scene.talk.streaming("/v1/responses", ask(stream=True)) as stream:
            stream.until("response.web_search_call.searching")
            until(lambda: scene.search.running == 2, "two run")
            gate.open()
            final = stream.until("response.completed")["response"]
        assert (scene.search.most, len(scene.search.calls)) == (2, 5)
        assert [item["action"]["query"] for item in final["output"][:-1]] == [f"q{n}" for n in range(5)]


# Ends in the middle


def waiting_scene(gate: Gate) -> Any:
    async def wait(call: ManagedCall, tell: Tell) -> Ran:
        await gate.opened.waited(None)
        return found(call)

    return wait


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_leaves_stops_what_runs(dialect: str) -> None:
    gate = Gate("search")
    with tools_here(dialect, search=waiting_scene(gate)) as scene:
        scene.script(scene.calls(*MIXED))
        with scene.talk.streaming("/v1/responses", ask(stream=True, store=True)) as stream:
            id = stream.until("response.created")["response"]["id"]
            stream.until("response.mcp_call.completed")
            until(lambda: scene.search.running == 2, "both searches run")
        until(lambda: scene.search.stopped == 2, "both were stopped")
        until(lambda: not len(scene.server.gateway.runs), "the run is over")
        kept = scene.talk.get(f"/v1/responses/{id}").json
        assert kept["status"] == "cancelled"
        assert [(item["type"], item["status"]) for item in kept["output"]] == [
            *[("web_search_call", "failed")] * 2,
            ("mcp_call", "completed"),
            ("function_call", "completed"),
        ]


def test_cancelling_a_background_response_stops_what_runs() -> None:
    gate = Gate("search")
    with tools_here(search=waiting_scene(gate)) as scene:
        scene.script(scene.calls(*MIXED[:3]))
        begun = scene.talk.create(ask(background=True, store=True))
        until(lambda: scene.search.running == 2, "both searches run")
        ended = scene.talk.post(f"/v1/responses/{begun['id']}/cancel").json
        assert ended["status"] == "cancelled"
        assert scene.search.stopped == 2
        assert [item["status"] for item in ended["output"]] == ["failed", "failed", "completed"]


def test_a_response_that_takes_too_long_stops_what_runs() -> None:
    gate = Gate("search")
    with tools_here(search=waiting_scene(gate), limits=ToolLimits(timeout=10_000.0)) as scene:
        scene.script(scene.calls(*MIXED[:3]))
        served = scene.server.gateway.directory.served["main"]
        with scene.talk.streaming("/v1/responses", ask(stream=True)) as stream:
            stream.until("response.mcp_call.completed")
            until(lambda: scene.search.running == 2, "both searches run")
            scene.server.skip((served.total_timeout or 0) + 1)
            failed = stream.until("response.failed")["response"]
        assert failed["error"]["code"] == "upstream_timeout"
        assert scene.search.stopped == 2
        assert [item["status"] for item in failed["output"]] == ["failed", "failed", "completed"]


def test_signs_of_life_go_on_while_tools_run() -> None:
    gate = Gate("search")
    with tools_here(search=waiting_scene(gate), limits=ToolLimits(timeout=10_000.0)) as scene:
        scene.script(scene.calls(MIXED[0]), scene.says("There."))
        with scene.talk.streaming("/v1/responses", ask(stream=True)) as stream:
            stream.until("response.web_search_call.searching")
            scene.server.skip(16)
            assert stream.next()["type"] == "response.in_progress"  # type: ignore[index]
            gate.open()
            stream.until("response.completed")


# The search for tools beside them

LATER: Json = {**MINE, "name": "later", "description": "Settle a ticket.", "defer_loading": True}


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_a_search_for_tools_takes_part_in_the_same_loop(dialect: str) -> None:
    with tools_here(dialect) as scene:
        steps = [
            scene.calls(("tool_search", {"query": "settle ticket"}), MIXED[0], MIXED[2]),
            scene.calls(MIXED[1]),
            scene.calls(("later", {})),
        ]
        scene.script(*steps, *steps)
        whole, _ = scene.talk.both(ask(tools=[{"type": "tool_search"}, SEARCH, DOCS, LATER]))
        assert [item["type"] for item in whole["output"]] == [
            *(
                "tool_search_call",
                "tool_search_output",
                "web_search_call",
                "mcp_call",
                "web_search_call",
                "function_call",
            ),
        ]
        first, second, third = (
            [tool.get("name") or tool["function"]["name"] for tool in body["tools"]] for body in scene.sent[:3]
        )
        assert "later" not in first
        assert "later" in second
        assert second == third
        prefixes = [scene.prefix(body) for body in scene.sent[:3]]
        assert prefixes[2].startswith(prefixes[1])


def test_tools_of_a_server_that_wait_are_found_and_run_here() -> None:
    late = {**DOCS, "defer_loading": True, "authorization": "sk-docs"}
    with tools_here() as scene:
        steps = [
            scene.calls(("tool_search", {"query": "ask"})),
            scene.calls(("docs__ask", {"q": "b"})),
            scene.says("So it is."),
        ]
        scene.script(*steps, *steps)
        whole, _ = scene.talk.both(ask(tools=[{"type": "tool_search"}, late, MINE]))
        assert [item["type"] for item in whole["output"]] == [
            *("tool_search_call", "tool_search_output", "mcp_call", "message"),
        ]
        offered = [[tool["function"]["name"] for tool in body["tools"]] for body in scene.sent[:3]]
        assert offered == [["tool_search", "mine"], ["docs__ask", "mine"], ["docs__ask", "mine"]]
        assert scene.docs.calls[0].tool["authorization"] == "sk-docs"
        assert "sk-docs" not in str(whole) + str(scene.sent)


# Approvals

ASKS = Listing((ASK,), known=True, asks=frozenset({"ask"}))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "carried by the client"])
def test_an_approval_ends_the_response_and_its_answer_goes_on(dialect: str, stored: bool) -> None:
    with tools_here(dialect, listing=ASKS) as scene:
        scene.script(scene.calls(MIXED[0], ("docs__ask", {"q": "b"})))
        first = scene.talk.create(ask(store=stored))
        assert [item["type"] for item in first["output"]] == ["web_search_call", "mcp_approval_request"]
        assert (len(scene.search.calls), scene.docs.calls) == (1, [])
        request = first["output"][1]
        answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
        on = {"input": [answer], "tools": TOOLS, "previous_response_id": first["id"]}
        scene.script(scene.says("It says so."))
        events, second = scene.talk.stream(on if stored else going_on(ask(), first, answer))
        assert [event["type"] for event in events][:4] == [
            *(
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.mcp_call.in_progress",
            ),
        ]
        assert [item["type"] for item in second["output"]] == ["mcp_call", "message"]
        assert second["output"][0]["approval_request_id"] == request["id"]
        assert scene.results(scene.sent[-1]) == [
            ("web_search", f"Found otters: {OTTERS['url']}"),
            ("docs__ask", "docs say {'q': 'b'}"),
        ]
        assert len(scene.docs.calls) == 1


def test_a_denied_call_is_never_made() -> None:
    with tools_here(listing=ASKS) as scene:
        scene.script(scene.calls(("docs__ask", {"q": "b"})), scene.says("Then not."))
        first = scene.talk.create(ask())
        answer = {"approval_request_id": first["output"][0]["id"], "approve": False, "reason": "too dear"}
        scene.talk.create(going_on(ask(), first, {"type": "mcp_approval_response", **answer}))
        assert scene.docs.calls == []
        ((name, words),) = scene.results(scene.sent[-1])
        assert (name, "too dear" in words) == ("docs__ask", True)


# Other servers, other owners


def test_a_runner_knows_whose_call_it_carries_out() -> None:
    with tools_here() as scene:
        scene.script(scene.calls(MIXED[0]), scene.says("There."))
        scene.talk.create(ask())
        assert scene.search.owners == ["local"]


def test_a_request_without_such_tools_is_none_of_our_business() -> None:
    with tools_here() as scene:
        scene.script(chat("Hello."))
        response = scene.talk.create({"input": "hi", "tools": [MINE]})
        assert "tool_usage" not in response
        assert [tool["function"]["name"] for tool in scene.sent[0]["tools"]] == ["mine"]
