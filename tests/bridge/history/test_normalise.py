"""Items in any order become valid turns, and every repair is told."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.normalise import NO_OUTPUT, STILL_RUNNING, normalise_history
from isthmus.bridge.history.parts import words_of
from isthmus.bridge.types.history import Acted, History, Kept, Said
from isthmus.errors import RequestRefused

KEY = b"k" * 32


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def developer(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "developer", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(call_id: str, arguments: str = "{}", name: str = "f") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: str | None = None) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": f"out {call_id}" if text is None else text}


def thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def sketch(history: History) -> list[str]:
    """One line per turn: `user: hi` or `assistant: text | call=result`."""
    lines = []
    for turn in history.turns:
        if isinstance(turn, Said):
            lines.append(f"{turn.role}: {' / '.join(words_of(turn.parts))}")
        else:
            pairs = zip(turn.calls, turn.results, strict=True)
            calls = [f"{past.id}={' / '.join(words_of(result.parts))}" for past, result in pairs]
            lines.append("assistant: " + " | ".join([t.text for t in turn.thoughts] + list(turn.texts) + calls))
    return lines


def codes(history: History) -> list[tuple[str, str, str]]:
    return [(d.path, d.action, d.code) for d in history.decisions]


SEQUENCES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "adjacent assistant texts merge": ([assistant("a"), assistant("b")], ["assistant: a | b"]),
    "thought, text and parallel calls are one turn": (
        [thought("t"), assistant("a"), call("1"), call("2"), output("1"), output("2")],
        ["assistant: t | a | 1=out 1 | 2=out 2"],
    ),
    "outputs come in call order": (
        [call("1"), call("2"), output("2"), output("1")],
        ["assistant: 1=out 1 | 2=out 2"],
    ),
    "a call after an output begins the next turn": (
        [call("1"), output("1"), call("2"), output("2")],
        ["assistant: 1=out 1", "assistant: 2=out 2"],
    ),
    "a text after an output begins the next turn": (
        [call("1"), output("1"), assistant("done")],
        ["assistant: 1=out 1", "assistant: done"],
    ),
    "a text between call and output stays in the turn": (
        [call("1"), assistant("wait"), output("1")],
        ["assistant: wait | 1=out 1"],
    ),
    "a message between call and output moves behind": (
        [call("1"), user("hm"), output("1")],
        ["assistant: 1=out 1", "user: hm"],
    ),
    "parallel calls around a message stay together": (
        [call("1"), developer("hm"), call("2"), output("1"), output("2")],
        ["assistant: 1=out 1 | 2=out 2", "developer: hm"],
    ),
    "a message ends the turn of a call that nobody answered": (
        [call("1"), user("never mind"), call("2"), output("2")],
        [f"assistant: 1={NO_OUTPUT}", "user: never mind", "assistant: 2=out 2"],
    ),
    "a late output does not swallow the conversation between": (
        [call("1"), user("a"), assistant("b"), user("c"), output("1")],
        ["assistant: 1=out 1", "user: a", "assistant: b", "user: c"],
    ),
    "a call made while another waits stays before later outputs": (
        [call("1"), call("2"), output("1"), call("3"), output("2"), output("3")],
        ["assistant: 1=out 1 | 2=out 2", "assistant: 3=out 3"],
    ),
    "a missing output is said to be missing": (
        [call("1"), call("2"), output("2")],
        [f"assistant: 1={NO_OUTPUT} | 2=out 2"],
    ),
    "an orphan output becomes a user note": (
        [user("a"), output("9")],
        ["user: a", "user: [output of a tool call that is not in the history: 9] / out 9"],
    ),
    "an output before its call is moved behind it": ([output("1"), call("1")], ["assistant: 1=out 1"]),
    "a second output for one call is a note": (
        [call("1"), output("1"), output("1", "again")],
        ["assistant: 1=out 1", "user: [output of a tool call that is not in the history: 1] / again"],
    ),
    "ids that recur each turn are made unique": (
        [call("0"), output("0", "a"), call("0"), output("0", "b"), call("0"), output("0", "c")],
        ["assistant: 0=a", "assistant: 0_2=b", "assistant: 0_3=c"],
    ),
    "one id used twice in parallel is answered in order": (
        [call("0"), call("0"), output("0", "a"), output("0", "b")],
        ["assistant: 0=a | 0_2=b"],
    ),
    "a recurring id whose first output is lost keeps the second one": (
        [call("0"), user("x"), call("0"), output("0", "b")],
        [f"assistant: 0={NO_OUTPUT}", "user: x", "assistant: 0_2=b"],
    ),
    "a made id does not meet a real one": (
        [call("0"), output("0", "a"), call("0_2"), output("0_2", "b"), call("0"), output("0", "c")],
        ["assistant: 0=a", "assistant: 0_2=b", "assistant: 0_3=c"],
    ),
    "an instruction between thought and call goes before both": (
        [thought("t"), developer("d"), call("1"), output("1")],
        ["developer: d", "assistant: t | 1=out 1"],
    ),
    "a user message leaves an unfinished thought behind": (
        [thought("t"), user("u"), assistant("a")],
        ["assistant: t", "user: u", "assistant: a"],
    ),
    "an ignored item does not split a turn": (
        [thought("t"), {"type": "web_search_call", "id": "ws"}, assistant("a")],
        ["assistant: t | a"],
    ),
    "an empty assistant message is skipped": ([user("a"), assistant(""), user("b")], ["user: a", "user: b"]),
    "an unnamed call goes, its output stays as a note": (
        [call("1", name=" "), output("1")],
        ["user: [output of a tool call that is not in the history: 1] / out 1"],
    ),
}


@pytest.mark.parametrize(("items", "expected"), SEQUENCES.values(), ids=SEQUENCES.keys())
def test_items_become_turns(items: list[dict[str, Any]], expected: list[str]) -> None:
    assert sketch(normalise_history(items)) == expected


REPAIRS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "nothing to repair": ([user("a"), call("1"), output("1"), assistant("b")], []),
    "missing output": ([call("1")], ["input[0]"]),
    "orphan output": ([output("1")], ["input[0]"]),
    "moved message": ([call("1"), user("a"), output("1")], ["input[1]"]),
    "early output": ([output("1"), call("1")], ["input[0]"]),
    "recurring id": ([call("1"), output("1"), call("1"), output("1")], ["input[2].call_id"]),
    "malformed arguments": ([call("1", "{"), output("1")], ["input[0].arguments"]),
    "unnamed call": ([call("1", name="")], ["input[0].name"]),
}


@pytest.mark.parametrize(("items", "paths"), REPAIRS.values(), ids=REPAIRS.keys())
def test_each_repair_has_a_decision(items: list[dict[str, Any]], paths: list[str]) -> None:
    assert codes(normalise_history(items)) == [(path, "degraded", "bridge.history.repaired") for path in paths]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{ "b":2,\n"a":1 }', '{ "b":2,\n"a":1 }'),
        ("", "{}"),
        ("  ", "{}"),
        ("null", "{}"),
        ("[1]", '{"_raw":"[1]"}'),
        ('"text"', '{"_raw":"\\"text\\""}'),
        ('{"a": ', '{"_raw":"{\\"a\\": "}'),
        ("{'a': 1}", '{"_raw":"{\'a\': 1}"}'),
        ('{"a": "x\ny"}', '{"_raw":"{\\"a\\": \\"x\\ny\\"}"}'),
        ("[" * 5000, '{"_raw":"' + "[" * 5000 + '"}'),
    ],
    ids=["kept", "spacing kept", "empty", "blank", "null", "list", "string", "cut", "python", "control", "deep"],
)
def test_arguments_are_always_a_json_object_with_the_same_id(given: str, kept: str) -> None:
    turn = normalise_history([call("1", given), output("1")]).turns[0]
    assert isinstance(turn, Acted)
    assert (turn.calls[0].id, turn.calls[0].arguments) == ("1", kept)


CALLS: dict[str, tuple[dict[str, Any], str, str | None, str]] = {
    "function with namespace": (
        {"type": "function_call", "call_id": "1", "name": "echo", "namespace": "mcp__demo", "arguments": '{"s": 1}'},
        "echo",
        "mcp__demo",
        '{"s": 1}',
    ),
    "custom": (
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "*** Begin\n"},
        "apply_patch",
        None,
        '{"input":"*** Begin\\n"}',
    ),
    "shell": (
        {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"], "timeout_ms": None}},
        "shell",
        None,
        '{"commands":["ls"]}',
    ),
    "local shell": (
        {
            "type": "local_shell_call",
            "call_id": "1",
            "action": {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 5, "user": None},
        },
        "local_shell",
        None,
        '{"command":["ls"],"timeout_ms":5}',
    ),
    "local shell with env": (
        {"type": "local_shell_call", "call_id": "1", "action": {"type": "exec", "command": ["ls"], "env": {"A": "1"}}},
        "local_shell",
        None,
        '{"command":["ls"],"env":{"A":"1"}}',
    ),
    "apply patch": (
        {"type": "apply_patch_call", "call_id": "1", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        None,
        '{"operation":{"type":"delete_file","path":"a"}}',
    ),
    "tool search": (
        {"type": "tool_search_call", "call_id": "1", "arguments": {"query": "x", "limit": 2}},
        "tool_search",
        None,
        '{"query":"x","limit":2}',
    ),
    "tool search with text arguments": (
        {"type": "tool_search_call", "call_id": "1", "arguments": '{"query":"x"}'},
        "tool_search",
        None,
        '{"query":"x"}',
    ),
    "tool search without arguments": ({"type": "tool_search_call", "call_id": "1"}, "tool_search", None, "{}"),
}


@pytest.mark.parametrize(("item", "name", "namespace", "arguments"), CALLS.values(), ids=CALLS.keys())
def test_each_call_type_goes_back_to_its_arguments(
    item: dict[str, Any], name: str, namespace: str | None, arguments: str
) -> None:
    turn = normalise_history([item]).turns[0]
    assert isinstance(turn, Acted)
    made = turn.calls[0]
    assert (made.name, made.namespace, made.arguments) == (name, namespace, arguments)


OUTPUTS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "text": ("function_call", {"type": "function_call_output", "call_id": "1", "output": "ok"}, ["ok"]),
    "empty text": ("function_call", {"type": "function_call_output", "call_id": "1", "output": ""}, []),
    "text parts": (
        "custom_tool_call",
        {
            "type": "custom_tool_call_output",
            "call_id": "1",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        ["a", "b"],
    ),
    "shell chunks": (
        "shell_call",
        {
            "type": "shell_call_output",
            "call_id": "1",
            "output": [
                {"stdout": "hi\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
        ["[exit 0]\nstdout:\nhi\n[exit 2]\nstderr:\nno\n[timeout]"],
    ),
    "shell text": ("shell_call", {"type": "shell_call_output", "call_id": "1", "output": "raw"}, ["raw"]),
    "local shell, known by its id": (
        "local_shell_call",
        {"type": "local_shell_call_output", "id": "1", "output": "raw"},
        ["raw"],
    ),
    "patch": (
        "apply_patch_call",
        {"type": "apply_patch_call_output", "call_id": "1", "status": "failed", "output": "no such file"},
        ["failed: no such file"],
    ),
    "patch without words": (
        "apply_patch_call",
        {"type": "apply_patch_call_output", "call_id": "1", "status": "completed"},
        ["completed"],
    ),
    "output of a neighbouring type": (
        "custom_tool_call",
        {"type": "function_call_output", "call_id": "1", "output": "ok"},
        ["ok"],
    ),
    "object from older clients": (
        "function_call",
        {"type": "function_call_output", "call_id": "1", "output": {"content": "ok", "success": True}},
        ["ok"],
    ),
}


@pytest.mark.parametrize(("kind", "item", "texts"), OUTPUTS.values(), ids=OUTPUTS.keys())
def test_each_output_type_becomes_text(kind: str, item: dict[str, Any], texts: list[str]) -> None:
    made = {
        "type": kind,
        "call_id": "1",
        "name": "f",
        "arguments": "{}",
        "input": "",
        "action": {"commands": []},
        "operation": {},
    }
    turn = normalise_history([made, item]).turns[0]
    assert isinstance(turn, Acted)
    assert words_of(turn.results[0].parts) == texts
    assert not turn.results[0].synthesised


def test_calls_without_an_id_are_answered_by_outputs_of_their_family() -> None:
    found = {"type": "tool_search_output", "call_id": None, "tools": []}
    history = normalise_history([{"type": "tool_search_call", "call_id": None, "arguments": {}}, found])
    assert history.decisions == ()
    turn = history.turns[0]
    assert isinstance(turn, Acted)
    assert turn.calls[0].id == "call_0"


def test_paths_tell_stored_items_from_new_ones() -> None:
    history = normalise_history([call("1"), user("a"), call("2")], stored=2)
    assert [d.path for d in history.decisions] == ["history[0]", "input[0]"]


def test_an_unresolved_reference_is_refused_by_its_id() -> None:
    with pytest.raises(RequestRefused, match=r"`input\[1\]\.id` refers to item `msg_7`") as caught:
        normalise_history([user("a"), {"type": "item_reference", "id": "msg_7"}])
    assert caught.value.param == "input[1].id"
    assert caught.value.code == "bridge.request.unsupported_input_item"


def test_reasoning_reads_content_before_envelope_before_summary() -> None:
    sealed = seal(Sealed("p", "sealed text"), KEY)
    summary = [{"type": "summary_text", "text": "short"}]
    full = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "full"}], "summary": summary}
    items = [
        full,
        {"type": "reasoning", "content": None, "summary": summary, "encrypted_content": sealed},
        {"type": "reasoning", "summary": summary},
    ]
    turn = normalise_history([*items, assistant("a")], envelope_key=KEY, provider="p").turns[0]
    assert isinstance(turn, Acted)
    assert [(t.text, t.summarised) for t in turn.thoughts] == [
        ("full", False),
        ("sealed text", False),
        ("short", True),
    ]


def test_our_envelope_gives_message_and_call_state_to_its_provider() -> None:
    sealed = Sealed("gemini", "t", {"reasoning_details": [1]}, {"1": {"sig": "x"}})
    item = {"type": "reasoning", "summary": [], "encrypted_content": seal(sealed, KEY)}
    items = [item, call("1"), call("2"), output("1"), output("2")]
    turn = normalise_history(items, envelope_key=KEY, provider="gemini").turns[0]
    assert isinstance(turn, Acted)
    assert turn.thoughts[0].extras == {"reasoning_details": [1]}
    assert [past.extra for past in turn.calls] == [{"sig": "x"}, None]

    other = normalise_history(items, envelope_key=KEY, provider="deepseek")
    turn = other.turns[0]
    assert isinstance(turn, Acted)
    assert turn.thoughts[0].text == "t"
    assert turn.thoughts[0].extras == {}
    assert turn.calls[0].extra is None
    assert codes(other) == [("input[0].encrypted_content", "ignored", "bridge.item.ignored")]


@pytest.mark.parametrize("key", [None, KEY, b"other" * 8], ids=["no key", "foreign text", "other key"])
def test_a_foreign_envelope_is_left_out_with_a_decision(key: bytes | None) -> None:
    envelope = seal(Sealed("p", "secret"), b"w" * 32) if key is not None else "gAAAAfoo"
    history = normalise_history(
        [{"type": "reasoning", "summary": [], "encrypted_content": envelope}, assistant("a")], envelope_key=key
    )
    assert codes(history) == [("input[0].encrypted_content", "ignored", "bridge.item.ignored")]
    assert sketch(history) == ["assistant:  | a"]


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_our_compaction_expands_to_a_user_note(kind: str) -> None:
    ours = {"type": kind, "encrypted_content": seal(Sealed("p", "we did x"), KEY)}
    history = normalise_history([ours], envelope_key=KEY, provider="q")
    assert sketch(history) == ["user: [summary of the conversation so far]\nwe did x"]
    assert history.decisions == ()


@pytest.mark.parametrize("envelope", [None, "gAAAA"], ids=["empty", "foreign"])
def test_a_compaction_that_cannot_be_read_is_ignored(envelope: str | None) -> None:
    history = normalise_history([{"type": "compaction", "encrypted_content": envelope}], envelope_key=KEY)
    assert history.turns == ()
    assert codes(history)[-1] == ("input[0]", "ignored", "bridge.item.ignored")


# Outputs that come without an id, or turns later


def by_name(name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "output": "done", "name": name, **more}


@pytest.mark.parametrize("given", [by_name("g"), by_name("g", call_id=None)])
def test_an_output_without_an_id_belongs_to_the_one_open_call_of_its_name(given: dict[str, Any]) -> None:
    history = normalise_history([user("go"), call("a"), call("b", name="g"), output("a"), given])
    assert sketch(history) == ["user: go", "assistant: a=out a | b=done"]
    assert not history.decisions


def test_a_call_that_has_its_output_is_no_longer_meant() -> None:
    history = normalise_history([call("a"), output("a"), call("b"), by_name("f")])
    assert sketch(history) == ["assistant: a=out a", "assistant: b=done"]


def test_the_namespace_tells_calls_of_one_name_apart() -> None:
    calls = [{**call("a"), "namespace": "x"}, {**call("b"), "namespace": "y"}]
    history = normalise_history([*calls, by_name("f", namespace="y"), output("a")])
    assert sketch(history) == ["assistant: a=out a | b=done"]


@pytest.mark.parametrize("before", [[call("a"), call("b")], [call("a", name="g")], []], ids=["two", "other", "none"])
def test_an_output_that_could_belong_to_no_or_several_calls_is_refused(before: list[dict[str, Any]]) -> None:
    with pytest.raises(RequestRefused, match=r"`input\[\d\]` has no `call_id`") as refused:
        normalise_history([*before, by_name("f")])
    assert refused.value.param == f"input[{len(before)}].call_id"


PATIENT = frozenset({(None, "f")})


def test_a_late_output_is_told_when_it_comes_and_the_call_as_still_running() -> None:
    items = [user("go"), call("a"), assistant("started"), user("and now?"), output("a"), user("well?")]
    history = normalise_history(items, patient=PATIENT)
    assert sketch(history) == [
        "user: go",
        f"assistant: started | a={STILL_RUNNING}",
        "user: and now?",
        "user: [output of the call a of `f`] / out a",
        "user: well?",
    ]
    assert codes(history) == [("input[4]", "degraded", "bridge.item.degraded")]


def test_an_output_that_comes_at_once_stays_with_its_call() -> None:
    history = normalise_history([call("a"), output("a"), user("thanks")], patient=PATIENT)
    assert sketch(history) == ["assistant: a=out a", "user: thanks"]


def test_an_output_that_is_still_to_come_is_said_to_be() -> None:
    history = normalise_history([call("a"), user("and now?")], patient=PATIENT)
    assert sketch(history) == [f"assistant: a={STILL_RUNNING}", "user: and now?"]
    assert codes(history) == [("input[0]", "degraded", "bridge.item.degraded")]


def test_a_program_is_a_call_and_its_result() -> None:
    items: list[dict[str, Any]] = [
        {"type": "program", "id": "p", "call_id": "c", "code": "await f()", "fingerprint": "fp"},
        {**call("a"), "caller": {"type": "program", "caller_id": "c"}},
        output("a"),
        {"type": "program_output", "id": "o", "call_id": "c", "result": "42", "status": "completed"},
    ]
    history = normalise_history(items)
    assert sketch(history) == ["assistant: c=42 | a=out a"]
    assert isinstance(history.turns[0], Acted)
    assert history.turns[0].calls[0].arguments == '{"code":"await f()"}'
    kept = normalise_history(items, keeps={"program", "program_output"})
    assert isinstance(kept.turns[0], Acted)
    assert [step.item["fingerprint"] for step in kept.turns[0].steps if isinstance(step, Kept)][:1] == ["fp"]
