"""Items in any order become valid turns, and every repair is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.normalise import NO_OUTPUT, STILL_RUNNING, normalise_history
from isthmus.bridge.types.history import Acted, History, Kept, Part, Said, Words
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


def words(parts: Sequence[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Words)]


def sketch(history: History) -> list[str]:
    """One line per turn: `user: hi` or `assistant: text | call=result`."""
    lines = []
    for turn in history.turns:
        if isinstance(turn, Said):
            lines.append(f"{turn.role}: {' / '.join(words(turn.parts))}")
        else:
            pairs = zip(turn.calls, turn.results, strict=True)
            calls = [f"{past.id}={' / '.join(words(result.parts))}" for past, result in pairs]
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


def test_an_output_without_an_id_stands_with_the_call_that_it_names() -> None:
    given = {"type": "function_call_output", "output": "done", "name": "g"}
    history = normalise_history([user("go"), call("a"), call("b", name="g"), output("a"), given])
    assert sketch(history) == ["user: go", "assistant: a=out a | b=done"]
    assert not history.decisions


def test_a_namespace_and_free_text_stay_with_the_call() -> None:
    custom = {"type": "custom_tool_call", "call_id": "2", "name": "patch", "input": "*** Begin"}
    (turn,) = normalise_history([{**call("1", name="echo"), "namespace": "mcp__demo"}, custom]).turns
    assert isinstance(turn, Acted)
    assert [(past.name, past.namespace, past.free_text) for past in turn.calls] == [
        ("echo", "mcp__demo", None),
        ("patch", None, "*** Begin"),
    ]


# Outputs that come turns later


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
