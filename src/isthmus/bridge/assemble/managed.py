"""Calls that run here, as the client is told of them: from their opening to the one end that each of them has.

They outlive the reply that made them: it is over when they are carried out, and what came of them is what the model is
asked with next. An item opens when its arguments are whole, and names the reply that it belongs to in its id (see
`Output.mark`), so that a later request can tell calls made side by side from calls made one after the other.

    web_search_call         in_progress → searching → completed
    mcp_call                in_progress → arguments.delta, .done → completed | failed
    image_generation_call   in_progress → generating → partial_image* → completed
    mcp_list_tools          in_progress → completed | failed       (told first of all)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.assemble.cite import find_citations
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.assemble.speech import Seal
from isthmus.bridge.envelope import Sealed
from isthmus.bridge.tools.managed import failed_fields, read_arguments, recall, shape_managed
from isthmus.bridge.types.managed import Listing, ManagedCall, Ran
from isthmus.bridge.types.managed import Output as Result
from isthmus.bridge.types.tools import ToolIdentity
from isthmus.protocol.items import Annotation
from isthmus.protocol.json import JsonObject, write_json

_PREFIXES: Final = {"web_search": "ws", "mcp": "mcp", "image_generation": "ig"}
_STEPS: Final[Mapping[str, str]] = {"web_search": "searching", "image_generation": "generating"}
"""What a call does once it is carried out; of one to an MCP server there is no such word."""
_MAX_SEALED: Final = 1_000_000
"""Characters of a result that an item carries for us; of a longer one the next request tells in words."""
_MAX_SOURCES: Final = 500
"""Pages of one response that citations may point to."""
_SPENT: Final = (
    "[not carried out: this response has called as many tools of the server as it may; answer with what is known]"
)
_NO_USAGE: Final[JsonObject] = {
    "image_gen": {
        "input_tokens": 0,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 0,
        "total_tokens": 0,
    },
    "web_search": {"num_requests": 0},
}
_ENDED: Final = "the response ended before the call was over"


class _Open(msgspec.Struct):
    kind: str
    item: Any
    index: int
    stepped: bool = False


class ManagedCalls(msgspec.Struct, eq=False):
    _output: Output
    _seal: Seal | None = None
    _tells_sources: bool = False
    """Whether the client asked for the pages that a search found."""
    left: int | None = None
    """How many more calls may be carried out; `None`: nobody counts."""
    _most: int = 200_000
    _made: int = 0
    _open: dict[str, _Open] = {}
    _waiting: list[ManagedCall] = []
    results: dict[str, Result] = {}
    """What the model is told of each, by the id of its item."""
    _beside: list[JsonObject] = []
    """Calls that were not carried out, and that the client is not told of, each with the words that say so."""
    usage: dict[str, Any] = {}
    """What they cost, as the Response tells it."""
    _sources: dict[str, str] = {}

    @property
    def busy(self) -> bool:
        return bool(self._open)

    def new_id(self, identity: ToolIdentity, *, approved: bool = False) -> str:
        """The id of its item, and of the call: there is no other one to answer by."""
        self._made += 1
        prefix = "mcpr" if identity.asks and not approved else _PREFIXES[identity.managed or "mcp"]
        return f"{prefix}_{self._output.mark}_c{self._made}"

    def list_tools(self, label: str, listing: Listing) -> None:
        """The tools of a server, unless the conversation knows them."""
        if listing.known:
            return
        id, index = self._output.place("mcpl")
        failed = listing.error is not None
        item: Any = {"type": "mcp_list_tools", "id": id, "status": "in_progress", "server_label": label, "tools": []}
        self._output.added(index, item)
        self._step(id, index, "mcp_list_tools", "in_progress")
        self._step(id, index, "mcp_list_tools", "failed" if failed else "completed")
        ended: Any = {**item, "status": "failed" if failed else "completed", "tools": list(listing.tools)}
        if listing.error is not None:  # of a list it is told in words (openai 3.49.0); of a call as an object
            ended["error"] = listing.error["message"]
        self._output.done(index, ended)

    def open(self, id: str, identity: ToolIdentity, arguments: str, approval: str | None = None) -> None:
        """A call is whole: it is told, and waits to be carried out, or for the user's approval."""
        if identity.managed is None:
            raise AssertionError(f"`{identity.requested_name}` does not run here")
        if identity.asks and approval is None:
            self._ask(id, identity, arguments)
        elif self.left is not None and self.left <= 0 and approval is None:
            self._decline(id, identity, arguments)
        else:
            self._begin(id, identity, arguments, approval)

    def take_waiting(self) -> tuple[ManagedCall, ...]:
        """Those that are to be carried out now."""
        waiting, self._waiting = tuple(self._waiting), []
        return waiting

    def take_beside(self) -> list[JsonObject]:
        beside, self._beside = self._beside, []
        return beside

    def began(self, id: str) -> None:
        known = self._open[id]
        if (word := _STEPS.get(known.kind)) is not None and not known.stepped:
            known.stepped = True
            self._step(id, known.index, known.item["type"], word)

    def step(self, id: str, word: str, fields: JsonObject) -> None:
        """Progress that the runner tells of; that it has begun is known."""
        known = self._open.get(id)
        if known is not None and (fields or word != _STEPS.get(known.kind)):
            self._step(id, known.index, known.item["type"], word, **fields)

    def ran(self, id: str, ran: Ran) -> None:
        """What came of it: the item ends, and what the model reads is kept."""
        self.began(id)
        known, result = self._open.pop(id), _bound(ran.output, self._most)
        item = {**known.item, **ran.fields, "type": known.item["type"], "id": id}
        item["status"] = "failed" if ran.failed else "completed"
        if known.kind == "web_search":
            item["action"] = self._with_sources(item["action"], ran)
        self.results[id] = result
        if recall(item) != result and self._seal is not None:
            kept = write_json(result)
            if len(kept) <= _MAX_SEALED:
                item["encrypted_content"] = self._seal(Sealed("", kept), "tool_result")
        self._end(known, item)
        self._count(item, ran)
        for source in ran.sources:
            if len(self._sources) < _MAX_SOURCES and isinstance(url := source.get("url"), str):
                self._sources.setdefault(url, str(source.get("title") or ""))

    def fail_all(self) -> None:
        """The response is over before they are."""
        self._waiting = []
        for id, known in self._open.items():
            self._end(known, {**known.item, **failed_fields(known.kind, _ENDED), "id": id, "status": "failed"})
        self._open = {}

    def cite(self, text: str) -> list[Annotation]:
        return find_citations(text, self._sources)

    @property
    def cites(self) -> bool:
        return bool(self._sources)

    def _ask(self, id: str, identity: ToolIdentity, arguments: str) -> None:
        _, index = self._output.place("", id)
        item: Any = {**shape_managed(identity, arguments), "id": id}
        self._output.added(index, item)
        ended: Any = {**item, "status": "completed"}  # it waits for its answer, and that is another item
        self._output.done(index, ended)

    def _decline(self, id: str, identity: ToolIdentity, arguments: str) -> None:
        label = {} if identity.namespace is None else {"namespace": identity.namespace}
        called = {"name": identity.requested_name, **label, "arguments": arguments}
        self._beside += [
            {"type": "function_call", "call_id": id, **called},
            {"type": "function_call_output", "call_id": id, "output": _SPENT},
        ]

    def _begin(self, id: str, identity: ToolIdentity, arguments: str, approval: str | None) -> None:
        kind: Any = identity.managed
        item: Any = {**shape_managed(msgspec.structs.replace(identity, asks=False), arguments), "id": id}
        if approval is not None:
            item["approval_request_id"] = approval
        if self.left is not None:
            self.left = max(self.left - 1, 0)
        _, index = self._output.place("", id)
        self._open[id] = _Open(kind, item, index)
        begun: Any = {**item, "arguments": ""} if kind == "mcp" else item
        self._output.added(index, begun)
        self._step(id, index, item["type"], "in_progress")
        if kind == "mcp":
            self._step(id, index, "mcp_call_arguments", "delta", delta=item["arguments"])
            self._step(id, index, "mcp_call_arguments", "done", arguments=item["arguments"])
        asked = read_arguments(kind, arguments)
        if asked is None:
            words = "the arguments are not a JSON object"
            self.ran(id, Ran(f"[not carried out: {words}]", failed_fields(kind, words), failed=True))
        else:
            self._waiting.append(ManagedCall(id, kind, identity.requested_name, asked, identity.tool))

    def _end(self, known: _Open, item: Any) -> None:
        failed = item["status"] == "failed"
        if not failed or known.kind == "mcp":  # of the others, the item alone tells that they failed
            self._step(item["id"], known.index, item["type"], "failed" if failed else "completed")
        self._output.done(known.index, item)

    def _step(self, id: str, index: int, type: str, word: str, **fields: Any) -> None:
        self._output.say(f"response.{type}.{word}", item_id=id, output_index=index, **fields)

    def _with_sources(self, action: JsonObject, ran: Ran) -> JsonObject:
        told = {name: value for name, value in action.items() if name != "sources"}
        if not self._tells_sources or told.get("type") != "search":
            return told
        return {**told, "sources": [{"type": "url", **source} for source in ran.sources]}

    def _count(self, item: Any, ran: Ran) -> None:
        """Opening a page is no search, and one that failed costs nothing, unless the runner says otherwise."""
        match item["type"]:
            case "web_search_call":
                searched = item["action"].get("type") == "search" and not ran.failed
                spent = {"web_search": {"num_requests": int(searched), **ran.usage}}
            case "image_generation_call":
                spent = {"image_gen": dict(ran.usage)}
            case _:
                return
        self.usage = _add(self.usage or _NO_USAGE, spent)


