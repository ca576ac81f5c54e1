"""`/v1/images/…`, from the client's bytes to the provider's and back."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowing import Flow
from flowing_providers import provider_flow
from isthmus.bridge.images.form import Part, read_form, write_form
from isthmus.testing import Gate, error, reply, stream
from isthmus.testing.script import Answer
from waiting import until

PNG = b"\x89PNG\r\n\x1a\n and so on, for a while"
TEXT = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{TEXT}"
USAGE = {"input_tokens": 3, "output_tokens": 64, "total_tokens": 67}
GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"
LIMITS = {"x-ratelimit-remaining-requests": "4"}


def image(count: int = 1, **fields: Any) -> Answer:
    data = [{"b64_json": TEXT, "revised_prompt": "A fox."}] * count
    return reply({"created": 1, "data": data, "size": "1024x1024", "usage": USAGE, **fields}, headers=LIMITS)


@pytest.fixture
def drawing(tmp_path: Path) -> Iterator[Flow]:
    """`openai` draws; another provider is there that could."""
    with provider_flow(tmp_path, {"openai": "", "zhipu": ""}, extra="[images]\nprovider = 'openai'\n") as made:
        yield made


def test_what_codex_asks_for_is_drawn_with_the_operators_model_and_key(drawing: Flow) -> None:
    drawing.script(image())
    asked = {"prompt": "a fox", "background": "opaque", "model": "gpt-image-9", "quality": "auto", "size": "auto"}
    answer = drawing.post(GENERATIONS, asked)
    sent = drawing.wait_sent()
    assert (sent.method, sent.target) == ("POST", GENERATIONS)
    assert sent.headers["authorization"] == "Bearer sk-upstream-secret"
    assert sent.headers["content-type"] == "application/json"
    assert sent.json == {"model": "gpt-image-2", "prompt": "a fox", "background": "opaque"}
    assert answer.status == 200
    assert answer.json["data"] == [{"b64_json": TEXT, "revised_prompt": "A fox."}]
    assert (answer.json["size"], answer.json["usage"]) == ("1024x1024", USAGE)
    assert isinstance(answer.json["created"], int)
    (said,) = answer.json["isthmus"]["diagnostics"]
    assert (said["path"], said["action"]) == ("model", "degraded")
    assert answer.headers["isthmus-plan"] == "degraded=1"
    assert answer.headers["x-ratelimit-remaining-requests"] == "4"


def test_an_edit_in_json_goes_on_as_a_form(drawing: Flow) -> None:
    drawing.script(image())
    answer = drawing.post(EDITS, {"prompt": "bluer", "model": "gpt-image-2", "images": [{"image_url": URL}]})
    assert answer.status == 200
    sent = drawing.wait_sent()
    assert sent.target == EDITS
    assert read_form(sent.body, sent.headers["content-type"]) == [
        Part("model", b"gpt-image-2"),
        Part("prompt", b"bluer"),
        Part("image", PNG, "image/png", "image.png"),
    ]


def test_an_edit_comes_as_a_form_too(drawing: Flow) -> None:
    drawing.script(image(2))
    kind, body = write_form([Part("prompt", b"bluer"), Part("n", b"2"), Part("image", PNG, "image/png", "a.png")])
    status, answer = raw_post(drawing, EDITS, body, kind)
    assert (status, len(answer["data"])) == (200, 2)
    sent = drawing.wait_sent()
    names = [part.name for part in read_form(sent.body, sent.headers["content-type"])]
    assert names == ["model", "prompt", "n", "image"]


def raw_post(flow: Flow, path: str, body: bytes, kind: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(flow.server.url).netloc, timeout=60)
    try:
        connection.request("POST", path, body, {"content-type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_an_address_is_asked_for_and_given_as_one(drawing: Flow) -> None:
    drawing.script(image())
    answer = drawing.post(GENERATIONS, {"prompt": "a fox", "response_format": "url"})
    assert answer.json["data"][0]["url"] == URL
    assert "response_format" not in drawing.sent[0]


def streamed(flow: Flow, **options: Any) -> list[dict[str, Any]]:
    with flow.streaming(GENERATIONS, {"prompt": "a fox", "stream": True, **options}) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream"
        return list(answer)


def test_a_stream_tells_of_partial_images(drawing: Flow) -> None:
    kind = "image_generation"
    early = {"type": f"{kind}.partial_image", "b64_json": TEXT, "partial_image_index": 0}
    last = {"type": f"{kind}.completed", "b64_json": TEXT, "usage": USAGE, "quality": "low"}
    drawing.script(stream([early, {"type": "keepalive"}, last]))
    told = streamed(drawing, partial_images=1)
    assert [each["type"] for each in told] == [f"{kind}.partial_image", f"{kind}.completed"]
    assert told[0]["partial_image_index"] == 0
    assert (told[1]["b64_json"], told[1]["usage"], told[1]["quality"]) == (TEXT, USAGE, "low")
    assert (drawing.sent[0]["stream"], drawing.sent[0]["partial_images"]) == (True, 1)


def test_a_stream_that_breaks_before_its_first_image_has_a_status(drawing: Flow) -> None:
    drawing.script(stream([{"type": "error", "error": {"message": "no"}}]))
    answer = drawing.post(GENERATIONS, {"prompt": "a fox", "stream": True})
    assert (answer.status, answer.error["code"]) == (502, "server_error")
    assert "failed while it drew: no" in answer.error["message"]


def test_a_stream_that_breaks_later_ends_with_an_error(drawing: Flow) -> None:
    early = {"type": "image_generation.partial_image", "b64_json": TEXT, "partial_image_index": 0}
    drawing.script(stream([early]))
    told = streamed(drawing, partial_images=2)
    assert [each["type"] for each in told] == ["image_generation.partial_image", "error"]
    assert "before the image was whole" in told[1]["error"]["message"]


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (error(400, "no"), 400, "invalid_prompt"),
        (error(401, "no"), 403, "upstream_unauthorized"),
        (error(429, "slow"), 429, "rate_limit_exceeded"),
        (error(500, "oh"), 502, "server_error"),
        (reply({"data": []}), 502, "server_error"),
        (reply({"data": [{"b64_json": "aGFsbG8="}]}), 502, "server_error"),
        (reply("<html>", headers={"content-type": "text/html"}), 502, "server_error"),
    ],
)
def test_failures_are_typed(drawing: Flow, answer: Answer, status: int, code: str) -> None:
    drawing.script(answer)
    told = drawing.post(GENERATIONS, {"prompt": "a fox"})
    assert (told.status, told.error["code"]) == (status, code)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (GENERATIONS, {}, "prompt"),
        (GENERATIONS, {"prompt": "a", "n": 11}, "n"),
        (EDITS, {"prompt": "a"}, "image"),
        (EDITS, {"prompt": "a", "image": "https://127.0.0.1/a.png"}, "image[0]"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_sent(drawing: Flow, path: str, body: Any, param: str) -> None:
    told = drawing.post(path, body)
    assert (told.status, told.error["param"]) == (400, param)
    assert drawing.sent == []


def test_strict_mode_refuses_another_model(drawing: Flow) -> None:
    told = drawing.post(GENERATIONS, {"prompt": "a", "model": "dall-e-3"}, {"Isthmus-Strict": "true"})
    assert (told.status, told.error["param"]) == (400, "model")


def test_a_name_for_the_request_is_told_to_lead_nowhere(drawing: Flow) -> None:
    drawing.script(image())
    answer = drawing.post(GENERATIONS, {"prompt": "a"}, {"Idempotency-Key": "k"})
    told = [(said["path"], said["action"]) for said in answer.json["isthmus"]["diagnostics"]]
    assert told == [("Idempotency-Key", "ignored")]


def test_who_leaves_stops_the_drawing(drawing: Flow) -> None:
    gate = Gate()
    drawing.script(reply({}, after=gate))
    connection = http.client.HTTPConnection(urlsplit(drawing.server.url).netloc, timeout=60)
    connection.request("POST", GENERATIONS, b'{"prompt": "a"}', {"content-type": "application/json"})
    sent = drawing.wait_sent()
    connection.close()
    sent.closed.wait()
    until(lambda: not len(drawing.server.gateway.runs), "it is still drawn")
    gate.open()


def test_an_image_that_comes_as_an_address_of_ours_is_not_fetched(tmp_path: Path) -> None:
    with provider_flow(tmp_path, {"zhipu": ""}, extra="[images]\nprovider = 'zhipu'\n") as flow:
        flow.script(reply({"data": [{"url": f"{flow.upstream.url}/secret.png"}]}))
        flow.script(reply({"data": [{"url": "https://169.254.169.254/latest"}]}))
        for _ in range(2):
            answer = flow.post(GENERATIONS, {"prompt": "a"})
            assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
            assert "the image cannot be fetched" in answer.error["message"]
        assert [request.target for request in flow.upstream.requests] == [GENERATIONS] * 2


def test_nobody_draws_unless_somebody_was_chosen(tmp_path: Path) -> None:
    with provider_flow(tmp_path, {"openai": ""}) as flow:
        answer = flow.post(GENERATIONS, {"prompt": "a"})
        assert (answer.status, answer.error["code"]) == (400, "images_not_supported")
        assert "`[images]`" in answer.error["message"]


def test_the_demo_draws_offline(tmp_path: Path) -> None:
    with provider_flow(tmp_path, {}, extra="[images]\nprovider = 'demo'\n") as flow:
        first, again = (flow.post(GENERATIONS, {"prompt": "a fox", "size": "256x256"}) for _ in range(2))
        assert first.status == 200
        assert first.json["data"] == again.json["data"]
        assert base64.b64decode(first.json["data"][0]["b64_json"]).startswith(b"\x89PNG")
        shown = f"data:image/png;base64,{first.json['data'][0]['b64_json']}"
        changed = flow.post(EDITS, {"prompt": "bluer", "images": [{"image_url": shown}], "size": "256x256"})
        assert changed.status == 200
        assert changed.json["data"] != first.json["data"]
        refused = flow.post(GENERATIONS, {"prompt": "something unspeakable"})
        assert (refused.status, refused.error["code"]) == (400, "invalid_prompt")
