"""Past calls that ran here: whose they are, what is left of their results, which reply made them, what was approved."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.envelope import Sealed, seal
from isthmus.bridge.history.managed import NOWHERE, Approvals, Here, is_call, mark_of, read_approvals, result_of
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.types.history import Acted, Said
from isthmus.protocol.json import write_json

KEY = b"k" * 32
HERE = Here(frozenset({"web_search", "mcp"}), frozenset({"docs"}))
CALL: dict[str, Any] = {"type": "mcp_call", "server_label": "docs", "name": "ask", "arguments": "{}", "output": "yes"}


def search(id: str = "ws_ab_c1", **more: Any) -> dict[str, Any]:
    action = {"type": "search", "query": "a", "queries": ["a"]}
    return {"type": "web_search_call", "id": id, "status": "completed", "action": action, **more}


def sealed(output: Any, owner: str = "") -> str:
    return seal(Sealed("", write_json(output)), KEY, owner=owner, kind="tool_result")


@pytest.mark.parametrize(
    ("item", "here", "ours"),
    [
        (search(), HERE, True),
        (search(), NOWHERE, False),
        (CALL, HERE, True),
        ({**CALL, "server_label": "other"}, HERE, False),
        ({"type": "image_generation_call"}, HERE, False),
        ({"type": "function_call", "name": "x"}, HERE, False),
    ],
)
def test_only_what_runs_here_is_read_as_a_call_of_ours(item: Any, here: Here, ours: bool) -> None:
    assert is_call(item, here) is ours


@pytest.mark.parametrize(
    ("id", "mark"),
    [("ws_ab_c1", "ab"), ("msg_abr2_7", "abr2"), ("ws_68f0ab", ""), ("msg", ""), (None, ""), (7, "")],
)
def test_the_reply_is_known_by_the_id(id: Any, mark: str) -> None:
    assert mark_of({"type": "message", "id": id}) == mark


@pytest.mark.parametrize(
    ("item", "told", "failed"),
    [
        pytest.param(search(encrypted_content=sealed("read")), "read", False, id="sealed"),
        pytest.param(
            search(encrypted_content=sealed([{"type": "input_text", "text": "x"}])),
            [{"type": "input_text", "text": "x"}],
            False,
            id="parts",
        ),
        pytest.param(
            search(encrypted_content=sealed("read", "ann")),
            "[what it found is in the answer that followed]",
            False,
            id="another owner's",
        ),
        pytest.param(
            search(encrypted_content=sealed({"no": "output"})),
            "[what it found is in the answer that followed]",
            False,
            id="no output",
        ),
        pytest.param(search(), "[what it found is in the answer that followed]", False, id="nothing left"),
        pytest.param(
            {**search(), "action": {"query": "a", "sources": [{"url": "https://a.example"}]}},
            "[what it found is in the answer that followed]\nhttps://a.example",
            False,
            id="its pages",
        ),
        pytest.param(search(status="failed"), "[it failed]", True, id="failed"),
        pytest.param(CALL, "yes", False, id="a server's own words"),
        pytest.param(
            {**CALL, "output": None, "error": {"type": "http_error", "message": "503"}},
            "[it failed: 503]",
            True,
            id="an error",
        ),
        pytest.param({**CALL, "output": None, "error": "broken"}, "[it failed: broken]", True, id="an error in a word"),
    ],
)
def test_what_the_model_is_told_of_a_past_call(item: Any, told: Any, failed: bool) -> None:
    assert result_of(item, HERE, Approvals(), KEY, "")[:2] == (told, failed)


def test_a_result_of_this_very_response_counts_before_all_else() -> None:
    here = Here(HERE.kinds, HERE.labels, {"ws_ab_c1": "just read"})
    assert result_of(search(encrypted_content=sealed("before")), here, Approvals(), KEY, "")[0] == "just read"


REQUEST = {"type": "mcp_approval_request", "id": "mcpr_ab_c1", "server_label": "docs", "name": "ask", "arguments": "{}"}
YES = {"type": "mcp_approval_response", "approval_request_id": "mcpr_ab_c1", "approve": True}
RAN = {**CALL, "id": "mcp_cd_c1", "approval_request_id": "mcpr_ab_c1"}


@pytest.mark.parametrize(
    ("items", "pending"),
    [
        ([REQUEST, YES], ["mcpr_ab_c1"]),
        ([REQUEST], []),
        ([REQUEST, {**YES, "approve": False}], []),
        ([REQUEST, YES, RAN], []),
        ([YES, REQUEST], []),
        ([{**REQUEST, "server_label": "other"}, YES], []),
        ([REQUEST, {**YES, "approve": "yes"}], []),
    ],
    ids=["approved", "asked", "denied", "carried out", "before it was asked", "another server", "no yes"],
)
def test_what_was_approved_and_not_carried_out_is_pending(items: list[Any], pending: list[str]) -> None:
    assert [item["id"] for item in read_approvals(items, HERE).pending] == pending


def shape(items: list[Any], here: Here = HERE) -> list[Any]:
    """The turns, as names of their calls, with texts between them."""
    found: list[Any] = []
    for turn in normalise_history(items, here=here, envelope_key=KEY).turns:
        if isinstance(turn, Acted):
            found.append([*turn.texts, *(call.name for call in turn.calls)])
        elif isinstance(turn, Said):
            found.append(turn.role)
    return found


def said(text: str, id: str | None = None, role: str = "assistant") -> dict[str, Any]:
    named = {} if id is None else {"id": id}
    return {"type": "message", "role": role, "content": text, **named}


MINE = {"type": "function_call", "call_id": "c", "name": "mine", "arguments": "{}"}
ANSWERED = {"type": "function_call_output", "call_id": "c", "output": "x"}


@pytest.mark.parametrize(
    ("items", "turns"),
    [
        pytest.param([search("ws_ab_c1"), search("ws_ab_c2")], [["web_search", "web_search"]], id="side by side"),
        pytest.param(
            [search("ws_ab_c1"), search("ws_abr1_c2")], [["web_search"], ["web_search"]], id="one after the other"
        ),
        pytest.param([search("ws_ab_c1"), said("so", "msg_abr1_1")], [["web_search"], ["so"]], id="then words"),
        pytest.param(
            [search("ws_ab_c1"), said("so", "msg_ab_1")], [["so", "web_search"]], id="words of the same reply"
        ),
        pytest.param([search("ws_ab_c1"), said("so")], [["web_search"], ["so"]], id="words of nobody knows which"),
        pytest.param(
            [search("ws_ab_c1"), {**MINE, "id": "fc_ab_1"}, ANSWERED, said("so")],
            [["web_search", "mine"], ["so"]],
            id="the client's beside it",
        ),
        pytest.param(
            [search("ws_ab_c1"), {**MINE, "id": "fc_abr1_1"}, ANSWERED],
            [["web_search"], ["mine"]],
            id="the client's after it",
        ),
        pytest.param([search("ws_68"), search("ws_69")], [["web_search", "web_search"]], id="ids of others"),
        pytest.param([REQUEST, YES, RAN, said("so", "msg_cdr1_1")], [["ask"], ["so"]], id="approved"),
        pytest.param([REQUEST, said("no", role="user")], [["ask"], "user"], id="never answered"),
        pytest.param([RAN, said("so", "msg_cdr1_1")], [["ask"], ["so"]], id="its request is gone"),
    ],
)
def test_calls_belong_to_the_reply_that_made_them(items: list[Any], turns: list[Any]) -> None:
    assert shape(items) == turns


def test_what_runs_nowhere_is_told_as_before() -> None:
    assert shape([search(), said("so")], NOWHERE) == [["so"]]


def test_a_list_of_tools_is_no_part_of_the_conversation() -> None:
    listed = {"type": "mcp_list_tools", "server_label": "docs", "tools": []}
    history = normalise_history([listed, said("hi", role="user")], here=HERE)
    assert [decision.action for decision in history.decisions] == ["supported"]
    assert len(history.turns) == 1
