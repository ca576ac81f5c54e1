"""Tool markup in the text → calls, for the three families that leak it, wherever the text is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, Markup, Reasoning, Text
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.dialects.chat.markup import LeakedTools
from isthmus.bridge.types.plan import Host
from isthmus.testing.fold import plan_for, stream
from wire.oracle import check_stream

SCHEMAS: dict[str, dict[str, Any] | None] = {
    "run": {"type": "object", "properties": {"cmd": {"type": "string"}, "n": {"type": "integer"}}},
    "run_all": None,
    "note": {"type": "object", "properties": {"input": {"type": "string"}}},
}
D = "｜DSML｜"


def dsml(inner: str, wrapper: str = "tool_calls", bars: str = D) -> str:
    return f"<{bars}{wrapper}>\n{inner}\n</{bars}{wrapper}>"


def invoke(name: str, *parameters: str, bars: str = D) -> str:
    return f'<{bars}invoke name="{name}">' + "".join(parameters) + f"</{bars}invoke>"


def parameter(name: str, value: str, string: str | None = "true", bars: str = D) -> str:
    form = f' string="{string}"' if string else ""
    return f'<{bars}parameter name="{name}"{form}>{value}</{bars}parameter>'


def read(family: str, *pieces: str) -> tuple[str, list[tuple[str, Any]]]:
    """All words that came out, and the calls with their arguments."""
    reader, out = LeakedTools(family, SCHEMAS), list[Delta]()
    for piece in pieces:
        reader.feed(piece, out)
    reader.end(out)
    return words(out), calls(out)


def words(out: list[Delta]) -> str:
    return "".join(delta.text for delta in out if isinstance(delta, Text))


def calls(out: list[Delta]) -> list[tuple[str, Any]]:
    names = {delta.slot: delta.name for delta in out if isinstance(delta, CallOpened)}
    return [(names[delta.slot], json.loads(delta.text)) for delta in out if isinstance(delta, CallArguments)]


RUN = ("run", {"cmd": "ls", "n": 2})

FORMS: dict[str, tuple[str, str, str, list[tuple[str, Any]]]] = {
    "qwen, hermes": (
        "qwen",
        '<tool_call>\n{"name": "run", "arguments": {"cmd": "ls", "n": 2}}\n</tool_call>',
        "",
        [RUN],
    ),
    "qwen, arguments as text": (
        "qwen",
        '<tool_call>{"name": "run", "arguments": "{\\"cmd\\": \\"ls\\", \\"n\\": 2}"}</tool_call>',
        "",
        [RUN],
    ),
    "qwen, a closing tag inside a value": (
        "qwen",
        '<tool_call>{"name": "run", "arguments": {"cmd": "echo </tool_call>"}}</tool_call>',
        "",
        [("run", {"cmd": "echo </tool_call>"})],
    ),
    "qwen, two calls and words around": (
        "qwen",
        'Let me see.\n\n<tool_call>{"name": "run", "arguments": {}}</tool_call>\n'
        '<tool_call>{"name": "run_all"}</tool_call>\n\nThere.',
        "Let me see.There.",
        [("run", {}), ("run_all", {})],
    ),
    "qwen, coder": (
        "qwen",
        "<tool_call>\n<function=run>\n<parameter=cmd>\nls\n</parameter>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>",
        "",
        [RUN],
    ),
    "qwen, coder without its wrapper": (
        "qwen",
        "<function=run>\n<parameter=cmd>\nls\n</parameter>\n<parameter=n>2</parameter>\n</function>\n</tool_call>",
        "",
        [RUN],
    ),
    "qwen, coder keeps inner line breaks": (
        "qwen",
        "<tool_call><function=note><parameter=input>\na\n\nb\n\n</parameter></function></tool_call>",
        "",
        [("note", {"input": "a\n\nb\n"})],
    ),
    "glm": (
        "glm",
        "<tool_call>run<arg_key>cmd</arg_key><arg_value>ls</arg_value><arg_key>n</arg_key><arg_value>2</arg_value></tool_call>",
        "",
        [RUN],
    ),
    "glm, on lines": (
        "glm",
        "<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_value>ls</arg_value>\n<arg_key>n</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
        "",
        [RUN],
    ),
    "glm, without arguments": ("glm", "<tool_call>run_all</tool_call>", "", [("run_all", {})]),
    "glm, text that looks like a number stays text": (
        "glm",
        "<tool_call>run<arg_key>cmd</arg_key><arg_value>42</arg_value></tool_call>",
        "",
        [("run", {"cmd": "42"})],
    ),
    "glm, a closing tag inside a value": (
        "glm",
        "<tool_call>run<arg_key>cmd</arg_key><arg_value>echo </tool_call></arg_value></tool_call>",
        "",
        [("run", {"cmd": "echo </tool_call>"})],
    ),
    "dsml": ("dsml", dsml(invoke("run", parameter("cmd", "ls"), parameter("n", "2", "false"))), "", [RUN]),
    "dsml, the older wrapper": ("dsml", dsml(invoke("run_all"), "function_calls"), "", [("run_all", {})]),
    "dsml, two invokes": (
        "dsml",
        "Now:\n" + dsml(invoke("run_all") + "\n" + invoke("run", parameter("cmd", "ls"), parameter("n", "2", None))),
        "Now:",
        [("run_all", {}), RUN],
    ),
    "dsml, plain bars": (
        "dsml",
        dsml(invoke("run_all", bars="|DSML|"), bars="|DSML|"),
        "",
        [("run_all", {})],
    ),
    "dsml, double bars": (
        "dsml",
        dsml(invoke("run", parameter("cmd", "ls", bars="｜｜DSML｜｜"), bars="｜｜DSML｜｜"), bars="｜｜DSML｜｜"),
        "",
        [("run", {"cmd": "ls"})],
    ),
    "dsml, without the opening wrapper": (
        "dsml",
        invoke("run", parameter("cmd", "ls")) + f"\n</{D}tool_calls>",
        "",
        [("run", {"cmd": "ls"})],
    ),
    "dsml, text that looks like json stays text": (
        "dsml",
        dsml(invoke("run", parameter("cmd", '{"a": 1}'))),
        "",
        [("run", {"cmd": '{"a": 1}'})],
    ),
}


@pytest.mark.parametrize(("family", "text", "said", "called"), FORMS.values(), ids=list(FORMS))
def test_complete_markup_becomes_calls(family: str, text: str, said: str, called: list[tuple[str, Any]]) -> None:
    assert read(family, text) == (said, called)


UNTOUCHED: dict[str, tuple[str, str]] = {
    "no markup": ("qwen", "a < b, and <b>bold</b>\n\nend "),
    "talk about the tag": ("qwen", "Use <tool_call> tags, closed by </tool_call>."),
    "a tool that was not offered": ("qwen", '<tool_call>{"name": "other", "arguments": {}}</tool_call>'),
    "never closed": ("qwen", '<tool_call>{"name": "run", "arguments": {}}'),
    "arguments that are no object": ("qwen", '<tool_call>{"name": "run", "arguments": [1]}</tool_call>'),
    "nested beyond reason": ("qwen", f'<tool_call>{{"name": "run", "arguments": {"[" * 20_000}</tool_call>'),
    "a closing tag alone": ("qwen", "so </tool_call> it ends"),
    "an unknown coder function": ("qwen", "<function=other><parameter=a>1</parameter></function>"),
    "glm, another tool": ("glm", "<tool_call>other<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>"),
    "glm, cut": ("glm", "<tool_call>run<arg_key>cmd</arg_key><arg_value>ls"),
    "glm, junk behind the arguments": ("glm", "<tool_call>run junk</tool_call>"),
    "dsml, another tool": ("dsml", dsml(invoke("other"))),
    "dsml, cut": ("dsml", f'x\n<{D}tool_calls>\n<{D}invoke name="run">\n<{D}parameter name="cmd" string="true">l'),
    "dsml, prose inside": ("dsml", f"<{D}tool_calls> is how calls begin"),
    "qwen's tag where dsml is spoken": ("dsml", '<tool_call>{"name": "run"}</tool_call>'),
}


@pytest.mark.parametrize(("family", "text"), UNTOUCHED.values(), ids=list(UNTOUCHED))
def test_everything_else_stays_the_text_it_was(family: str, text: str) -> None:
    assert read(family, text) == (text, [])


def test_a_value_nested_beyond_reason_is_taken_as_text() -> None:
    deep = "[" * 20_000
    text = f"<tool_call>run<arg_key>other</arg_key><arg_value>{deep}</arg_value></tool_call>"
    assert read("glm", text) == ("", [("run", {"other": deep})])


ALL = [
    *((family, text) for family, text, _, _ in FORMS.values()),
    *(case for name, case in UNTOUCHED.items() if name != "nested beyond reason"),
]


@given(st.data(), st.lists(st.sampled_from(range(len(ALL))), min_size=1, max_size=3), st.text("<> \nab", max_size=6))
@settings(max_examples=500, deadline=None)
def test_cutting_anywhere_gives_the_same(data: st.DataObject, chosen: list[int], between: str) -> None:
    family = ALL[chosen[0]][0]
    text = between.join(ALL[index][1] for index in chosen if ALL[index][0] == family) + between
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12))
    edges = sorted({0, len(text), *cuts})
    assert read(family, *(text[a:b] for a, b in pairwise(edges))) == read(family, text)
    assert read(family, *text) == read(family, text)


@given(st.sampled_from(["qwen", "glm", "dsml"]), st.lists(st.text('<>/tool_cal=|｜DSM" \nxy', max_size=12), max_size=6))
@settings(max_examples=500, deadline=None)
def test_without_a_call_no_character_is_lost(family: str, pieces: list[str]) -> None:
    said, called = read(family, *pieces)
    assert said == "".join(pieces)
    assert called == []


def test_words_are_not_held_back() -> None:
    reader, out = LeakedTools("qwen", SCHEMAS), list[Delta]()
    for piece in ("Hello", " world", " a<b", ">c", "!"):
        reader.feed(piece, out)
    assert words(out) == "Hello world a<b>c!"


def test_a_long_block_is_collected_in_linear_time() -> None:
    big = "x" * 200_000
    text = f'<tool_call>{{"name": "run", "arguments": {{"cmd": "{big}"}}}}</tool_call>'
    said, called = read("qwen", *(text[at : at + 2] for at in range(0, len(text), 2)))
    assert (said, called) == ("", [("run", {"cmd": big})])


def test_a_block_without_an_end_is_let_go() -> None:
    text = '<tool_call>{"name": "run", "arguments": {"cmd": "' + "x" * (1 << 20)
    reader, out = LeakedTools("qwen", SCHEMAS), list[Delta]()
    reader.feed(text, out)
    assert words(out) == text


# In the decoder

RULES = ReplyRules(leaked_tools="qwen", think_tags=True)
LEAK = 'I look.\n<tool_call>{"name": "run", "arguments": {"cmd": "ls"}}</tool_call>'


def chunk(delta: dict[str, Any], finish: str | None = None, **choice: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}]}).encode()


def decode(*chunks: bytes, leaks: Any = SCHEMAS, rules: ReplyRules = RULES) -> list[Delta]:
    decoder = ChatDecoder(rules, leaks)
    return [delta for data in chunks for delta in decoder.chunk(data)] + decoder.end()


def test_the_decoder_tells_of_the_markup_it_read() -> None:
    found = decode(chunk({"content": "<think>hm</think>" + LEAK}), chunk({}, "stop"))
    assert found == [
        Markup("think tags in the text were read as reasoning"),
        Reasoning("hm"),
        Text("I look."),
        Markup("tool calls that leaked into the text as markup were read as calls"),
        CallOpened(-1, None, "run"),
        CallArguments(-1, '{"cmd":"ls"}'),
        Finished("stop"),
    ]


@pytest.mark.parametrize(("rules", "leaks"), [(RULES, None), (RULES, {}), (ReplyRules(), SCHEMAS)])
def test_without_tools_or_without_the_data_text_is_text(rules: ReplyRules, leaks: Any) -> None:
    assert words(decode(chunk({"content": LEAK}), rules=rules, leaks=leaks)) == LEAK


def test_held_text_comes_before_a_real_call() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "run", "arguments": "{}"}}
    found = decode(chunk({"content": "a <tool"}), chunk({"tool_calls": [call]}))
    assert found == [Text("a"), Text(" <tool"), CallOpened(0, "c", "run"), CallArguments(0, "{}")]


@pytest.mark.parametrize("leaked", ["", "qwen"])
def test_what_may_begin_a_think_tag_comes_before_a_real_call_too(leaked: str) -> None:
    call = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "run", "arguments": "{}"}}]}
    rules = ReplyRules(think_tags=True, leaked_tools=leaked)
    out = decode(chunk({"content": "a <"}), chunk(call, "tool_calls"), rules=rules)
    assert words(out) == "a <"
    assert [type(delta) for delta in out if not isinstance(delta, Text)] == [CallOpened, CallArguments, Finished]
    assert all(isinstance(delta, Text) for delta in out[:-3])


def test_log_probabilities_keep_the_text_as_it_is() -> None:
    rules = ReplyRules(leaked_tools="qwen")
    found = decode(chunk({"content": "<tool"}, logprobs={"content": [{"token": "<tool"}]}), rules=rules)
    assert isinstance(found[0], Text)
    assert found[0].logprobs


TOOL = {"type": "function", "name": "run", "parameters": SCHEMAS["run"]}


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
def test_a_leaked_call_reaches_the_client_as_a_call(whole: bool) -> None:
    plan = plan_for({"tools": [TOOL]}, reply=ReplyRules(leaked_tools="qwen"))
    decoder = ChatDecoder(plan.reply, plan.leaks)
    message = {"role": "assistant", "content": f"{LEAK}\nDone."}
    if whole:
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        deltas = [decoder.reply(json.dumps(body).encode())]
    else:
        pieces = [chunk({"content": letter}) for letter in message["content"]]
        deltas = [*(decoder.chunk(data) for data in [*pieces, chunk({}, "stop")]), decoder.end()]
    events, response = stream(deltas, plan=plan)
    check_stream(events)
    assert [item["type"] for item in response["output"]] == ["message", "function_call", "message"]
    assert response["output"][1]["arguments"] == '{"cmd":"ls"}'
    assert response["output_text"] == "I look.Done."
    assert [said["code"] for said in response["isthmus"]["diagnostics"]] == ["bridge.response.markup_parsed"]


@pytest.mark.parametrize(
    ("body", "host", "watched"),
    [
        ({"tools": [TOOL]}, Host(), True),
        ({"tools": [TOOL]}, Host(strict=True), False),
        ({}, Host(), False),
        ({"tools": [TOOL], "tool_choice": "none"}, Host(), False),
    ],
    ids=["tools", "strict", "no tools", "none may be called"],
)
def test_markup_is_looked_for_only_when_tools_were_offered(body: dict[str, Any], host: Host, watched: bool) -> None:
    plan = plan_for(body, host=host, reply=ReplyRules(leaked_tools="qwen"))
    assert (plan.leaks is not None) is watched
