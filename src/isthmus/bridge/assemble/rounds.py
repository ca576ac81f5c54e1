"""The loop of one response: how often the model is asked again with what was found for it, and with what exactly.

Searches for deferred tools and calls that run here take part in it alike. Every round asks with all that was said so
far, written as a later request of the client would write it, so that what a provider has cached of it counts.
"""

from __future__ import annotations

from collections.abc import Callable

from isthmus.bridge.assemble.calls import Calls, Hosted
from isthmus.bridge.assemble.managed import ManagedCalls
from isthmus.bridge.assemble.output import Output, Unheard
from isthmus.bridge.assemble.reply import Reply
from isthmus.bridge.assemble.speech import Seal, VendorState
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.types.managed import ManagedCall
from isthmus.bridge.types.plan import Plan, Progress
from isthmus.protocol.json import JsonObject


class Rounds:
    def __init__(self, plan: Plan, output: Output, seal: Seal | None) -> None:
        most = plan.limits.result
        self.managed = ManagedCalls(output, seal, plan.tells_sources, left=plan.max_tool_calls, _most=most)
        self.spent = False
        """Whether the model was asked without the tools that run here: it has called them often enough."""
        self._output = output
        self._seal = seal
        self._searches = self._rounds = self._known = 0
        self._heard: list[JsonObject] = []
        """The items that it was asked with, and calls beside them that nobody was told of."""
        self._after: Callable[[Progress], Plan] | None = None
        """Of the plan that the response began with: those that follow have what was said in them already."""

    def new_reply(self, plan: Plan, notices: list[CompatibilityDiagnostic], taken: set[str]) -> Reply:
        """What takes the next answer; one that is a summary for ourselves is told to nobody."""
        output = self._output if plan.compaction is None else Unheard(f"resp_{self._output.suffix}")
        plain, contract = plan.client.plain_call_ids, plan.contract
        return Reply(
            output,
            VendorState(plan.target.provider, self._seal, plan.seals_reasoning),
            notices,
            Hosted(output),
            Calls(plan.tools, output, taken, notices, _plain_ids=plain, _managed=self.managed),
            # Whoever reads the answer in one piece has not seen it yet: it may be cleaned where a stream may not.
            contract.held or (contract.requires_valid_json and not plan.stream),
            plan.reasoning_as == "summary",
            self.managed,
            None if plan.reply.tells_length else plan.output_limit,
        )

    def list_tools(self, plan: Plan) -> None:
        """The tools of MCP servers, before anything else is told of the answer."""
        for label, listing in plan.tools.listings.items():
            self.managed.list_tools(label, listing)

    def approve(self, plan: Plan) -> tuple[ManagedCall, ...]:
        """What the user has approved since the model called it."""
        for call in plan.approved:
            id = self.managed.new_id(call.identity, approved=True)
            self.managed.open(id, call.identity, call.arguments, call.request_id)
        return self.managed.take_waiting()

    def go_on(self, plan: Plan, calls: Calls, most: int | None) -> Plan:
        """The plan that follows these calls, with so many tokens left."""
        self._after = self._after or plan.after_tools
        if self._after is None:
            raise AssertionError("nothing of this plan runs here")
        self._searches += calls.searches
        if calls.runs or not calls:
            self._rounds += 1
            self._output.mark = f"{self._output.suffix}r{self._rounds}"
        items = self._output.items
        self._heard += [*map(dict, items[self._known :]), *self.managed.take_beside()]
        self._known = len(items)
        self.spent = self._rounds >= plan.limits.rounds or self.managed.left == 0
        if self.spent:
            self.managed.left = 0
        results = self.managed.results
        return self._after(Progress(self._heard, results, self._searches, self._rounds, self.spent, most))
