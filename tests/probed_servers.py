"""Servers with a personality for the probe: what they take, what they do with it, what they tell of themselves."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    silent_limit: bool = False
    """Whether an answer that it cut is called a whole one."""
    alternates: bool = False
    """Whether one speaker may not say two messages in a row, nor the user speak after a tool."""
    image_status: int = 400
    """What it says to images, unless it follows them."""
    native: Server | None = None
    """Its Responses endpoint, where that is not the same as its Chat Completions."""

    def chat(self, request: RecordedRequest) -> Answer:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return error(401, f"Incorrect API key provided: {request.headers.get('authorization')}")
        body = request.json
        complaint = self._complaint(body)
        if complaint:
            return error(422, complaint)
        if "images" not in self.follows and "image_url" in str(body["messages"]):
            return error(self.image_status, "image input is not supported")
        answer = self._answer(body)
        if body.get("stream"):
            asked = body.get("stream_options") or not self.stream_usage
            return stream(chat_chunks(usage=(3, 4) if asked else None, **answer))
        whole = chat_reply(usage=(3, 3 if answer.get("text") == "1, 2, 3" else 4), **answer)
        if body.get("logprobs") and "logprobs" in self.follows:
            whole["choices"][0]["logprobs"] = {"content": [{"token": "hello", "logprob": -0.1, "top_logprobs": []}]}
        return reply(whole)

    def respond(self, request: RecordedRequest) -> Answer:
        """The same server in the other dialect."""
        body = request.json
        asked = _as_chat(body)
        complaint = self._complaint(asked)
        if complaint or ("image_url" in str(body["input"]) and "images" not in self.follows):
            return error(422 if complaint else self.image_status, complaint or "image input is not supported")
        said = self._answer(asked)
        cut = said.get("finish") == "length"
        part: Json = {"type": "output_text", "annotations": [], "text": said.get("text") or "", "logprobs": []}
        if body.get("top_logprobs") and "logprobs" in self.follows:
            part["logprobs"] = [{"token": "hello", "logprob": -0.1, "bytes": [], "top_logprobs": []}]
        output: list[Json] = [{"type": "reasoning", "id": "rs_1", "summary": []}] if said.get("reasoning") else []
        output += [
            {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments}
            for id, name, arguments in said.get("calls", ())
        ] or [{"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}]
        usage = {"input_tokens": 3, "output_tokens": 3 if part["text"] == "1, 2, 3" else 4, "total_tokens": 7}
        whole = {"object": "response", "status": "incomplete" if cut else "completed", "output": output, "usage": usage}
        return stream([{"type": "response.completed", "response": whole}]) if body.get("stream") else reply(whole)

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
        roles = [message["role"] for message in body["messages"]]
        if self.alternates and any(pair in _UNEVEN for pair in itertools.pairwise(roles)):
            return "conversation roles must alternate"
        return "" if self.tools or "tools" not in body else "tools are not supported"

    def _answer(self, body: Json) -> Json:
        text = " ".join(str(message["content"]) for message in body["messages"])
        if body.get(self.limit) == 3:
            return {"text": "1, 2, 3", **({} if self.silent_limit else {"finish": "length"})}
        quiet = body.get("reasoning_effort") == "none" and "effort" in self.follows
        said: Json = {**({} if quiet else self.reasoning), "text": "hello"}
        if "Count" in text:
            said["text"] = "1" if body.get("stop") and "stop" in self.follows else "1, 2, 3, 4"
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
        arguments = '{"city":"Paris"}'
        if "pick_colour" in str(body["tools"]):
            called = ["pick_colour"]
            arguments = '{"colour":"ultraviolet"}' if "strict" in self.follows else '{"colour":"red"}'
        return [(f"call_{number}", name, arguments) for number, name in enumerate(called)]


_UNEVEN = frozenset({("user", "user"), ("assistant", "assistant"), ("tool", "user")})


def _as_chat(body: Json) -> Json:
    """A Responses body in the words of the other dialect."""
    given = dict(body)
    messages = [
        {"role": item["role"], "content": " ".join(str(part.get("text", part)) for part in item["content"])}
        for item in given.pop("input")
    ]
    choice = given.get("tool_choice", "auto")
    renamed: Json = {"messages": messages}
    if isinstance(choice, dict):
        renamed["tool_choice"] = {"function": {"name": choice["name"]}}
    if "text" in given:
        renamed["response_format"] = given.pop("text")["format"]
    if "reasoning" in given:
        renamed["reasoning_effort"] = given.pop("reasoning")["effort"]
    for name in ("store", "include", "top_logprobs"):
        given.pop(name, None)
    return {**given, **renamed}


ALL = frozenset(
    {"developer", "later", "json_schema", "json_object", "parallel", "none", "required", "function", "responses"}
    | {"logprobs", "strict", "effort", "images", "stop"}
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
        follows=frozenset({"json_schema", "json_object", "none", "required", "logprobs", "strict", "effort", "stop"}),
        reasoning={"reasoning": "hm", "reasoning_field": "reasoning_content"},
        null_content=False,
        image_status=500,
        native=Server(
            follows=frozenset({"required", "strict", "effort", "responses"}),
            reasoning={"reasoning": "hm", "reasoning_field": "reasoning_content"},
            limit="max_output_tokens",
            silent_limit=True,
            image_status=500,
        ),
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
    if server.native is not None:
        found["/v1/responses"] = server.native.respond
    elif "responses" in server.follows:
        found["/v1/responses"] = replace(server, limit="max_output_tokens").respond
    return found


def ask(server: Server, **told: Any) -> tuple[Findings, list[tuple[str, str]]]:
    """Probe a server over a real socket; also what was told on the way."""
    heard: list[tuple[str, str]] = []
    given = {name: told.pop(name) for name in ("key", "model", "bounds") if name in told}

    async def run() -> Findings:
        async with ScriptedUpstream(default=error(404, "no such path"), routes=routes(server, **told)) as upstream:
            return await probe(upstream.base_url, progress=lambda *said: heard.append(said), **given)

    return asyncio.run(run()), heard


def verdicts(found: Findings) -> dict[str, str]:
    return {note.question: note.verdict for note in found.notes}