def tell_ran(output: Output, item: Any) -> None:
    """A call of these kinds that is over, told again with the steps that it had."""
    id, index = output.place("", item["id"])
    failed, type = item.get("status") == "failed", item["type"]
    empty = {name: value for name, value in _EMPTY.get(type, {}).items() if name in item}
    begun: Any = {**item, **empty, "status": "in_progress"}
    begun.pop("encrypted_content", None)
    if isinstance(action := item.get("action"), dict):
        begun["action"] = {name: value for name, value in action.items() if name != "sources"}
    output.added(index, begun)
    if type == "mcp_approval_request":
        output.done(index, item)
        return
    at = {"item_id": id, "output_index": index}
    output.say(f"response.{type}.in_progress", **at)
    if type == "mcp_call":
        output.say("response.mcp_call_arguments.delta", **at, delta=item["arguments"])
        output.say("response.mcp_call_arguments.done", **at, arguments=item["arguments"])
    elif word := _STEPS.get(type.removesuffix("_call")):
        output.say(f"response.{type}.{word}", **at)
    if not failed or type in ("mcp_call", "mcp_list_tools"):
        output.say(f"response.{type}.{'failed' if failed else 'completed'}", **at)
    output.done(index, item)


_EMPTY: Final[Mapping[str, JsonObject]] = {
    "mcp_call": {"arguments": "", "output": None, "error": None},
    "mcp_list_tools": {"tools": []},
    "image_generation_call": {"result": None},
}
"""What comes into an item between its beginning and its end."""
TOLD_IN_STEPS: Final = (
    "web_search_call",
    "mcp_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_approval_request",
)


def _bound(output: Result, most: int) -> Result:
    """What the model reads of a result: texts are cut at the limit, images are not touched."""
    if isinstance(output, str):
        return output if len(output) <= most else f"{output[:most]}\n[cut: {len(output) - most} characters more]"
    bounded: list[JsonObject] = []
    for part in output:
        text = part.get("text")
        bounded.append({**part, "text": _bound(text, max(most, 0))} if isinstance(text, str) else part)
        most -= len(text) if isinstance(text, str) else 0
    return bounded


def _add(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    summed = dict(before)
    for name, value in more.items():
        known = summed.get(name)
        if isinstance(value, Mapping):
            summed[name] = _add(known if isinstance(known, Mapping) else {}, value)
        else:
            summed[name] = known + value if isinstance(known, int | float) else value
    return summed
