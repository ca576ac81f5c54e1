"""Chat Completions replies and chunks → deltas. Nothing below knows which vendor spoke.

A chunk is decoded in the order reasoning, text, tool calls, usage, finish; a whole reply in the order reasoning, tool
calls, message. The first lines of `_read` and `_say` are the path of nearly every token: a few look-ups, one delta.
"""

from __future__ import annotations

from typing import Any, Final

from isthmus.bridge import deltas
from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Delta
from isthmus.bridge.dialects.alike import Say
from isthmus.bridge.dialects.chat.call_reader import CallReader
from isthmus.bridge.dialects.chat.failures import read_error
from isthmus.bridge.dialects.chat.markup import LeakedTools, Schemas
from isthmus.bridge.dialects.chat.thinking import ThinkTags
from isthmus.bridge.dialects.decoder import JsonDecoder
from isthmus.bridge.dialects.reports import logprobs_of, read_citation, read_logprobs, read_usage
from isthmus.bridge.finish import map_provider_finish_reason
from isthmus.protocol.items import Logprob
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrubber

_TEXTS: Final = ("text", "summary", "content")
_BESIDE: Final = ("error", "finish_reason", "logprobs", "usage", "web_search", "x_groq")
"""What a chunk, or its choice, may say beside its words."""


class ChatDecoder(JsonDecoder):
    _unit = "a chunk"

    def __init__(self, rules: ReplyRules, leaks: Schemas | None = None, scrubber: Scrubber | None = None) -> None:
        """`leaks`: the tools whose markup may stand in the text, by name, with their schemas."""
        super().__init__(rules, scrubber)
        self._fields = rules.reasoning_fields
        self._calls = CallReader()
        self._tags = ThinkTags(inside=rules.think_opened) if rules.think_tags or rules.think_opened else None
        self._leaked = LeakedTools(rules.leaked_tools, leaks) if rules.leaked_tools and leaks else None
        self._plain = self._tags is None and self._leaked is None
        self._cited: list[Any] | None = [] if rules.citations_tell_search else None
        self._hosted = False
        self._ignored: set[str] = set()
        self._live = False

    def end(self) -> list[Delta]:
        out: list[Delta] = []
        self._end_text(out)
        self._calls.end(out)
        return out

    def _read(self, chunk: JsonObject, out: list[Delta]) -> None:
        choices = chunk.get("choices")
        choice = choices[0] if choices and isinstance(choices, list) else None
        reason = None
        if isinstance(choice, dict):
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._say(delta, choice, out)
                if len(delta) > 1 or not out:  # nearly every chunk is a token and nothing else
                    self._rest(delta, out)
                if out:
                    if self._live and self._alike.learns:  # one chunk makes no stream
                        self._note(chunk, choice, delta)
                    self._live = True
            elif not self._live and isinstance(choice.get("message"), dict):
                # A whole reply inside a stream. Behind deltas it only says everything again (MiniMax).
                self._message(choice["message"], choice, out)
            reason = choice.get("finish_reason")
        if choice is None or "error" in chunk or (reason and "error" in choice):
            self._problem(chunk, choice, out)
        if "usage" in chunk or reason or "x_groq" in chunk or "web_search" in chunk:
            self._tail(chunk, choice, reason, out)

    def _note(self, chunk: JsonObject, choice: JsonObject, delta: JsonObject) -> None:
        """Which of its texts a chunk comes to, if it says nothing else."""
        spoken = [name for name, value in delta.items() if value and name != "role"]
        if len(spoken) != 1 or any(map(chunk.get, _BESIDE)) or any(map(choice.get, _BESIDE)):
            return
        name = spoken[0]
        if name == "tool_calls":
            self._said = self._calls.said if len(delta[name]) == 1 else None
        elif type(delta[name]) is str and (name == "content" or name in self._fields):
            self._said = delta, name, self._hear if name == "content" else _think

    @property
    def _hear(self) -> Say:
        """Who hears words that come with nothing else."""
        if self._leaked is not None:
            return self._split_all
        return _speak if self._tags is None else self._tags.feed_all

    def _split_all(self, texts: list[str], out: list[Delta]) -> None:
        for text in texts:
            self._split(text, None, out)

    def _read_whole(self, reply: JsonObject, out: list[Delta]) -> None:
        choices = reply.get("choices")
        choice = choices[0] if choices and isinstance(choices, list) else None
        self._problem(reply, choice, out)
        if isinstance(choice, dict):
            message = choice.get("message")
            self._message(message if isinstance(message, dict) else {}, choice, out)
            self._tail(reply, choice, choice.get("finish_reason"), out)
            out += self.end()
        elif not out:
            out.append(deltas.Failed("the upstream's reply has no choices"))

    def _say(self, message: JsonObject, choice: JsonObject, out: list[Delta]) -> None:
        for field in self._fields:
            thought = message.get(field)
            if thought:
                self._think(thought, out)
                break
        content = message.get("content")
        if content:
            if type(content) is str and not choice.get("logprobs"):
                self._hear([content], out)
            else:
                self._content(content, choice, out)

    def _think(self, thought: Any, out: list[Delta]) -> None:
        """A thought is text, an object with text, or a list of either, as vendors wrap it."""
        if type(thought) is not str:
            pieces = thought if isinstance(thought, list) else [thought]
            found = [next(filter(None, map(one.get, _TEXTS)), "") if isinstance(one, dict) else one for one in pieces]
            thought = "".join(text for text in found if isinstance(text, str))
        if thought:
            out.append(deltas.Reasoning(thought))

    def _content(self, content: Any, choice: JsonObject, out: list[Delta]) -> None:
        if isinstance(content, str):
            given = choice.get("logprobs")
            logprobs = read_logprobs(given.get("content")) if isinstance(given, dict) else None
            if logprobs:
                logprobs = logprobs_of(content, logprobs)
            self._split(content, logprobs, out)
        elif isinstance(content, list):
            for part in content:
                self._part(part, choice, out)

    def _split(self, text: str, logprobs: list[Logprob] | None, out: list[Delta]) -> None:
        """Think tags are read first, then tool calls in what is left."""
        plain: list[Delta] = []
        if self._tags is None:
            plain.append(deltas.Text(text, logprobs))
        else:
            self._tags.feed(text, plain, logprobs)
        self._look_for_calls(plain, out)

    def _look_for_calls(self, plain: list[Delta], out: list[Delta]) -> None:
        for delta in plain:
            if self._leaked is not None and isinstance(delta, deltas.Text) and not delta.logprobs:
                self._leaked.feed(delta.text, out)
            else:
                out.append(delta)

    def _part(self, part: Any, choice: JsonObject, out: list[Delta]) -> None:
        if isinstance(part, str):
            self._content(part, choice, out)
        elif isinstance(part, dict):
            match part.get("type"):
                case "thinking" | "reasoning" | "reasoning_text":
                    self._think(part.get("thinking") or part.get("text") or part.get("content"), out)
                case "refusal":
                    if part.get("refusal"):
                        out.append(deltas.Refusal(str(part["refusal"])))
                case _ if isinstance(part.get("text"), str):
                    if part["text"]:
                        self._content(part["text"], choice, out)
                case kind if (name := str(kind)[:64]) not in self._ignored:
                    # A Response has no place for it (Mistral's `reference`, pictures): said once for each kind.
                    self._ignored.add(name)
                    words = f"a part of type `{name}` of the answer has no counterpart here"
                    out.append(deltas.Markup(words, "bridge.response.part_ignored"))

    def _rest(self, delta: JsonObject, out: list[Delta], *, whole: bool = False) -> None:
        details = delta.get("reasoning_details")
        if details and isinstance(details, list):
            if not any(delta.get(field) for field in self._fields):
                self._think(details, out)
            out.append(deltas.VendorExtra("reasoning_details", details))
        calls = delta.get("tool_calls")
        if not calls and isinstance(legacy := delta.get("function_call"), dict):
            calls = [{"index": 0, "function": legacy}]
        if calls:
            if not self._plain:
                self._end_text(out)
            (self._calls.read_whole if whole else self._calls.read)(calls, out)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            out.append(deltas.Refusal(refusal))
        annotations = delta.get("annotations")
        if annotations and isinstance(annotations, list):
            self._annotate(annotations, out)

    def _annotate(self, annotations: list[Any], out: list[Delta]) -> None:
        for given in annotations:
            if isinstance(given, dict) and given.get("type") == "url_citation":
                inner = given.get("url_citation")
                source = inner if isinstance(inner, dict) else given
                out.append(deltas.Annotation(read_citation(source)))
                if self._cited is not None:
                    self._cited.append(source)
            elif isinstance(given, dict):
                out.append(deltas.Annotation(given))

    def _message(self, message: JsonObject, choice: JsonObject, out: list[Delta]) -> None:
        said: list[Delta] = []
        self._say(message, choice, said)
        self._end_text(said)
        rest: list[Delta] = []
        self._rest(message, rest, whole=True)
        if not rest and len(said) == 1:  # a text and nothing else: there is no order to decide
            out += said
            return
        if any(isinstance(delta, deltas.CallOpened) for delta in said):  # leaked calls stand where they were said
            out += said
            said = []
        thoughts, spoken = _part_words(said)
        spoken += [delta for delta in rest if isinstance(delta, deltas.Refusal | deltas.Annotation)]
        acted = [delta for delta in rest if not isinstance(delta, deltas.Refusal | deltas.Annotation)]
        # A reply that was cut off was cut in its last call: that call comes last, for an item that is
        # incomplete must be.
        cut = map_provider_finish_reason(self._finish_reason(choice.get("finish_reason"))).status != "completed"
        out += [*thoughts, *spoken, *acted] if cut else [*thoughts, *acted, *spoken]

    def _problem(self, chunk: JsonObject, choice: Any, out: list[Delta]) -> None:
        """An error beside a choice, inside one (OpenRouter) or in its place; there it may also be a vendor's status."""
        error, status = chunk.get("error"), chunk.get("base_resp")
        if error is None and isinstance(choice, dict):
            error = choice.get("error")
        if error is None and choice is None:
            if isinstance(status, dict) and status.get("status_code"):
                error = {"message": status.get("status_msg"), "code": status["status_code"]}
            elif chunk.get("object") == "error":
                error = chunk
        if error is not None:
            out.append(read_error(error, self._scrub))

    def _tail(self, chunk: JsonObject, choice: Any, reason: Any, out: list[Delta]) -> None:
        given = chunk.get("usage")
        if not given:
            places = (chunk.get("x_groq"), choice)  # where some vendors put it
            given = next((place["usage"] for place in places if isinstance(place, dict) and place.get("usage")), None)
        usage = read_usage(given, self._rules)
        if usage is not None:
            out.append(deltas.Used(usage))
        searched = chunk.get("web_search") or (self._cited if reason else None)
        if isinstance(searched, list) and searched and not self._hosted:
            self._hosted = True
            out.append(deltas.HostedCall(_web_search_call(searched)))
        finish_reason = self._finish_reason(reason)
        if finish_reason is not None:
            out.append(deltas.Finished(finish_reason, self._stop(choice, reason)))

    def _finish_reason(self, given: Any) -> str | None:
        return self._rules.finish_reasons.get(given, given) if isinstance(given, str) and given else None

    def _stop(self, choice: JsonObject, reason: str) -> str | None:
        for field in self._rules.stop_fields:
            told = choice.get(field)
            if told and isinstance(told, str):
                return told
        return deltas.SOME_STOP if reason == deltas.SOME_STOP else None

    def _end_text(self, out: list[Delta]) -> None:
        if self._tags is not None:
            held: list[Delta] = []
            self._tags.end(held)
            self._look_for_calls(held, out)
        if self._leaked is not None:
            self._leaked.end(out)


def _speak(texts: list[str], out: list[Delta]) -> None:
    out += map(deltas.Text, texts)


def _think(texts: list[str], out: list[Delta]) -> None:
    out += map(deltas.Reasoning, texts)


def _part_words(said: list[Delta]) -> tuple[list[Delta], list[Delta]]:
    """Thoughts and words of a whole text, apart; where they took turns, each stays an item of its own."""
    thoughts: list[Delta] = []
    spoken: list[Delta] = []
    before: type[Delta] | None = None
    for delta in said:
        mine = spoken if isinstance(delta, deltas.Text) else thoughts
        if isinstance(delta, deltas.Text | deltas.Reasoning):
            if before is not None and before is not type(delta) and mine:
                mine.append(deltas.ItemBegan("message" if mine is spoken else "reasoning"))
            before = type(delta)
        mine.append(delta)
    return thoughts, spoken


def _web_search_call(results: list[Any]) -> JsonObject:
    found = [result for result in results if isinstance(result, dict)]
    sources = [{"type": "url", "url": str(result.get("link") or result.get("url") or "")} for result in found]
    return {"type": "web_search_call", "action": {"type": "search", "query": "", "sources": sources}}
