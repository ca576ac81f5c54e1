"""E-mail addresses stay in the house: the provider gets placeholders, the client its own addresses back.

[hooks]
uses = ["redact.py:Redact"]
"""

from __future__ import annotations

import re
from typing import Any

from isthmus.hooks import Context, JsonObject, Sending

ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PLACEHOLDER = re.compile(r"<email-\d+>")


class Redact:
    holds_streams = True  # a placeholder may come in two pieces: a stream is told when all of it was put back

    def before_send(self, body: JsonObject, sending: Sending, context: Context) -> JsonObject:
        known: dict[str, str] = context.state  # the same for every asking of this response

        def hide(found: re.Match[str]) -> str:
            return known.setdefault(found[0], f"<email-{len(known) + 1}>")

        # Not in `tools`: their names and descriptions are the client's code, and nobody's address.
        return {name: value if name == "tools" else replaced(value, ADDRESS, hide) for name, value in body.items()}

    def after_reply(self, response: JsonObject, context: Context) -> JsonObject:
        real = {placeholder: address for address, placeholder in context.state.items()}

        def show(found: re.Match[str]) -> str:
            return real.get(found[0], found[0])

        return {**response, "output": replaced(response["output"], PLACEHOLDER, show)}


def replaced(value: Any, pattern: re.Pattern[str], by: Any) -> Any:
    """The same value with every text in it rewritten."""
    match value:
        case str():
            return pattern.sub(by, value)
        case list():
            return [replaced(each, pattern, by) for each in value]
        case dict():
            return {name: replaced(each, pattern, by) for name, each in value.items()}
    return value
