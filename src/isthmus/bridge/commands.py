"""What a turn commands: the shell carries it out, in order, and gives back what came of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from isthmus.bridge.assemble.output import end_type
from isthmus.bridge.jobs import CheckAnswer
from isthmus.bridge.tools.examine import ExamineInput
from isthmus.bridge.types.managed import ManagedCall
from isthmus.errors import IsthmusError
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import FinishedResponse

Why = Literal["first", "repair", "search", "tool", "compaction", "pause"]


class Send(msgspec.Struct, frozen=True):
    """Call the upstream with this body and feed its answer back."""

    body: JsonObject
    why: Why = "first"
    """What it is asked for: once more, within the same answer."""


class Check(msgspec.Struct, frozen=True):
    """Do this work where it can block nobody, and give its result to `checked`."""

    job: CheckAnswer | ExamineInput


class RunTool(msgspec.Struct, frozen=True):
    """Carry these calls out, several at once; give what comes of each to `ran`, then ask `end` again."""

    calls: tuple[ManagedCall, ...]


class Done(msgspec.Struct, frozen=True):
    """Save the response, then send these events: the last one is terminal."""

    response: FinishedResponse
    events: list[Event]
    failure: IsthmusError | None = None
    written: bytes | None = None
    """The response as JSON, where somebody has written it already, and it is small."""

    def unkept(self, code: str, message: str) -> Done:
        """The same for a response that could not be saved: the client must not believe that it was."""
        response: FinishedResponse = {**self.response, "status": "failed", "error": {"code": code, "message": message}}
        response["completed_at"] = response["incomplete_details"] = None
        return self.replaced(response)

    def replaced(self, response: FinishedResponse) -> Done:
        """The same with another end."""
        number = self.events[-1]["sequence_number"]
        last: Event = {"type": end_type(response["status"]), "sequence_number": number, "response": response}
        return Done(response, [*self.events[:-1], last], self.failure)
