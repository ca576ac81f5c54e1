"""Chat Completions replies and chunks → deltas. Nothing below knows which vendor spoke.

A chunk is decoded in the order reasoning, text, tool calls, usage, finish. A whole reply is decoded in
the seed's order: reasoning, tool calls, then the message. The first lines of `chunk` are the path of
nearly every token: one JSON decode, a few look-ups, one delta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import (
    Annotation,
    CallOpened,
    Delta,
    Failed,
    Finished,
    HostedCall,
    ItemBegan,
    Markup,
    Reasoning,
    Refusal,
    Text,
    Used,
    VendorExtra,
)
from isthmus.bridge.dialects.chat.call_reader import CallReader
from isthmus.bridge.dialects.chat.failures import excerpt, read_error
from isthmus.bridge.dialects.chat.logprobs import read_logprobs
from isthmus.bridge.dialects.chat.markup import LeakedTools
from isthmus.bridge.dialects.chat.thinking import ThinkTags
from isthmus.bridge.dialects.chat.usage import UsageReader, find_usage
from isthmus.bridge.dialects.citations import read_citation
from isthmus.bridge.finish import map_provider_finish_reason
from isthmus.protocol.items import Logprob
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, unscrubbed

_decode_json: Final = msgspec.json.Decoder().decode
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ChatDecoder:
    """Decodes one upstream answer: either chunks one by one and `end`, or `reply` once."""

    __slots__ = (
        "_calls",
        "_cited",
        "_fields",
        "_finish_reasons",
        "_hosted",
        "_ignored",
        "_leaked",
        "_live",
        "_scrub",
        "_tags",
        "_usage",
        "done",
    )

    def __init__(
        self, rules: ReplyRules, leaks: Mapping[str, JsonObject | None] | None = None, scrub: Scrub = unscrubbed
    ) -> None:
        """`leaks`: the tools whose markup may stand in the text, by name, with their schemas.

        `scrub` is for the words of errors; what the model says is not looked at.
        """
        self._scrub = scrub
        self._fields = tuple(rules.reasoning_fields)
        self._finish_reasons = rules.finish_reasons
        self._usage = UsageReader(rules)
        self._calls = CallReader()
        self._tags = ThinkTags(inside=rules.think_opened) if rules.think_tags or rules.think_opened else None
        self._leaked = LeakedTools(rules.leaked_tools, leaks) if rules.leaked_tools and leaks else None
        self._cited: list[Any] | None = [] if rules.citations_tell_search else None
        self._hosted = False
        self._ignored: set[str] = set()
        self._live = False
        self.done = False
        """Whether the upstream said `[DONE]`."""

    def chunk(self, data: bytes) -> list[Delta]:
        """The deltas of one SSE data line; none behind `[DONE]`."""
        if self.done:
            return []
        try:
            chunk = _decode_json(data)
        except _NOT_JSON:
            if data.strip() == b"[DONE]":
                self.done = True
                return []
            return [Failed(f"the upstream sent a chunk that is not JSON: {excerpt(data, self._scrub)}")]
        out: list[Delta] = []
        if not isinstance(chunk, dict):
            return [Failed(f"the upstream sent a chunk that is not an object: {excerpt(data, self._scrub)}")]
        choices = chunk.get("choices")
        if choices and isinstance(choices, list) and isinstance(choices[0], dict):
            choice = choices[0]
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._delta(delta, choice, out)
                if out:
                    self._live = True
            elif not self._live and isinstance(choice.get("message"), dict):
                # A whole reply inside a stream. Behind deltas it only says everything again (MiniMax).
                self._message(choice["message"], choice, out)
            reason = choice.get("finish_reason")
        else:
            reason = None
            self._problem(chunk, out)
        if chunk.get("error") is not None and choices:
            out.append(read_error(chunk["error"], self._scrub))
        if "usage" in chunk or reason or "x_groq" in chunk or "web_search" in chunk:
            self._tail(chunk, reason, out)
        return out

    def reply(self, data: bytes | JsonObject) -> list[Delta]:
        """The deltas of one whole reply."""
        try:
            reply = data if isinstance(data, dict) else _decode_json(data)
        except _NOT_JSON:
            words = excerpt(data, self._scrub) if isinstance(data, bytes) else ""
            return [Failed(f"the upstream's reply is not JSON: {words}")]
        out: list[Delta] = []
        choices = reply.get("choices") if isinstance(reply, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            self._problem(reply if isinstance(reply, dict) else {}, out)
            return out or [Failed("the upstream's reply has no choices")]
        choice = choices[0]
        if reply.get("error") is not None:
            out.append(read_error(reply["error"], self._scrub))
        message = choice.get("message")
        self._message(message if isinstance(message, dict) else {}, choice, out)
        self._tail(reply, choice.get("finish_reason"), out)
        self._flush(out)
        return out

    def end(self) -> list[Delta]:
        """The stream is over: what was held back comes out."""
        out: list[Delta] = []
        self._flush(out)
        return out

    def _delta(self, delta: JsonObject, choice: JsonObject, out: list[Delta]) -> None:
        for field in self._fields:
            thought = delta.get(field)
            if thought:
                self._reasoning(thought, out)
                break
        content = delta.get("content")
        if content:
            self._content(content, choice, out)
            if len(delta) == 1:  # a token of text and nothing else: nearly every chunk
                return
        self._rest(delta, out)

    def _message(self, message: JsonObject, choice: JsonObject, out: list[Delta]) -> None:
        for field in self._fields:
            if message.get(field):
                self._reasoning(message[field], out)
                break
        texts: list[Delta] = []
        if message.get("content"):
            self._content(message["content"], choice, texts)
        self._end_text(texts)
        if any(isinstance(delta, CallOpened) for delta in texts):  # leaked calls stand where they were said
            out.extend(texts)
            texts = []
        thoughts, spoken = _part_words(texts)
        out += thoughts
        rest: list[Delta] = []
        self._rest(message, rest, whole=True)
        spoken += [delta for delta in rest if isinstance(delta, Refusal | Annotation)]
        acted = [delta for delta in rest if not isinstance(delta, Refusal | Annotation)]
        # A reply that was cut off was cut in its last call: that call comes last, for an item that is
        # incomplete must be.
        cut = map_provider_finish_reason(self._finish_reason(choice.get("finish_reason"))).status != "completed"
        out += [*spoken, *acted] if cut else [*acted, *spoken]

    def _reasoning(self, thought: Any, out: list[Delta]) -> None:
        if isinstance(thought, str):
            out.append(Reasoning(thought))
        elif isinstance(thought, dict) and isinstance(thought.get("content"), str):
            out.append(Reasoning(thought["content"]))

    def _content(self, content: Any, choice: JsonObject, out: list[Delta]) -> None:
        if isinstance(content, str):
            given = choice.get("logprobs")
            logprobs = read_logprobs(given.get("content")) if isinstance(given, dict) else None
            if self._tags is not None:
                self._marked(content, logprobs, out)
            elif self._leaked is None or logprobs:
                out.append(Text(content, logprobs))
            else:
                self._leaked.feed(content, out)
        elif isinstance(content, list):
            for part in content:
                self._part(part, choice, out)

    def _marked(self, content: str, logprobs: list[Logprob] | None, out: list[Delta]) -> None:
        """Text that may hold markup: think tags first, then tool calls in what is left."""
        assert self._tags is not None
        if self._leaked is None:
            self._tags.feed(content, out, logprobs)
            return
        plain: list[Delta] = []
        self._tags.feed(content, plain, logprobs)
        self._look_for_calls(plain, out)

    def _look_for_calls(self, plain: list[Delta], out: list[Delta]) -> None:
        assert self._leaked is not None
        for delta in plain:
            if isinstance(delta, Text) and not delta.logprobs:
                self._leaked.feed(delta.text, out)
            else:
                out.append(delta)

    def _part(self, part: Any, choice: JsonObject, out: list[Delta]) -> None:
        if isinstance(part, str):
            self._content(part, choice, out)
        elif isinstance(part, dict):
            match part.get("type"):
                case "thinking" | "reasoning" | "reasoning_text":
                    text = _joined(part.get("thinking") or part.get("text") or part.get("content"))
                    if text:
                        out.append(Reasoning(text))
                case "refusal":
                    if part.get("refusal"):
                        out.append(Refusal(str(part["refusal"])))
                case _:
                    spoken = part.get("text")
                    if isinstance(spoken, str):
                        if spoken:
                            self._content(spoken, choice, out)
                    else:
                        self._ignore(part.get("type"), out)

    def _ignore(self, kind: Any, out: list[Delta]) -> None:
        """A part that a Response has no place for (Mistral's `reference`, pictures): said once for each kind."""
        name = str(kind)[:64]
        if name not in self._ignored:
            self._ignored.add(name)
            words = f"a part of type `{name}` of the answer has no counterpart here"
            out.append(Markup(words, "bridge.response.part_ignored"))

    def _rest(self, delta: JsonObject, out: list[Delta], *, whole: bool = False) -> None:
        """The rarer fields of a delta or message."""
        details = delta.get("reasoning_details")
        if details and isinstance(details, list):
            if not any(delta.get(field) for field in self._fields):
                text = "".join(_detail_text(detail) for detail in details)
                if text:
                    out.append(Reasoning(text))
            out.append(VendorExtra("reasoning_details", details))
        calls = delta.get("tool_calls")
        legacy = delta.get("function_call")
        if not calls and isinstance(legacy, dict):
            calls = [{"index": 0, "function": legacy}]
        if calls:
            self._end_text(out)
            if whole:
                self._calls.read_whole(calls, out)
            else:
                self._calls.read(calls, out)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            out.append(Refusal(refusal))
        annotations = delta.get("annotations")
        if annotations and isinstance(annotations, list):
            self._annotations(annotations, out)

    def _annotations(self, annotations: list[Any], out: list[Delta]) -> None:
        for given in annotations:
            if not isinstance(given, dict):
                continue
            inner = given.get("url_citation")
            if given.get("type") == "url_citation":
                source = inner if isinstance(inner, dict) else given
                out.append(Annotation(read_citation(source)))
                if self._cited is not None:
                    self._cited.append(source)
            else:
                out.append(Annotation(given))

    def _problem(self, chunk: JsonObject, out: list[Delta]) -> None:
        """A chunk without choices: an error, a vendor's status, or nothing but usage."""
        if chunk.get("error") is not None:
            out.append(read_error(chunk["error"], self._scrub))
            return
        status = chunk.get("base_resp")
        if isinstance(status, dict) and status.get("status_code"):
            told = {"message": status.get("status_msg"), "code": status["status_code"]}
            out.append(read_error(told, self._scrub))
        elif chunk.get("object") == "error":
            out.append(read_error(chunk, self._scrub))

    def _tail(self, chunk: JsonObject, reason: Any, out: list[Delta]) -> None:
        found = find_usage(chunk)
        usage = self._usage.read(found) if found is not None else None
        if usage is not None:
            out.append(Used(usage))
        searched = chunk.get("web_search") or (self._cited if reason else None)
        if isinstance(searched, list) and searched and not self._hosted:
            self._hosted = True
            out.append(HostedCall(_web_search_call(searched)))
        if isinstance(reason, str) and reason:
            out.append(Finished(self._finish_reason(reason)))

    def _finish_reason(self, given: Any) -> str | None:
        """In the words of the finish table."""
        return self._finish_reasons.get(given, given) if isinstance(given, str) and given else None

    def _flush(self, out: list[Delta]) -> None:
        self._end_text(out)
        self._calls.end(out)

    def _end_text(self, out: list[Delta]) -> None:
        held: list[Delta] = []
        if self._tags is not None:
            self._tags.end(held)
        if self._leaked is None:
            out.extend(held)
        else:
            self._look_for_calls(held, out)
            self._leaked.end(out)


def _part_words(texts: list[Delta]) -> tuple[list[Delta], list[Delta]]:
    """Thoughts and words of a whole text, apart; where they took turns, each stays an item of its own."""
    thoughts: list[Delta] = []
    spoken: list[Delta] = []
    before: type[Delta] | None = None
    for delta in texts:
        mine = spoken if isinstance(delta, Text) else thoughts
        if isinstance(delta, Text | Reasoning):
            if before is not None and before is not type(delta) and mine:
                mine.append(ItemBegan("message" if mine is spoken else "reasoning"))
            before = type(delta)
        mine.append(delta)
    return thoughts, spoken


def _joined(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_joined(part.get("text") if isinstance(part, dict) else part) for part in value)
    return ""


def _detail_text(detail: Any) -> str:
    if not isinstance(detail, dict):
        return ""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _web_search_call(results: list[Any]) -> JsonObject:
    sources = [
        {"type": "url", "url": str(result.get("link") or result.get("url") or "")}
        for result in results
        if isinstance(result, dict)
    ]
    return {"type": "web_search_call", "action": {"type": "search", "query": "", "sources": sources}}
