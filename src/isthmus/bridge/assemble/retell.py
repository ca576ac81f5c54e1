"""A finished response told again as a stream, for a client that comes back after its events are gone.

Every item is whole by now, so each part comes as one delta. Same order, same ids, same terminal event.
"""

from __future__ import annotations

from typing import Any, Final

from isthmus.bridge.assemble.call import tell_whole
from isthmus.bridge.assemble.managed import TOLD_IN_STEPS, tell_ran
from isthmus.bridge.assemble.output import Output, tell_compaction
from isthmus.bridge.assemble.speech import Speech, TextPart
from isthmus.protocol.events import Event
from isthmus.protocol.items import MessageItem, ReasoningItem
from isthmus.protocol.response import FinishedResponse

_AT_THE_END: Final = ("output_text", "isthmus", "tool_usage")
_NOT_YET: Final = dict.fromkeys(("completed_at", "error", "usage", "incomplete_details"))


def replay_events(response: FinishedResponse, *, specified: bool = False) -> list[Event]:
    output = Output(response["id"], specified=specified)
    begun: Any = {**response, "status": "in_progress", "output": [], **_NOT_YET}
    for name in _AT_THE_END:
        begun.pop(name, None)
    output.tell("response.created", begun)
    output.tell("response.in_progress", begun)
    for item in response["output"]:
        if item["type"] == "message":
            _tell_message(output, item)
        elif item["type"] == "reasoning":
            _tell_reasoning(output, item)
        elif item["type"] == "compaction":
            tell_compaction(output, item["encrypted_content"], item["id"])
        elif item["type"] in TOLD_IN_STEPS:
            tell_ran(output, item)
        else:
            tell_whole(output, item)
    output.end(response["status"], response)
    return output.take()


def _tell_message(output: Output, item: MessageItem) -> None:
    message = Speech("message", output, phase=item.get("phase"), wanted=item["id"])
    for part in item["content"]:
        told = message.begin(part["type"])
        if part["type"] == "refusal":
            told.append(part["refusal"])
        else:
            told.append(part["text"], part["logprobs"])
            if isinstance(told, TextPart):
                for annotation in part["annotations"]:
                    told.annotate(annotation)
    message.close(item["status"])


def _tell_reasoning(output: Output, item: ReasoningItem) -> None:
    thought = Speech("reasoning", output, seal=lambda text: item.get("encrypted_content"), wanted=item["id"])
    for part in (*item["summary"], *item.get("content", ())):
        thought.begin(part["type"]).append(part["text"])
    thought.close(item["status"])
