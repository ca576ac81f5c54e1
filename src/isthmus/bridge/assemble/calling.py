"""All calls of one response: which tool each means, whether it may pass, when it is closed.

A call is closed when something else opens, if its arguments are whole by then: vendors interleave the
fragments of parallel calls, so one that is not whole stays open. A custom call whose tool has a grammar is
examined first, and not here: `Paused` rises, `pending` says what is to be examined, and whoever closed tries
again once `take_verdict` was called.
"""

from __future__ import annotations

from isthmus.bridge.assemble.calls import CallBlock
from isthmus.bridge.assemble.output import Output
from isthmus.bridge.deltas import CallArguments, CallOpened, Failed
from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.examine import Examined, ExamineInput
from isthmus.bridge.tools.restore import find_identity
from isthmus.bridge.types.tools import ToolIdentity, ToolPlan


class Paused(Exception):
    """Nothing goes on before the pending examination is answered."""


class Calls:
    __slots__ = ("_blocks", "_examining", "_open", "_output", "_taken", "_tools", "_waived", "notices", "pending")

    def __init__(self, tools: ToolPlan, output: Output, taken: frozenset[str]) -> None:
        self._tools = tools
        self._output = output
        self._taken = set(taken)
        self._blocks: dict[int, CallBlock | None] = {}
        self._open: list[CallBlock] = []
        self._examining: CallBlock | None = None
        self._waived = False
        self.pending: ExamineInput | None = None
        self.notices: list[CompatibilityDiagnostic] = []

    def __bool__(self) -> bool:
        """Whether there is a call that the client sees."""
        return any(block is not None for block in self._blocks.values())

    def open(self, delta: CallOpened) -> Failed | None:
        """Begin a call, or suppress it; a call that names no tool and fits none fails the turn."""
        identity = self._identify(delta)
        name = identity.provider_name if identity is not None else delta.name
        self._blocks[delta.slot] = None
        if not name:
            return Failed("the model called a tool without naming it")
        if self._tools.allowed is not None and name not in self._tools.allowed:
            words = f"the model called `{name}`, which this request does not allow"
            self.notices.append(notice("bridge.tool.call_suppressed", "output", words, name=name))
            return None
        output = self._output
        block = CallBlock(self._call_id(delta.id), name, identity, self._tools.identities, output.emitter, output.place)
        self._blocks[delta.slot] = block
        self._open.append(block)
        return None

    def append(self, delta: CallArguments) -> None:
        block = self._blocks.get(delta.slot)
        if block is not None and block.open:
            block.append(delta.text, delta.replace)

    def call_id(self, slot: int) -> str | None:
        block = self._blocks.get(slot)
        return block.call_id if block is not None else None

    def close_whole(self) -> None:
        """Something else opens: what is whole is done."""
        if self._open:
            whole = [block for block in self._open if block.whole]
            self._examine(whole)
            for block in whole:
                self._close(block, cut=False)

    def examine_all(self, *, stopped: bool, spoken_since: bool) -> None:
        """The reply is about to be over: whatever will be closed as whole is examined first."""
        self._examine([block for block in self._open if not self._cut(block, stopped, spoken_since)])

    def take_verdict(self, verdict: Examined) -> None:
        if self._examining is None:
            raise RuntimeError("no examination is pending")
        self._examining.examined = verdict
        self._examining = self.pending = None

    def waive(self) -> None:
        """Nobody can be waited for any more: what was not examined yet will be passed on as it is."""
        self._examining = self.pending = None
        self._waived = True

    def close_all(self, *, stopped: bool, failed: bool, spoken_since: bool) -> None:
        """The reply is over. `stopped`: before its time; then a call that is not whole was cut off."""
        self.examine_all(stopped=stopped, spoken_since=spoken_since)
        for block in list(self._open):
            cut = self._cut(block, stopped, spoken_since)
            if cut and failed and not block.visible:
                self._open.remove(block)  # never shown, never whole: nothing a client could use
            else:
                self._close(block, cut=cut)

    def forget(self) -> None:
        """Another reply begins: its decoder counts from the start again."""
        self._blocks.clear()

    def _examine(self, blocks: list[CallBlock]) -> None:
        for block in blocks:
            job = block.examination
            if job is not None and self._waived:
                block.examined = Examined(job.text, "", "unchecked", "the response ended before that")
            elif job is not None:
                self.pending, self._examining = job, block
                raise Paused

    def _cut(self, block: CallBlock, stopped: bool, spoken_since: bool) -> bool:
        """Whether the reply ended in the middle of this call."""
        if not stopped or block.whole:
            return False
        # A call without a word of arguments is whole unless it is the very last thing that was said.
        newest = next((block for block in reversed(self._blocks.values()) if block is not None), None)
        return bool(block.text or (block is newest and not spoken_since))

    def _close(self, block: CallBlock, *, cut: bool) -> None:
        self._open.remove(block)
        item, diagnostics = block.close(cut=cut)
        self.notices.extend(diagnostics)
        self._output.put(block.output_index, item)

    def _identify(self, delta: CallOpened) -> ToolIdentity | None:
        if delta.name:
            return find_identity(delta.name, self._tools.identities)
        only = [declared.identity for declared in self._tools.declarations if declared.identity is not None]
        return only[0] if len(only) == 1 else None

    def _call_id(self, given: str | None) -> str:
        """The vendor's id, unless it is missing or already used in this conversation (`call_0` each turn)."""
        if given and given not in self._taken:
            self._taken.add(given)
            return given
        minted = f"call_{self._output.suffix}_{len(self._taken)}"
        self._taken.add(minted)
        return minted
