"""What is packed leaves the same trace, with a shape and without; what may be long, or went wrong, is not packed."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.errors import UpstreamFailed
from isthmus.observe.traces import bodies as module
from isthmus.observe.traces import shapes
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import NO_CONTENTS
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.packing import SMALL, Packed, pack_draft
from isthmus.observe.traces.record import make_record
from isthmus.observe.traces.shapes import Shapes
from isthmus.observe.traces.told import LONGEST_KNOWN, MOST_KNOWN, Reader
from isthmus.ports import Accepted, Answered, Ended, Mark, Planned, Received, Sent, ToolRan
from isthmus.ports.packed import PackedTrace, file_by, plain, unpack, unpack_summary
from isthmus.ports.traced import Trace
from isthmus.testing.fold import plan_for

PLAN = plan_for()
ITEM = {"type": "message", "role": "user", "content": "hello"}
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": True}
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
OUTPUT = [
    {"type": "message", "status": "completed", "content": [{"type": "output_text", "text": "hi"}]},
    {"type": "function_call", "name": "look", "arguments": "{}"},
]
RESPONSE = {"output": OUTPUT, "instructions": None, "usage": USAGE, "isthmus": {"diagnostics": []}}
SENT, ACCEPTED = (0.1, Sent("resp_1", "p", "m", 1, body=BODY, key="team")), (0.2, Accepted("resp_1", 0.1))
PLANNED = Planned("resp_1", "req_1", "ann", PLAN, {"model": "m", "input": "hello", "user": "u"}, (ITEM,), 0, 0.01, 0.02)
ENDED = Ended(
    *("resp_1", "ann", "p", "m", 1, "completed", None, USAGE, 0.5, 1.0, 0.3, 0, 1),
    first_byte=0.1,
    settled=0.05,
    batches=2,
    events=9,
    marks=(Mark(0.3, 1, "output_text.delta"),),
    response=RESPONSE,
    used=(10, 5, 0, 0),
    steps=[SENT, ACCEPTED],
)
RECEIVED = Received("req_1", "ann", "k", "codex", "POST", "/v1/chat/completions", 70, 0.1, "00-aa-bb-01")
ANSWERED = Answered(
    *("req_1", "resp_1", "ann", "k", "codex", "POST", "/v1/chat/completions", 200, None, False, 1.5, 70, "mine"),
    RECEIVED,
)
FAILED = UpstreamFailed("broken")


def draft(**changed: Any) -> Draft:
    """A usual request, but for some fields of its facts."""
    facts = {"planned": PLANNED, "ended": ENDED, "answered": ANSWERED}
    for name, fact in facts.items():
        fields = [field for field in changed if field.startswith(f"{name}_")]
        facts[name] = replace(fact, **{field.removeprefix(f"{name}_"): changed.pop(field) for field in fields})
    return Draft(1.0, 2.5, **facts, over=2.4, at=1_000.0, **changed)  # type: ignore[arg-type]


def opened(record: PackedTrace) -> Trace:
    """It is filed by what its summary says."""
    record = plain(record)
    summary = unpack_summary(record.head)
    assert record.filed == file_by(summary)
    return unpack(summary, record.detail)


def trace_of(made: Draft | Packed, reader: Reader | None = None) -> Trace:
    bodies = Bodies(b"k" * 32)
    outline, told = (reader or Reader(bodies)).read(made, NO_CONTENTS)
    return opened(make_record(outline, told, bodies, "metadata"))


def all_ways(made: Draft) -> list[Trace]:
    """As it is; packed; and where it has a shape, made of that."""
    bodies, packed = Bodies(b"k" * 32), pack_draft(made)
    assert packed is not None
    known = Shapes(bodies, Reader(bodies))
    assert known.make(packed) is None, "of one nobody knows whether another will come"
    shaped = [opened(record) for record in (known.make(packed), known.make(packed)) if record is not None]
    return [trace_of(made), trace_of(packed), *shaped]


def decided(*decisions: CompatibilityDecision) -> Any:
    return replace(PLAN, compatibility=CompatibilityPlan(decisions))


DECISIONS = [
    CompatibilityDecision("temperature", "degraded", "at most 1", effective_value=1.0, sends={"temperature": 1.0}),
    CompatibilityDecision("user", "supported", effective_value="a secret name", sends={"user_id": "a secret name"}),
]
texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), texts, st.lists(texts, max_size=2))
tables = st.dictionaries(st.sampled_from(["role", "name", "type", "content", "function"]), scalars, max_size=4)
lists = st.one_of(scalars, st.lists(tables, max_size=10), st.lists(st.one_of(scalars, tables), max_size=3))
bodies = st.dictionaries(st.sampled_from(["model", "tools", "input", "messages", "a]", ""]), lists, max_size=6)


@pytest.mark.parametrize(
    "made",
    [
        draft(),
        draft(planned_plan=decided(*DECISIONS)),
        draft(planned_asked={"model": "m", "input": [ITEM] * 9}, planned_items=(ITEM,) * 9),
        draft(planned_asked={"model": "m", "tools": [{"type": "mcp", "authorization": "s"}], "input": "x"}),
        draft(planned_asked={"input": "x", "prompt_cache_key": "session", "previous_response_id": "resp_0"}),
        draft(planned_asked={"input": "x", "conversation": {"id": "conv_1"}, "stream": True, "store": False}),
        draft(ended_steps=[(0.1, replace(SENT[1], body={**BODY, "messages": [BODY["messages"][0]] * 12})), ACCEPTED]),
        draft(ended_response={**RESPONSE, "isthmus": {"diagnostics": [{"code": "c", "path": "user"}]}}),
        draft(ended_usage=None, ended_used=(0, 0, 0, 0), ended_outcome="incomplete"),
        draft(answered_received=None),
    ],
)
def test_the_trace_of_what_was_packed_is_the_same_and_so_is_one_with_a_shape(made: Draft) -> None:
    first, *others = all_ways(made)
    assert [first, first, first] == others


@given(bodies, bodies, st.lists(tables, min_size=1, max_size=10))
def test_whatever_was_asked_and_sent(asked: Any, sent: Any, items: Any) -> None:
    sent_so = [(0.1, replace(SENT[1], body=sent)), ACCEPTED]
    first, *others = all_ways(draft(planned_asked=asked, planned_items=tuple(items), ended_steps=sent_so))
    assert [first] * len(others) == others


def test_a_body_with_more_fields_than_are_told_is_the_same_wherever_its_words_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_PIECES", 3)
    monkeypatch.setattr(shapes, "MOST_PIECES", 3)
    many = {f"field {number}": number for number in range(5)}
    for asked in ({**many, "input": "x"}, {"input": "x", **many}, {"model": "m", "input": "x"}):
        first, *others = all_ways(draft(planned_asked=asked, planned_items=(ITEM,) * 2))
        assert others == [first], "none of these has a shape"


def test_what_is_packed_tells_no_text_that_takes_effect() -> None:
    for trace in all_ways(draft(planned_plan=decided(*DECISIONS))):
        assert [(each.path, each.sends, each.value) for each in trace.decisions] == [
            ("temperature", ("temperature",), 1.0),
            ("user", ("user_id",), None),
        ]


def test_it_holds_on_to_nothing_that_its_request_has_left() -> None:
    packed = pack_draft(draft())
    assert packed is not None
    held = [getattr(packed, name) for name in packed.__struct_fields__ if name != "own"]
    assert {type(each) for each in held} == {int, float, bytes}
    own = [getattr(packed.own, name) for name in packed.own.__struct_fields__ if name != "marks"]
    assert {type(each) for each in own} <= {str, int, float, type(None)}


@pytest.mark.parametrize(
    "made",
    [
        draft(full=True),
        draft(weight=SMALL + 1),
        draft(planned_history=3),
        draft(ended_steps=[SENT, ACCEPTED, (0.3, ToolRan("resp_1", cast(Any, None), None, 0.1)), SENT, ACCEPTED]),
        draft(ended_steps=[SENT]),
        draft(ended_steps=[SENT, SENT]),
        draft(ended_response={**RESPONSE, "output": [{"type": "reasoning", "text": "a" * SMALL * 2}]}),
        draft(ended_response={**RESPONSE, "top_logprobs": 3}),
        draft(ended_written=b" " * (SMALL + 1)),
        draft(ended_response=None),
        draft(ended_failure=FAILED),
        draft(answered_failure=FAILED),
        Draft(1.0, 2.0, PLANNED, ENDED),
        Draft(1.0, 2.0, answered=ANSWERED),
        draft(planned_asked={"input": "x", "odd": object()}),
        draft(planned_plan=decided(CompatibilityDecision("a", "supported", effective_value=object()))),
    ],
    ids=[
        *("all its content is wanted", "long", "it continues a history", "a tool was run", "nobody accepted it"),
        *(
            "it was asked twice",
            "a long answer",
            "logprobs",
            "a long answer that was written",
            "no answer",
            "it failed",
            "its client was told of a failure",
        ),
        *("its request is gone", "it was refused before it was read", "no JSON", "no JSON in a decision"),
    ],
)
def test_what_may_be_long_or_went_wrong_is_left_to_whoever_makes_its_trace(made: Draft) -> None:
    assert pack_draft(made) is None


def test_up_to_its_bound_it_is_packed_also_where_its_answer_was_written() -> None:
    for made in (draft(weight=SMALL), draft(ended_written=b"{}")):
        assert pack_draft(made) is not None


def test_few_lists_of_decisions_are_remembered_and_no_long_ones() -> None:
    reader = Reader(Bodies(b"k" * 32))
    long = CompatibilityDecision("user", "supported", "r" * LONGEST_KNOWN)
    plans = [decided(CompatibilityDecision(f"field {number}", "supported")) for number in range(MOST_KNOWN + 5)]
    for plan in (*plans, decided(long)):
        packed = pack_draft(draft(planned_plan=plan))
        assert packed is not None
        assert trace_of(packed, reader).decisions[0].path == plan.compatibility.decisions[0].path
    assert 0 < len(reader._known) <= MOST_KNOWN
    assert not any(b"r" * LONGEST_KNOWN in known for known in reader._known)
