"""A plain HTTP client for tests of the running gateway: whole answers, and streams read event by event.

Nothing here is clever on purpose: sockets, JSON and SSE lines as they come. Every Response object and every
Responses stream that passes through is shown to the wire oracle.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from isthmus.bridge.doors.messages.fold import fold_message
from messages_stream import check_frames
from wire.oracle import check_response, check_stream

Json = dict[str, Any]
ANTHROPIC = {"anthropic-version": "2023-06-01"}
PATIENCE = 60.0
"""Seconds that a read, and a whole stream, may take."""
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


@dataclass(frozen=True)
class Reply:
    """One whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Json:
        """The error object, whose shape is checked: exactly what OpenAI's clients read."""
        body = self.json
        assert set(body) == {"error"}, body
        error: Json = body["error"]
        assert {"message", "type", "param", "code"} <= set(error), error
        assert isinstance(error["message"], str), error
        assert error["message"], error
        return error


class Stream:
    """An SSE answer under way: iterate it for its events."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self.status = answer.status
        self.headers = _headers(answer)
        self.comments = 0
        self._deadline = time.monotonic() + PATIENCE
        self.done = False
        """Whether `[DONE]` was seen."""

    def __iter__(self) -> Iterator[Json]:
        while (event := self.next()) is not None:
            yield event

    def next(self) -> Json | None:
        """The next event; `None` at the end."""
        while True:
            assert time.monotonic() < self._deadline, "a stream that only shows signs of life is not waited for"
            frame = self._frame()
            if frame is None:
                return None
            if frame[0].startswith(b":"):
                self.comments += 1
                continue
            name = frame[0].removeprefix(b"event: ").decode() if frame[0].startswith(b"event: ") else None
            data = frame[-1].removeprefix(b"data: ")
            assert len(frame) == (2 if name else 1), frame
            if data == b"[DONE]":
                self.done = True
                continue
            assert not self.done, "something came behind [DONE]"
            event: Json = json.loads(data)
            assert name is None or name == event["type"], frame
            return event

    def comment(self) -> None:
        """Read one sign of life, which must be what comes next."""
        frame = self._frame()
        assert frame is not None, "the stream ended"
        assert frame[0].startswith(b":"), frame
        self.comments += 1

    def until(self, kind: str) -> Json:
        """Read on to the next event of this type."""
        for event in self:
            if event["type"] == kind:
                return event
        raise AssertionError(f"the stream ended without `{kind}`")

    def close(self) -> None:
        """Leave: the connection is closed, whatever was still to come."""
        self._answer.close()
        self._connection.close()

    def _frame(self) -> list[bytes] | None:
        lines: list[bytes] = []
        while True:
            line = self._answer.readline()
            if not line:
                assert not lines, f"the stream ended inside a frame: {lines}"
                return None
            assert b"\r" not in line, "line ends are LF"
            if line == b"\n":
                return lines
            lines.append(line.removesuffix(b"\n"))


class Talk:
    """Speaks to one gateway."""

    def __init__(self, url: str, *, timeout: float = PATIENCE) -> None:
        self._host = urlsplit(url).netloc
        self._timeout = timeout

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
        try:
            connection.request(method, path, _encode(body), {"content-type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, _headers(answer), answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        return self.request("GET", path)

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        return self.request("POST", path, body, headers)

    def delete(self, path: str) -> Reply:
        return self.request("DELETE", path)

    @contextmanager
    def streaming(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, method: str = "POST"
    ) -> Iterator[Stream]:
        """An answer to read piece by piece; leaving the block leaves the gateway."""
        connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
        connection.request(method, path, _encode(body), {"content-type": "application/json", **(headers or {})})
        stream = Stream(connection, connection.getresponse())
        try:
            yield stream
        finally:
            stream.close()

    # ── Responses ──────────────────────────────────────────────────────────────────────────────────

    def create(self, body: Json, headers: Mapping[str, str] | None = None) -> Json:
        """A whole response; it must come with 200 and be fit to be sent."""
        reply = self.post("/v1/responses", body, headers)
        assert reply.status == 200, reply.body
        assert reply.headers["content-type"] == "application/json"
        response: Json = reply.json
        check_response(response)
        return response

    def stream(self, body: Json, headers: Mapping[str, str] | None = None) -> tuple[list[Json], Json]:
        """All events of a streamed response and the response in its terminal one; the order is checked."""
        with self.streaming("/v1/responses", {**body, "stream": True}, headers) as stream:
            assert stream.status == 200, list(stream._answer)
            assert stream.headers["content-type"] == "text/event-stream"
            events = list(stream)
        return events, finished(events)

    def both(self, body: Json) -> tuple[Json, Json]:
        """The same request whole and streamed; their statuses, items and errors must agree."""
        whole = self.create(body)
        _, streamed = self.stream(body)
        assert shown(whole) == shown(streamed)
        return whole, streamed

    # ── Chat Completions ───────────────────────────────────────────────────────────────────────────

    def chat(self, body: Json, headers: Mapping[str, str] | None = None) -> Json:
        reply = self.post("/v1/chat/completions", body, headers)
        assert reply.status == 200, reply.body
        completion: Json = reply.json
        return completion

    def chat_stream(self, body: Json, headers: Mapping[str, str] | None = None) -> list[Json]:
        with self.streaming("/v1/chat/completions", {**body, "stream": True}, headers) as stream:
            assert stream.status == 200, list(stream._answer)
            assert stream.headers["content-type"] == "text/event-stream"
            chunks = list(stream)
            assert stream.done or "error" in chunks[-1]
        return chunks

    # ── Messages ───────────────────────────────────────────────────────────────────────────────────

    def message(self, body: Json, headers: Mapping[str, str] | None = None) -> Json:
        reply = self.post("/v1/messages", {"max_tokens": 1_000, **body}, {**ANTHROPIC, **(headers or {})})
        assert reply.status == 200, reply.body
        message: Json = reply.json
        return message

    def message_stream(
        self, body: Json, headers: Mapping[str, str] | None = None, *, failed: bool = False
    ) -> list[Json]:
        """The frames of a streamed message, whose order is checked."""
        asked = {"max_tokens": 1_000, **body, "stream": True}
        with self.streaming("/v1/messages", asked, {**ANTHROPIC, **(headers or {})}) as stream:
            assert stream.status == 200, list(stream._answer)
            assert stream.headers["content-type"] == "text/event-stream"
            frames = list(stream)
            assert not stream.done
        check_frames(frames, failed=failed)
        return frames

    def messages(self, body: Json) -> Json:
        """The same request whole and streamed, which must be one message but for ids and envelopes."""
        whole, streamed = self.message(body), fold_message(self.message_stream(body))
        one, other = _plain(whole), _plain(streamed)
        assert one == other
        return whole


def _plain(message: Json) -> Json:
    """What two answers to the same question have in common."""
    made = message["id"].removeprefix("msg_")
    return {**json.loads(json.dumps({**message, "id": ""}).replace(made, "x")), "usage": message["usage"]}


def finished(events: list[Json]) -> Json:
    """The response of the one terminal event, which is the last; the whole order is checked."""
    assert [event["type"] for event in events if event["type"] in TERMINAL] == [events[-1]["type"]]
    return check_stream(events)


def shown(response: Json) -> Json:
    """What must not differ between the two modes: everything except ids and times."""
    own = response["id"].removeprefix("resp_")
    compared = {name: response[name] for name in ("status", "error", "incomplete_details", "output", "usage")}
    compared["diagnostics"] = response["isthmus"]["diagnostics"]
    kept: Json = json.loads(json.dumps(compared).replace(own, "own"))
    return kept


def message_text(response: Json) -> str:
    """The answer's words, from its items."""
    return "".join(
        part.get("text", part.get("refusal", ""))
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )


def _encode(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}
