"""A stored chat completion → the chunks of a stream that says the same."""

from __future__ import annotations

from typing import Final

from isthmus.protocol.json import JsonObject

_BASE: Final = ("id", "created", "model")


def retell_chat_completion(completion: JsonObject, *, include_usage: bool = False) -> list[JsonObject]:
    base = {"object": "chat.completion.chunk", **{name: completion[name] for name in _BASE}}
    [choice] = completion["choices"]

    def chunk(delta: JsonObject, **more: object) -> JsonObject:
        said = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None, **more}
        return {**base, "choices": [said], **({"usage": None} if include_usage else {})}

    said = {name: value for name, value in choice["message"].items() if value is not None}
    chunks = [chunk({"role": said.pop("role"), "content": "", "refusal": None})]
    calls = said.pop("tool_calls", ())
    for name, value in said.items():
        told = {"logprobs": choice["logprobs"]} if name == "content" else {}
        chunks.append(chunk({name: value}, **told))
    chunks += [chunk({"tool_calls": [{"index": index, **call}]}) for index, call in enumerate(calls)]
    last = chunk({}, finish_reason=choice["finish_reason"])
    chunks.append({**last, "isthmus": completion.get("isthmus")})
    if include_usage:
        chunks.append({**base, "choices": [], "usage": completion["usage"]})
    return chunks
