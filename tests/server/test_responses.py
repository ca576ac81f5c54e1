"""`/v1/responses` and what hangs below it, as far as HTTP has a say in it."""

from __future__ import annotations

import pytest

from flowing import PLAIN, Flow
from isthmus.errors import RequestRefused
from isthmus.server.responses import asks_strict, encode_events
from isthmus.testing import chat


@pytest.mark.parametrize(
    ("given", "asked"),
    [(b"", None), (b"true", True), (b" TRUE ", True), (b"1", True), (b"false", False), (b"0", False)],
)
def test_strictness_may_be_asked_for_in_a_header(given: bytes, asked: bool | None) -> None:
    assert asks_strict({"headers": [(b"isthmus-strict", given)]}) is asked


def test_other_words_for_it_are_refused() -> None:
    with pytest.raises(RequestRefused) as refused:
        asks_strict({"headers": [(b"isthmus-strict", b"very")]})
    assert refused.value.param == "Isthmus-Strict"


def test_a_batch_of_events_is_their_frames_in_a_row() -> None:
    events = [{"type": "a", "n": 1}, {"type": "b", "n": 2}]
    frames = [encode_events([event]) for event in events]  # type: ignore[list-item]
    assert encode_events(events) == b"".join(frames)  # type: ignore[arg-type]
    assert frames[0] == b'event: a\ndata: {"type":"a","n":1}\n\n'


def test_a_deleted_response_says_so_in_the_usual_shape(flow: Flow) -> None:
    flow.script(chat("ok"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    assert flow.delete(f"/v1/responses/{id}").json == {"id": id, "object": "response", "deleted": True}
    assert flow.get(f"/v1/responses/{id}").status == 404


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "9" * 20])
def test_a_stream_is_read_on_from_a_number(flow: Flow, number: str) -> None:
    flow.script(chat("ok"))
    id = flow.create({"model": PLAIN, "input": "hi"})["id"]
    answer = flow.get(f"/v1/responses/{id}?stream=true&starting_after={number}")
    assert (answer.status, answer.error["param"]) == (400, "starting_after")


# ── input_tokens ───────────────────────────────────────────────────────────────────────────────────────


def test_input_tokens_are_estimated_without_asking_anybody(flow: Flow) -> None:
    short = flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": "hi"})
    long = flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": "word " * 1000})
    assert short.status == long.status == 200
    assert short.json["object"] == "response.input_tokens"
    assert 50 < short.json["input_tokens"] < 150 < 1000 < long.json["input_tokens"] < 2500
    assert short.json["isthmus"] == {"estimated": True}
    assert flow.sent == []


def test_input_tokens_count_the_whole_chain(flow: Flow) -> None:
    flow.script(chat("answer " * 500))
    first = flow.create({"model": PLAIN, "input": "question"})
    body = {"model": PLAIN, "input": "and?", "previous_response_id": first["id"]}
    assert flow.post("/v1/responses/input_tokens", body).json["input_tokens"] > 800


def test_input_tokens_of_a_bad_request_are_a_400(flow: Flow) -> None:
    answer = flow.post("/v1/responses/input_tokens", {"model": PLAIN, "input": 4})
    assert (answer.status, answer.error["param"]) == (400, "input")
