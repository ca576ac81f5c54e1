"""A search that runs here, through the doors of Messages and Chat: told as their clients know it, and read back."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.messages.fold import fold_message
from isthmus.bridge.types.managed import Ran
from one_provider import MODEL
from running_tools import DIALECTS, OTTERS, Json, tools_here

HI: Json = {"role": "user", "content": "What are otters?"}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
LOOK: Json = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
CLAUDE = {"user-agent": "claude-cli/2.1.325 (external, cli)"}
TWO = [("web_search", {"query": "otters"}), ("web_search", {"query": "sea otters", "queries": ["river otters"]})]
ANSWER = f"See [them]({OTTERS['url']})."


def asked(**more: Any) -> Json:
    return {"model": MODEL, "messages": [HI], "max_tokens": 1_000, "tools": [SEARCH], **more}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_search_is_told_as_the_blocks_of_messages_streamed_and_whole(dialect: str) -> None:
    with tools_here(dialect) as scene:
        steps = [scene.calls(*TWO), scene.says(ANSWER)]
        scene.script(*steps, *steps)
        message = scene.talk.messages(asked(tool_choice={"type": "tool", "name": "web_search"}))
        first, found, second, more, text = message["content"]
        assert (first["type"], first["name"], first["input"]) == ("server_tool_use", "web_search", {"query": "otters"})
        assert second["input"] == {"query": "sea otters", "queries": ["sea otters", "river otters"]}
        assert (found["type"], found["tool_use_id"]) == ("web_search_tool_result", first["id"])
        assert [(page["title"], page["url"]) for page in found["content"]] == [(OTTERS["title"], OTTERS["url"])]
        assert found["content"][0]["encrypted_content"]
        assert more["tool_use_id"] == second["id"]
        assert (text["text"], text["citations"][0]["url"]) == (ANSWER, OTTERS["url"])
        assert message["stop_reason"] == "end_turn"
        assert message["usage"]["server_tool_use"] == {"web_search_requests": 2, "web_fetch_requests": 0}


def test_what_is_looked_for_is_told_before_it_is_found() -> None:
    with tools_here() as scene:
        scene.script(scene.calls(*TWO), scene.says(ANSWER))
        frames = scene.talk.message_stream(asked())
        begun = [frame["content_block"]["type"] for frame in frames if frame["type"] == "content_block_start"]
        assert begun == [
            "server_tool_use",
            "web_search_tool_result",
            "server_tool_use",
            "web_search_tool_result",
            "text",
        ]
        assert fold_message(frames)["content"][0]["input"] == {"query": "otters"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_sends_the_blocks_back_gives_the_model_what_it_had_read(dialect: str) -> None:
    with tools_here(dialect) as scene:
        scene.script(scene.calls(*TWO), scene.says(ANSWER), scene.says("And more."))
        first = scene.talk.message(asked())
        more = {"role": "user", "content": "More?"}
        turns = [HI, {"role": "assistant", "content": first["content"]}, more]
        scene.talk.message(asked(messages=turns))
        assert scene.results(scene.sent[2]) == scene.results(scene.sent[1])
        assert scene.prefix(scene.sent[2]).startswith(scene.prefix(scene.sent[1]))


def test_a_search_that_failed_is_an_error_that_clients_know_and_comes_back_as_one() -> None:
    with tools_here(search=Ran("[it failed: 503]", failed=True)) as scene:
        scene.script(scene.calls(TWO[0]), scene.says("No luck."), scene.says("Again."))
        first = scene.talk.message(asked())
        assert first["content"][1]["content"] == {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        scene.talk.message(asked(messages=[HI, {"role": "assistant", "content": first["content"]}, HI]))
        ((name, words),) = scene.results(scene.sent[2])
        assert (name, "failed" in words) == ("web_search", True)


def test_the_blocks_of_somebody_elses_search_are_left_out_as_ever() -> None:
    block = {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": []}
    with tools_here() as scene:
        scene.script(scene.says("Again."))
        told = {"role": "assistant", "content": [block, found, {"type": "text", "text": "So."}]}
        scene.talk.message(asked(messages=[HI, told, HI]))
        assert scene.results(scene.sent[0]) == []


def test_no_more_searches_run_than_the_tool_may_be_used() -> None:
    with tools_here() as scene:
        scene.script(scene.calls(*TWO), scene.says(ANSWER))
        scene.talk.message(asked(tools=[{**SEARCH, "max_uses": 1}]))
        assert [call.arguments for call in scene.search.calls] == [{"query": "otters"}]


def test_claude_code_gets_its_search_where_one_runs_here_and_a_refusal_where_none_does() -> None:
    request = asked(tool_choice={"type": "tool", "name": "web_search"}, thinking={"type": "disabled"})
    with tools_here() as scene:
        scene.script(scene.calls(TWO[0]), scene.says(ANSWER))
        message = scene.talk.message(request, CLAUDE)
        assert [block["type"] for block in message["content"]] == ["server_tool_use", "web_search_tool_result", "text"]
    with tools_here(tools=[]) as scene:
        refused = scene.talk.post("/v1/messages", request, {**CLAUDE, "anthropic-version": "2023-06-01"})
        assert refused.status == 400
        assert scene.sent == []


def test_a_clients_own_call_beside_a_search_ends_the_message_and_goes_on() -> None:
    with tools_here() as scene:
        scene.script(scene.calls(TWO[0], ("look", {})), scene.says("There."))
        first = scene.talk.message(asked(tools=[SEARCH, LOOK]))
        assert first["stop_reason"] == "tool_use"
        assert [block["type"] for block in first["content"]] == [
            "server_tool_use",
            "web_search_tool_result",
            "tool_use",
        ]
        result = {"type": "tool_result", "tool_use_id": first["content"][2]["id"], "content": "seen"}
        turns = [HI, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]
        scene.talk.message(asked(messages=turns, tools=[SEARCH, LOOK]))
        assert scene.results(scene.sent[1]) == [("web_search", f"Found otters: {OTTERS['url']}"), ("look", "seen")]


# Chat Completions


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_chat_client_searches_with_its_options_and_reads_annotations(dialect: str, streamed: bool) -> None:
    with tools_here(dialect) as scene:
        scene.script(scene.calls(*TWO), scene.says(ANSWER))
        location = {"type": "approximate", "approximate": {"country": "DE"}}
        request = {"messages": [HI], "web_search_options": {"search_context_size": "low", "user_location": location}}
        if streamed:
            deltas = [chunk["choices"][0]["delta"] for chunk in scene.talk.chat_stream(request) if chunk["choices"]]
            text = "".join(delta.get("content") or "" for delta in deltas)
            annotations = [one for delta in deltas for one in delta.get("annotations", ())]
            assert not any("tool_calls" in delta for delta in deltas)
        else:
            message = scene.talk.chat(request)["choices"][0]["message"]
            text, annotations = message["content"], message["annotations"]
            assert "tool_calls" not in message
        assert text == ANSWER
        link = f"[them]({OTTERS['url']})"
        start = ANSWER.index(link)
        cited = {"start_index": start, "end_index": start + len(link), **OTTERS}
        assert annotations == [{"type": "url_citation", "url_citation": cited}]
        tool = scene.search.calls[0].tool
        assert (tool["search_context_size"], tool["user_location"]["country"]) == ("low", "DE")


def test_a_chat_client_with_tools_of_its_own_never_sees_the_search() -> None:
    with tools_here() as scene:
        scene.script(scene.calls(TWO[0], ("look", {})))
        function = {"type": "function", "function": {"name": "look", "parameters": LOOK["input_schema"]}}
        request = {"messages": [HI], "web_search_options": {}, "tools": [function]}
        choice = scene.talk.chat(request)["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["look"]
