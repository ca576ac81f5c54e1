"""Servers with a personality for the probe: what they take, what they do with it, what they tell of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from isthmus.testing import (
    Answer,
    Handler,
    RecordedRequest,
    ScriptedUpstream,
    chat_chunks,
    chat_reply,
    error,
    reply,
    stream,
)
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.probe import probe

Json = dict[str, Any]


@dataclass(frozen=True)
class Server:
    """One server. `follows`: the rules of a request that its model obeys, not only accepts."""

    fields: frozenset[str] | None = None
    """Fields that it takes; `None`: any."""
    follows: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset({"system", "user", "assistant", "tool"})
    limit: str = "max_tokens"
    tools: bool = True
    reasoning: Json = field(default_factory=dict)
    """What it answers with besides the text: `{"reasoning_field": …, "reasoning": …}`."""
    stream_usage: bool = True
    short_ids: bool = False
    null_content: bool = True
    key: str = ""

    def chat(self, request: RecordedRequest) -> Answer:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return error(401, f"Incorrect API key provided: {request.headers.get('authorization')}")
        body = request.json
        complaint = self._complaint(body)
        if complaint:
            return error(422, complaint)
        answer = self._answer(body)
        if body.get("stream"):
            asked = body.get("stream_options") or not self.stream_usage
            return stream(chat_chunks(usage=(3, 4) if asked else None, **answer))
        return reply(chat_reply(**answer))

    def _complaint(self, body: Json) -> str:
        unknown = [name for name in body if self.fields is not None and name not in self.fields]
        if unknown:
            return f"extra fields are not permitted: {unknown}"
        for message in body["messages"]:
            if message["role"] not in self.roles:
                return f"unknown role {message['role']}"
            if message["content"] is None and not self.null_content:
                return "content must be a string"
            if self.short_ids and any(len(call["id"]) != 9 for call in message.get("tool_calls", ())):
                return "tool call ids must have nine characters"
        return "" if self.tools or "tools" not in body else "tools are not supported"

    def _answer(self, body: Json) -> Json:
        text = " ".join(str(message["content"]) for message in body["messages"])
        if body.get(self.limit) == 3:
            return {"text": "1, 2, 3", "finish": "length"}
        said: Json = {**self.reasoning, "text": "hello"}
        if "banana" in text and "developer" in self.follows:
            said["text"] = "Banana"
        if "papaya" in text and "later" in self.follows:
            said["text"] = "papaya."
        wanted = (body.get("response_format") or {}).get("type")
        if wanted in self.follows:
            said["text"] = '{"colour": "ultraviolet"}' if wanted == "json_schema" else '{"greeting": "hello"}'
        calls = self._calls(body, text)
        return {**said, "text": None, "calls": calls} if calls else said

    def _calls(self, body: Json, text: str) -> list[tuple[str, str, str]]:
        if "tools" not in body or body["messages"][-1]["role"] == "tool":
            return []
        choice = body.get("tool_choice", "auto")
        called = ["get_weather"] * (2 if "Oslo" in text and "parallel" in self.follows else 1)
        if isinstance(choice, dict):
            called = [choice["function"]["name"]] if "function" in self.follows else called
        elif choice == "none":
            called = [] if "none" in self.follows else called
        elif "weather" not in text:
            called = called if choice == "required" and "required" in self.follows else []
        return [(f"call_{number}", name, '{"city":"Paris"}') for number, name in enumerate(called)]


ALL = frozenset(
    {"developer", "later", "json_schema", "json_object", "parallel", "none", "required", "function", "responses"}
)
STRICT_FIELDS = frozenset(
    {"model", "messages", "stream", "tools", "tool_choice", "response_format", "max_tokens", "temperature", "top_p"}
    | {"stop", "presence_penalty", "frequency_penalty", "random_seed", "parallel_tool_calls"}
)
SERVERS = {
    "openai": Server(
        follows=ALL,
        roles=frozenset({"system", "developer", "user", "assistant", "tool"}),
        limit="max_completion_tokens",
    ),
    "mistral": Server(
        fields=STRICT_FIELDS,
        follows=frozenset({"json_schema", "json_object", "parallel", "none", "required", "function"}),
        short_ids=True,
        null_content=False,
        stream_usage=False,
    ),
    "llama": Server(
        follows=frozenset({"json_schema", "json_object", "none", "required"}),
        reasoning={"reasoning": "hm", "reasoning_field": "reasoning_content"},
        null_content=False,
    ),
    "bare": Server(tools=False, reasoning={}, limit="nothing"),
}


def routes(
    server: Server, *, models: Sequence[Json] = ({"id": "some-model"},), props: Json | None = None
) -> dict[str, Handler]:
    """Everything that such a server answers to; any other path is a 404 by the script's default."""

    def listing(request: RecordedRequest) -> Answer:
        return reply({"object": "list", "data": list(models)}) if models else error(404)

    found: dict[str, Handler] = {"/v1/models": listing, "/v1/chat/completions": server.chat}
    if props is not None:
        found["/props"] = lambda request: reply(props)
    if "responses" in server.follows:
        found["/v1/responses"] = _respond
    return found


def _respond(request: RecordedRequest) -> Answer:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
    return reply({"object": "response", "status": "completed", "output": [item], "model": request.json["model"]})


def ask(server: Server, **told: Any) -> tuple[Findings, list[tuple[str, str]]]:
    """Probe a server over a real socket; also what was told on the way."""
    heard: list[tuple[str, str]] = []
    given = {name: told.pop(name) for name in ("key", "model") if name in told}

    async def run() -> Findings:
        async with ScriptedUpstream(default=error(404, "no such path"), routes=routes(server, **told)) as upstream:
            return await probe(upstream.base_url, progress=lambda *said: heard.append(said), **given)

    return asyncio.run(run()), heard


def verdicts(found: Findings) -> dict[str, str]:
    return {note.question: note.verdict for note in found.notes}
