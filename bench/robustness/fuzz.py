"""Thousands of broken requests against the running server: no 500, no hang, every refusal in OpenAI's shape.

Bodies are good ones with a wrong type at every depth, good ones with random changes, JSON that hypothesis
makes up, and bytes that are no JSON at all; paths and queries are spoiled in the same spirit. What is accepted
must end as it should: a stream with exactly one terminal event, a whole answer with a known status.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import hypothesis
from bench.robustness.client import TERMINAL, Json, fetch
from bench.robustness.fuzz_bodies import good_chats, good_responses, mutations, raw_bodies, wrong_types
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway
from bench.robustness.upstream import Call, Upstream, delta
from hypothesis import strategies

HANG: Final = 30.0
"""Seconds after which an answer is called a hang."""
SPOILED: Final = "bridge.response.invalid_output_format"
"""The one failure that is the model's: its words do not match the schema of a mutated request."""
PROVIDERS: Final = "".join(
    f'[providers.{name}]\nuses = "{uses}"\ndialect = "chat"\napi_key = "k"\nbase_url = "{{url}}"\n'
    for name, uses in {"full": "openai", "deep": "deepseek", "zhipu": "zhipu"}.items()
)
Look = Callable[[Json], None]


@dataclass(slots=True)
class Attack:
    """Sends requests one after another on a connection that is kept, and judges every answer."""

    port: int
    look: Look | None = None
    """Shown every Response object that comes back."""
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _connection: http.client.HTTPConnection | None = None

    def send(self, method: str, path: str, body: bytes | None = None) -> None:
        about = f"{method} {path[:200]} {(body or b'')[:600]!r}"
        try:
            answer, data = self._exchange(method, path, body)
        except (TimeoutError, http.client.HTTPException, OSError) as error:
            self.statuses["no answer"] += 1
            self.problems.append(f"no answer ({error!r}) to {about}")
            self.close()
            return
        self.statuses[str(answer.status)] += 1
        try:
            if method != "HEAD":
                self._judge(answer, data, path)
        except Exception as error:
            self.problems.append(f"{answer.status} {error!r} {data[:300]!r} to {about}")

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[http.client.HTTPResponse, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        self._connection.putrequest(method, path, skip_accept_encoding=True)
        if body is not None:
            self._connection.putheader("content-length", str(len(body)))
        self._connection.endheaders(body)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.will_close:
            self.close()
        return answer, data

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _judge(self, answer: http.client.HTTPResponse, data: bytes, path: str) -> None:
        kind = answer.headers.get("content-type", "")
        if answer.status >= 400:
            error = json.loads(data)["error"]
            assert {"message", "type", "param", "code"} <= set(error), "the error's shape"
            assert isinstance(error["message"], str), "the message"
            assert isinstance(error["code"], str), "the code"
            assert answer.status < 500 or error["code"] == SPOILED, "a failure of ours"
        elif kind.startswith("text/event-stream"):
            self._judge_stream(data, path)
        elif kind == "application/json":
            said = json.loads(data)
            if self.look is not None and isinstance(said, dict) and said.get("object") == "response":
                self.look(said)
        else:
            raise AssertionError(f"content-type {kind}")

    def _judge_stream(self, data: bytes, path: str) -> None:
        frames = [line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")]
        if "chat" in path:
            assert frames[-1] == b"[DONE]" or "error" in json.loads(frames[-1]), "the end of a chat stream"
            return
        events = [json.loads(frame) for frame in frames if frame != b"[DONE]"]
        ends = [event for event in events if event["type"] in TERMINAL]
        assert len(ends) == 1, f"{len(ends)} terminal events"
        assert ends[0] is events[-1], "something behind the terminal event"
        if self.look is not None:
            self.look(ends[0]["response"])


async def check(bodies: int = 6000, *, stride: int = 1, look: Look | None = None, seed: int = 3) -> Report:
    """`bodies` of each random kind per endpoint in total; every `stride`-th of the systematic ones."""
    report = Report("Fuzz: broken requests against the running server")
    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(_answer) as upstream:
            more = PROVIDERS.replace("{url}", upstream.base_url)
            async with running_gateway(Path(folder), upstream.base_url, provider=more) as gateway:
                attack = Attack(gateway.port, look)
                stored = (await fetch(gateway.port, "POST", "/v1/responses", {"input": "hello"})).json
                responses = good_responses(stored["id"], stored["output"][0]["id"])
                await _good_ones_pass(report, gateway, responses)
                for name, requests in _campaigns(responses, stored["id"], bodies, stride, random.Random(seed)).items():
                    await asyncio.to_thread(_run, report, attack, name, requests)
                for path in ("/v1/responses", "/v1/chat/completions", "/v1/responses/input_tokens"):
                    await asyncio.to_thread(_made_up, report, attack, path, bodies // 10)
                attack.close()
                _conclude(report, attack, gateway)
    return report


Requests = Iterator[tuple[str, str, bytes | None]]


def _campaigns(
    responses: list[Json], stored: str, bodies: int, stride: int, chance: random.Random
) -> dict[str, Requests]:
    chats = good_chats()
    systematic = {
        "/v1/responses": itertools.chain.from_iterable(map(wrong_types, responses)),
        "/v1/responses/input_tokens": itertools.islice(wrong_types(responses[2]), 0, None, 4),
        "/v1/chat/completions": itertools.chain.from_iterable(map(wrong_types, chats)),
    }
    made: dict[str, Requests] = {}
    for path, spoiled in systematic.items():
        goods = chats if "chat" in path else responses
        made[f"wrong types at every depth, {path}"] = _posts(path, itertools.islice(spoiled, 0, None, stride))
        made[f"random changes, {path}"] = _posts(path, itertools.islice(mutations(goods, chance), bodies // 3))
        odd = itertools.islice(raw_bodies(goods, chance), 0, 300 + bodies // 12, min(stride, 5))
        made[f"no JSON, huge, deep, odd, {path}"] = _posts(path, odd)
    made["paths and queries"] = itertools.islice(_targets(stored, chance), bodies // 3)
    return made


def _posts(path: str, bodies: Iterator[bytes]) -> Requests:
    return (("POST", path, body) for body in bodies)


def _run(report: Report, attack: Attack, name: str, requests: Requests) -> None:
    before = Counter(attack.statuses)
    for method, path, body in requests:
        attack.send(method, path, body)
    _tell(report, name, attack.statuses - before)


def _tell(report: Report, name: str, counted: Counter[str]) -> None:
    said = ", ".join(f"{status}: {counted[status]}" for status in sorted(counted))
    report.head = ("what", "requests", "answers")
    report.rows.append((name, f"{counted.total():,}", said))


def _made_up(report: Report, attack: Attack, path: str, count: int) -> None:
    """JSON that hypothesis makes up, with field names and words that mean something here."""
    goods = good_chats() if "chat" in path else good_responses("resp_x", "msg_x")
    names = strategies.sampled_from(sorted({name for good in goods for name in _names(good)}))
    scalars = strategies.one_of(
        *(strategies.none(), strategies.booleans(), strategies.integers(), strategies.floats(), strategies.text()),
        names,
    )
    values = strategies.recursive(
        scalars,
        lambda inner: strategies.lists(inner, max_size=4) | strategies.dictionaries(names, inner, max_size=5),
        max_leaves=15,
    )
    objects = strategies.dictionaries(names | strategies.text(max_size=5), values, max_size=8)

    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(objects | values, strategies.booleans())
    def throw(body: Any, sensible: bool) -> None:
        if sensible and isinstance(body, dict):
            said = {"messages": [{"role": "user", "content": "x"}]} if "chat" in path else {"input": "x"}
            body = {**said, **body, "model": "up/model"}
        attack.send("POST", path, json.dumps(body).encode())

    before = Counter(attack.statuses)
    throw()
    _tell(report, f"made up by hypothesis, {path}", attack.statuses - before)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)
    elif isinstance(value, str) and len(value) < 30:
        yield value


ODD: Final = (
    *(
        "",
        "x",
        "..",
        ".",
        "%",
        "%00",
        "%ff",
        "%f0%9f%92%a5",
        "%2e%2e%2f",
        "a" * 3000,
        "&",
        "=",
        ";",
        "%0d%0a",
        "'",
        '"',
    ),
    *(quote("\u202e💥"), "null", "-1", "0", "1", "9" * 20, "1e9", "NaN", "true", "false", "asc", "desc", "%3f"),
)
QUERIES: Final = (
    *("limit", "after", "before", "order", "stream", "starting_after", "include", "include[]", "", "x", "%ff", "%00"),
)
ROUTES: Final = (
    *("/v1/responses/{}", "/v1/responses/{}/input_items", "/v1/responses/{}/cancel", "/v1/models/{}", "/v1/models"),
    *("/{}", "/v1/{}", "/health", "/ready", "/openapi.json", "/", "//", "/v1//responses", "/v1/responses"),
)
METHODS: Final = (*("GET",) * 8, "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "TRACE")


def _targets(stored: str, chance: random.Random) -> Requests:
    """Ids, queries and methods that are not what they should be; half of the ids are good."""
    while True:
        method = chance.choice(METHODS)
        id = stored if chance.random() < 0.5 and method != "DELETE" else chance.choice(ODD)
        asked = [f"{chance.choice(QUERIES)}={chance.choice(ODD)}" for _ in range(chance.randrange(4))]
        path = chance.choice(ROUTES).replace("{}", id) + ("?" + "&".join(asked) if asked else "")
        yield method, path, chance.choice([b"", b"{}", b"\xff", b"[" * 50]) if method == "POST" else None


async def _good_ones_pass(report: Report, gateway: GatewayProcess, responses: list[Json]) -> None:
    """What is spoiled later must be accepted before, or the spoiling proves nothing."""
    replies = [await fetch(gateway.port, "POST", "/v1/responses", body) for body in responses]
    replies += [await fetch(gateway.port, "POST", "/v1/chat/completions", body) for body in good_chats()]
    passed = sum(each.status == 200 for each in replies)
    report.problems += [each.body.decode()[:300] for each in replies if each.status != 200]
    told = f"{passed} of {len(replies)}"
    report.add("bodies accepted before they are spoiled", told, "all", kept=passed == len(replies))


def _conclude(report: Report, attack: Attack, gateway: GatewayProcess) -> None:
    statuses = attack.statuses
    report.add("requests", f"{statuses.total():,}")
    report.add("answered with 500", statuses["500"], "0", kept=not statuses["500"])
    report.add("hangs and broken connections", statuses["no answer"], "0", kept=not statuses["no answer"])
    report.add("answers out of shape", len(attack.problems), "0", kept=not attack.problems)
    report.add("gateway still running", "yes" if gateway.running else "no", "yes", kept=gateway.running)
    report.add("tracebacks in the log", gateway.tracebacks(), "0", kept=not gateway.tracebacks())
    report.problems += attack.problems


async def _answer(call: Call) -> None:
    """Text, or a call of the first tool, in the mode that was asked for."""
    text = '{"city": "Rome", "days": 3}'
    tools = call.body.get("tools")
    if tools and call.body.get("stream") and "function" in tools[0]:
        await call.begin()
        for fragment in ({"name": tools[0]["function"]["name"], "arguments": ""}, {"arguments": text}):
            await call.say(delta(tool_calls=[{"index": 0, "id": "c9", "type": "function", "function": fragment}]))
        await call.end()
        return
    if not call.body.get("stream"):
        await call.reply(text)
        return
    await call.begin()
    for piece in (text[:9], text[9:]):
        await call.say(delta(piece))
    await call.end()
