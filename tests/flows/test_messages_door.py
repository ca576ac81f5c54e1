"""Clients of Anthropic's Messages on upstreams of every dialect, over real sockets.

What has hurt the users of other gateways, each by its number in the list that was kept (2026-11-15), and where it is
shown that it does not hurt here:

| pain | shown by |
|---|---|
| 1 an instruction between the turns is a 400 | `test_an_instruction_between_the_turns_stays_where_it_is` |
| 2 the line for the vendor's accounts spoils caches | `test_the_changing_line_for_the_vendors_accounts_never_leaves` |
| 3 thinking inside a text block, two starts | every stream here is checked by `check_frames` |
| 4 the first piece of arguments is lost | `test_inputs_are_complete_however_they_are_cut` |
| 5 an index is used twice | `check_frames`; `test_interleaved_calls_come_one_after_the_other` |
| 6 no input tokens at the start | `test_the_first_frame_estimates_the_input_and_the_last_one_knows_it` |
| 7 counts too low | `test_tokens_are_counted_here_and_err_high` |
| 8 signatures forged or stamped | `test_a_foreign_signature_goes_to_nobody` |
| 9 signed, empty thinking is stripped | `test_thinking_goes_back_to_its_maker_byte_for_byte` |
| 10 ids such as `Bash:0`, or too long ones, or used twice | `test_odd_ids_of_calls_become_plain_and_stay_unique` |
| 11 fields of the vendor are passed on | `test_every_field_that_claude_code_sends_has_a_decision` |
| 12 the life of a mark, or a fifth one, is refused | `test_marks_fit_the_upstream` |
| 13 an empty search misleads the model | `test_a_search_is_refused_aloud_or_run` |
| 14 a reference to a tool is unknown | `test_references_to_tools_are_text` |
| 15 metadata passed on, only the last turn sent, errors become 502 | `test_nothing_private_leaves_the_house`, \
`test_a_failure_of_the_upstream_keeps_its_meaning` |
| 16 a hang instead of a failure | `test_a_stream_that_breaks_off_ends_with_an_error` |
| 17 a budget below the least | `test_a_tiny_budget_is_no_error` |
| 18 a base URL that ends in `/v1` | `test_the_path_is_understood_however_the_base_url_was_written` |
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.bridge.doors.messages.fold import fold_message
from isthmus.testing import CUT, chat, chat_chunks, reply, stream
from speaking_messages import called, claude, events, hidden, named_sse, said, thought
from speaking_responses import native
from strict_anthropic import strictly

Json = dict[str, Any]
PROVIDERS = {
    "anthropic": "uses = 'anthropic'",
    "deepseek": "uses = 'deepseek'\ndialect = 'chat'",
    "openai": "uses = 'openai'",
    "gemini": "uses = 'gemini'\ndialect = 'chat'",
    "mistral": "uses = 'mistral'\ndialect = 'chat'",
    **{name: f"uses = '{name}'\ndialect = 'chat'" for name in ("vllm", "sglang", "openrouter", "llama-cpp")},
    "house": "uses = 'openai-compatible'\ndialect = 'chat'",
}
OPUS = "anthropic/claude-opus-5-5"
HAIKU = "anthropic/claude-haiku-4-5"
DEEPSEEK = "deepseek/deepseek-v4-pro"
GPT = "openai/gpt-5.6"
MISTRAL = "mistral/mistral-medium-3.5"
HI: Json = {"role": "user", "content": "hi"}
LOOK = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
THINKS = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
EVERY = [
    pytest.param(DEEPSEEK, chat, id="chat"),
    pytest.param(GPT, native, id="responses"),
    pytest.param(OPUS, None, id="messages"),
]


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("door"), PROVIDERS) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


def scene(speak: Any, text: str | None = None, *, reasoning: str | None = None, calls: Any = ()) -> Any:
    """One answer in the dialect of the upstream."""
    if speak is not None:
        return speak(text, reasoning=reasoning, calls=calls)
    blocks = [thought(reasoning)] if reasoning else []
    blocks += [said(text)] if text else []
    return strictly(claude(*blocks, *(called(id, name, **given) for id, name, given in calls)))


def answered(message: Json, *results: Json) -> list[Json]:
    """The turns that follow an answer, as a client sends them."""
    return [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": list(results)}]


def result(id: str, content: Any, **rest: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **rest}


# One behaviour, every dialect


@pytest.mark.parametrize(("model", "speak"), EVERY)
def test_words_thoughts_and_calls_are_the_same_whole_and_streamed(flow: Flow, model: str, speak: Any) -> None:
    answer = scene(speak, "Let me look.", reasoning="Hm.", calls=[("c1", "look", {"at": "this"}), ("c2", "look", {})])
    flow.script(answer, answer)
    message = flow.messages({"model": model, "messages": [HI], "tools": [LOOK], **THINKS})
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert message["content"][0]["thinking"] == "Hm."
    assert [block["input"] for block in message["content"][2:]] == [{"at": "this"}, {}]
    assert (message["stop_reason"], message["model"]) == ("tool_use", model)


@pytest.mark.parametrize(("model", "speak"), EVERY)
def test_twenty_turns_with_tools_and_thinking(flow: Flow, model: str, speak: Any) -> None:
    """Each longer conversation begins with the bytes of the shorter one, on an upstream that forgives nothing."""
    turns: list[Json] = [HI]
    for number in range(20):
        flow.script(scene(speak, reasoning=f"Thought {number}.", calls=[(f"c{number}", "look", {"n": number})]))
        message = fold_message(flow.message_stream({"model": model, "messages": turns, "tools": [LOOK], **THINKS}))
        call = message["content"][-1]
        turns += answered(message, result(call["id"], f"result {number}", is_error=number % 7 == 3))
        turns.append({"role": "system", "content": f"<system-reminder>{number}</system-reminder>"})
    said_in = [body.get("messages") or body["input"] for body in flow.sent]
    for before, after in pairwise(said_in):
        assert _plain(after)[: len(_plain(before)) - 1] == _plain(before)[:-1]


def _plain(turns: list[Json]) -> list[Any]:
    """Without the marks of the prompt cache, which move."""
    return [{name: _unmarked(value) if name == "content" else value for name, value in turn.items()} for turn in turns]


def _unmarked(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [{name: value for name, value in part.items() if name != "cache_control"} for part in content]


@pytest.mark.parametrize(("model", "speak"), EVERY)
def test_results_reach_the_model_in_the_order_of_the_calls(flow: Flow, model: str, speak: Any) -> None:
    calls = [("c1", "look", {}), ("c2", "look", {})]
    flow.script(scene(speak, calls=calls, reasoning="Hm."), scene(speak, "Done."))
    first = flow.message({"model": model, "messages": [HI], "tools": [LOOK], **THINKS})
    late = answered(first, result("c2", "B", is_error=True), {"type": "text", "text": "go on"}, result("c1", "A"))
    flow.message({"model": model, "messages": [HI, *late], "tools": [LOOK], **THINKS})
    sent = repr(flow.sent[1])
    assert sent.index("'A'") < sent.index("B'") < sent.index("go on")
    failed = "'is_error': True" if speak is None else "[the tool failed]"
    assert failed in sent


def test_an_image_and_a_document_in_a_result_reach_the_model(flow: Flow) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
    turns = [
        HI,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
        {"role": "user", "content": [result("c1", [image, pdf])]},
    ]
    flow.script(strictly(claude(said("Seen."))), native("Seen."))
    flow.message({"model": HAIKU, "messages": turns, "tools": [LOOK]})
    flow.message({"model": GPT, "messages": turns, "tools": [LOOK]})
    blocks = flow.sent[0]["messages"][2]["content"][0]["content"]
    assert [block["type"] for block in blocks] == ["image", "document"]
    assert {"data:image/png;base64,aGk=", "data:application/pdf;base64,JVBERi0="} <= _strings(flow.sent[1])


def _strings(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for one in inside for text in _strings(one)}


def test_a_format_is_kept_on_every_dialect(flow: Flow) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"output_config": {"format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}}}
    flow.script(chat('```json\n{"n": 1}\n```'), native('{"n": 1}'), strictly(claude(said('{"n": 1}'))))
    for model in (DEEPSEEK, GPT, OPUS):
        assert flow.message({"model": model, "messages": [HI], **form})["content"][-1]["text"] == '{"n": 1}'


def test_a_stop_sequence_is_told_back_where_the_upstream_tells_it(flow: Flow) -> None:
    flow.script(*[strictly(claude(said("a"), stop="stop_sequence", stop_sequence="END"))] * 2)
    message = flow.messages({"model": HAIKU, "messages": [HI], "stop_sequences": ["END"]})
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")


@pytest.mark.parametrize(
    ("model", "choice", "stop"),
    [
        ("vllm/llama", {"finish_reason": "stop", "stop_reason": "END"}, ("stop_sequence", "END")),
        ("vllm/llama", {"finish_reason": "stop", "stop_reason": None}, ("end_turn", None)),
        ("vllm/llama", {"finish_reason": "stop", "stop_reason": 128009}, ("end_turn", None)),
        ("vllm/llama", {"finish_reason": "stop", "stop_reason": "<|eot|>"}, ("end_turn", None)),
        ("sglang/llama", {"finish_reason": "stop", "matched_stop": "END"}, ("stop_sequence", "END")),
        ("sglang/llama", {"finish_reason": "stop", "matched_stop": 2}, ("end_turn", None)),
        ("house/llama", {"finish_reason": "stop", "matched_stop": "END"}, ("stop_sequence", "END")),
        ("house/llama", {"finish_reason": "stop_sequence"}, ("stop_sequence", "END")),
        ("openrouter/a", {"finish_reason": "stop", "native_finish_reason": "stop_sequence"}, ("stop_sequence", "END")),
        ("openrouter/a", {"finish_reason": "stop", "native_finish_reason": "end_turn"}, ("end_turn", None)),
        ("llama-cpp/llama", {"finish_reason": "stop"}, ("end_turn", None)),
    ],
)
def test_a_chat_server_that_names_the_stop_sequence_is_heard(
    flow: Flow, model: str, choice: Json, stop: tuple[str, str | None]
) -> None:
    used = {"usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, **choice}], **used}
    first = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": None}]}
    flow.script(reply(whole), stream([first, {"choices": [{"index": 0, "delta": {}, **choice}], **used}]))
    message = flow.messages({"model": model, "messages": [HI], "stop_sequences": ["END"]})
    assert (message["stop_reason"], message["stop_sequence"]) == stop
    assert [body["stop"] for body in flow.sent] == [["END"]] * 2


def test_a_refusal_is_one(flow: Flow) -> None:
    flow.script(strictly(claude(stop="refusal", stop_details={"type": "refusal", "explanation": "No."})))
    message = flow.message({"model": HAIKU, "messages": [HI]})
    assert (message["stop_reason"], message["content"][-1]["text"]) == ("refusal", "No.")


# Pains


def test_an_instruction_between_the_turns_stays_where_it_is(flow: Flow) -> None:
    turns = [HI, {"role": "system", "content": "Mind the gap."}, {"role": "assistant", "content": "ok"}, HI]
    flow.script(chat("a"), native("a"), strictly(claude(said("a"))), chat("a"))
    for model in (DEEPSEEK, GPT, OPUS, MISTRAL):
        flow.message({"model": model, "messages": turns})
    for body in flow.sent:
        told = body.get("messages") or body["input"]
        places = [index for index, turn in enumerate(told) if "Mind the gap." in repr(turn)]
        assert places in ([1], [0]), told
        assert repr(told).index("'hi") < repr(told).index("Mind the gap.") < repr(told).index("'ok'")


def test_the_changing_line_for_the_vendors_accounts_never_leaves(flow: Flow) -> None:
    flow.script(chat("a"), chat("a"))
    for suffix in ("ff3", "0dc"):
        line = f"x-anthropic-billing-header: cc_version=2.1.325.{suffix}; cc_entrypoint=cli;"
        system = [{"type": "text", "text": line}, {"type": "text", "text": "Be kind."}]
        flow.message({"model": DEEPSEEK, "messages": [HI], "system": system})
    assert flow.sent[0] == flow.sent[1]
    assert flow.sent[0]["messages"][0] == {"role": "system", "content": "Be kind."}


@pytest.mark.parametrize("pieces", [1, 2, 5, 40])
def test_inputs_are_complete_however_they_are_cut(flow: Flow, pieces: int) -> None:
    flow.script(chat("Go.", calls=[("c1", "look", {"a": "one"}), ("c2", "look", {"b": "two"})], pieces=pieces))
    message = fold_message(flow.message_stream({"model": DEEPSEEK, "messages": [HI], "tools": [LOOK]}))
    assert [block["input"] for block in message["content"] if block["type"] == "tool_use"] == [
        {"a": "one"},
        {"b": "two"},
    ]


def test_a_foreign_signature_goes_to_nobody(flow: Flow) -> None:
    flow.script(strictly(claude(said("a"))), chat("a"), native("a"))
    forged = {"type": "thinking", "thinking": "mine", "signature": "EqQBCkgIARABGAIiQL8="}
    turns = [HI, {"role": "assistant", "content": [forged, {"type": "text", "text": "b"}]}, HI]
    for model in (OPUS, DEEPSEEK, GPT):
        message = flow.message({"model": model, "messages": turns})
        paths = [one["path"] for one in message["isthmus"]["diagnostics"]]
        assert "messages[1].content[0].signature" in paths
    assert "EqQBCkgIARABGAIiQL8=" not in repr(flow.sent)


@pytest.mark.parametrize("shown", ["summarized", "omitted"])
def test_thinking_goes_back_to_its_maker_byte_for_byte(flow: Flow, shown: str) -> None:
    """Interleaved, empty and hidden blocks included; elsewhere only the words go."""
    blocks = [thought("Hm."), called("c1", "look"), thought(""), called("c2", "look"), hidden(), called("c3", "look")]
    thinking = {"thinking": {"type": "adaptive", "display": shown}, "tools": [LOOK]}
    flow.script(strictly(claude(*blocks)), strictly(claude(said("Done."))), chat("Done."))
    first = fold_message(flow.message_stream({"model": OPUS, "messages": [HI], **thinking}))
    assert [block["type"] for block in first["content"]] == ["thinking", "tool_use"] * 3
    assert first["content"][0]["thinking"] == ("Hm." if shown == "summarized" else "")
    assert all(block["signature"].startswith("isth2.") for block in first["content"][::2])
    turns = [HI, *answered(first, *(result(f"c{number}", "ok") for number in (3, 1, 2)))]
    flow.message({"model": OPUS, "messages": turns, **thinking})
    sent = flow.sent[1]["messages"][1]["content"]
    assert [{name: value for name, value in block.items() if name != "cache_control"} for block in sent] == blocks
    flow.message({"model": DEEPSEEK, "messages": turns, **thinking})
    assert thought("Hm.")["signature"] not in repr(flow.sent[2])
    assert "isth2." not in repr(flow.sent)


def test_state_of_other_vendors_travels_as_a_signature(flow: Flow) -> None:
    """Sealed reasoning of a native upstream, and signatures of calls that come behind them."""
    flow.script(native("a", summary="Hm.", sealed="opaque-state"), native("b"))
    first = flow.message({"model": GPT, "messages": [HI], **THINKS})
    flow.message({"model": GPT, "messages": [HI, {"role": "assistant", "content": first["content"]}, HI], **THINKS})
    assert "opaque-state" in repr(flow.sent[1])
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    whole = {"role": "assistant", "content": None, "tool_calls": [{**call, "extra_content": signed}]}
    choices = [{"index": 0, "message": whole, "finish_reason": "tool_calls"}]
    flow.script(reply({"choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": 1}}), chat("Done."))
    gemini = "gemini/gemini-3.5-flash"
    made = flow.message({"model": gemini, "messages": [HI], "tools": [LOOK]})
    carrier = [block for block in made["content"] if block["type"] == "thinking"]
    assert [block["thinking"] for block in carrier] == [""]
    front = {"role": "assistant", "content": [*carrier, *(b for b in made["content"] if b["type"] != "thinking")]}
    turns = [HI, front, {"role": "user", "content": [result("c1", "ok")]}]
    flow.message({"model": gemini, "messages": turns, "tools": [LOOK]})
    assert flow.sent[3]["messages"][1]["tool_calls"][0]["extra_content"] == signed


def test_odd_ids_of_calls_become_plain_and_stay_unique(flow: Flow) -> None:
    """A vendor that calls every first call `Bash:0`: the client sees plain ids, and never one twice."""
    seen: list[str] = []
    turns: list[Json] = [HI]
    for _ in range(3):
        flow.script(chat(None, calls=[("Bash:0", "look", {}), ("x" * 80, "look", {}), ("call_0", "look", {})]))
        message = flow.message({"model": DEEPSEEK, "messages": turns, "tools": [LOOK]})
        ids = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        turns += answered(message, *(result(id, "ok") for id in ids))
        seen += ids
    assert len(set(seen)) == 9
    assert all(id.replace("_", "").replace("-", "").isalnum() and len(id) <= 64 for id in seen)
    assert seen[2] == "call_0"


def test_marks_fit_the_upstream(flow: Flow) -> None:
    """Five marks of an hour: four of them at a vendor that takes four, none where there are none, told once."""
    hour = {"type": "ephemeral", "ttl": "1h"}
    marked = [{"type": "text", "text": f"t{n}", "cache_control": hour} for n in range(4)]
    body = {"messages": [{"role": "user", "content": marked}], "system": [{**marked[0], "text": "s"}]}
    flow.script(strictly(claude(said("a"))), chat("a"), native("a"))
    for model in (OPUS, DEEPSEEK, GPT):
        message = flow.message({"model": model, **body})
        told = [one["path"] for one in message["isthmus"]["diagnostics"] if "cache_control" in one["path"]]
        assert len(told) <= 2
    assert repr(flow.sent[0]).count("'cache_control'") == 4
    assert "cache" not in repr(flow.sent[1])


def test_a_search_is_refused_aloud_or_run(flow: Flow) -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    asked = {"messages": [HI], "tools": [search], "tool_choice": {"type": "tool", "name": "web_search"}}
    for choice in (asked["tool_choice"], {"type": "auto"}):
        refused = flow.post("/v1/messages", {"model": DEEPSEEK, "max_tokens": 9, **asked, "tool_choice": choice})
        assert refused.status == 400
        assert "`tools[0]`" in refused.json["error"]["message"]
        assert "`web_search`" in refused.json["error"]["message"]
    found = {"type": "web_search_result", "title": "A", "url": "https://a.example", "encrypted_content": "e"}
    ran = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]},
        said("Found."),
    ]
    flow.script(claude(*ran))
    message = flow.message({"model": OPUS, **asked})
    assert [block["type"] for block in message["content"]] == [*("server_tool_use", "web_search_tool_result", "text")]
    assert message["content"][1]["content"][0]["url"] == "https://a.example"


def test_references_to_tools_are_text(flow: Flow) -> None:
    loaded = [{"type": "tool_reference", "tool_name": "WebSearch"}]
    turns = [
        HI,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [result("c1", loaded), {"type": "text", "text": "Tool loaded."}]},
    ]
    deferred = {**LOOK, "name": "WebSearch", "defer_loading": True}
    flow.script(chat("a"))
    flow.message({"model": DEEPSEEK, "messages": turns, "tools": [LOOK, deferred]})
    assert [turn["content"] for turn in flow.sent[0]["messages"][2:]] == ["loaded: WebSearch", "Tool loaded."]
    assert [tool["function"]["name"] for tool in flow.sent[0]["tools"]] == ["look", "WebSearch"]


@pytest.mark.parametrize("end", [[CUT], []], ids=["cut", "without an end"])
def test_a_stream_that_breaks_off_ends_with_an_error(flow: Flow, end: list[Any]) -> None:
    flow.script(stream([*chat_chunks("Hello there")[:2], *end], done=False))
    frames = flow.message_stream({"model": DEEPSEEK, "messages": [HI]}, failed=True)
    assert frames[-1]["error"]["type"] == "api_error"


def test_an_overloaded_upstream_says_so_inside_the_stream(flow: Flow) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    told = [*events([said("Hello there")])[:4], overloaded]
    flow.script(stream(named_sse(told), done=False))
    frames = flow.message_stream({"model": OPUS, "messages": [HI]}, failed=True)
    assert frames[-1]["error"]["type"] == "overloaded_error"


def test_a_tiny_budget_is_no_error(flow: Flow) -> None:
    flow.script(strictly(claude(said("a"))))
    thinking = {"type": "enabled", "budget_tokens": 5}
    message = flow.message({"model": HAIKU, "max_tokens": 4000, "messages": [HI], "thinking": thinking})
    assert flow.sent[0]["thinking"]["budget_tokens"] >= 1024
    assert "thinking.budget_tokens" in [one["path"] for one in message["isthmus"]["diagnostics"]]
