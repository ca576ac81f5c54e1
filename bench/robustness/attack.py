"""Every attack that once hurt, as it was tried, against the real server; and what others noticed of it meanwhile.

Beside each attack a health ping never waits more than 200 ms, the stream of another client has no gap above 500 ms, and
the process stays below a stated size. A watcher in a process of its own sees all that (`watch`).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.robustness import attack_requests as requests
from bench.robustness import attack_store as store
from bench.robustness import attack_upstream as answers
from bench.robustness.attack_scene import SECRET, Deed, Scene
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway
from bench.robustness.upstream import Call, Upstream, delta
from bench.robustness.watch import View, Watch

PING: Final = 0.2
GAP: Final = 0.5
MEMORY: Final = 1_500_000_000
"""Resident bytes that no attack may reach."""
AFTER: Final = 400_000_000
"""Resident bytes a moment after all of them (R17)."""

Attack = Callable[[Scene], Awaitable[str]]
SHARED: Final[dict[str, Attack]] = {
    "R1 doubled schemas": requests.doubled_schemas,
    "R2 patterns": requests.patterns,
    "R3, R4 secrets": answers.secrets,
    "R5 fragments of calls": answers.fragments,
    "R6 answers without end": answers.endless,
    "R7 references": requests.references,
    "R8 large bodies": requests.large_bodies,
    "R8 twenty at once": requests.many_large_bodies,
    "R13 waits": answers.waits,
    "R14 half-sent bodies": requests.half_sent_bodies,
    "R15 endless 100s": answers.continues,
    "R16 odd heads": requests.odd_heads,
    "R18 stale connections": answers.stale_connections,
    "R19 grammars": requests.grammars,
}
"""On one gateway, one after another."""
ALONE: Final[dict[str, Attack]] = {
    "R9 file deleted": store.deleted,
    "R10 file damaged": store.damaged,
    "R11 disk full": store.full,
    "R12 many rows": store.many_rows,
}
"""Each on a gateway of its own, because of what it leaves behind."""
RESTARTS: Final = ("R9 file deleted", "R10 file damaged", "R12 many rows")
"""Here the gateway itself is stopped: nobody can watch it then."""


async def check(
    *, small: bool = False, only: Sequence[str] = (), ping: float = PING, gap: float = GAP, memory: int = MEMORY
) -> Report:
    """`only`: attacks whose names begin so."""
    report = Report("Attacks, and what others noticed of them")
    report.head = ("attack", "what came of it", "ping", "gap", "own", "peak RSS", "took")
    limits = _Limits(report, ping, gap, memory)
    watch = await Watch.start()
    try:
        shared = {name: attack for name, attack in SHARED.items() if _wanted(name, only)}
        if shared:
            await _on_one_gateway(limits, watch, shared, small)
        for name, attack in ALONE.items():
            if _wanted(name, only):
                await _on_one_gateway(limits, watch, {name: attack}, small)
    finally:
        await watch.aclose()
    report.add("slowest health ping", f"{limits.ping * 1000:.0f} ms", f"{ping * 1000:.0f} ms", kept=not limits.slow)
    report.add("longest gap in a stream", f"{limits.gap * 1000:.0f} ms", f"{gap * 1000:.0f} ms", kept=not limits.gaps)
    kept = limits.peak <= memory
    report.add("most memory", f"{limits.peak / 1e6:.0f} MB", f"{memory / 1e6:.0f} MB", kept=kept)
    return report


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(name.startswith(each) for each in only)


class _Limits:
    """What was promised, and the worst that was seen."""

    def __init__(self, report: Report, ping: float, gap: float, memory: int) -> None:
        self.report = report
        self._most_ping, self._most_gap, self._memory = ping, gap, memory
        self.ping = self.gap = 0.0
        self.peak = 0
        self.slow = self.gaps = False

    def note(self, name: str, scene: Scene, said: str, view: View | None, seconds: float) -> None:
        cells = ["–", "–", "–"]
        if view is not None:
            # What the machine did to the watcher, it did to the gateway too: not counted twice.
            ping, gap = max(view.ping - view.own, 0.0), max(view.gap - view.own, 0.0)
            self.ping, self.gap = max(self.ping, ping), max(self.gap, gap)
            if ping > self._most_ping:
                self.slow = True
                self.report.problems.append(f"{name}: a health ping took {ping * 1000:.0f} ms")
            if gap > self._most_gap:
                self.gaps = True
                self.report.problems.append(f"{name}: another client's stream was silent for {gap * 1000:.0f} ms")
            if view.problem:
                self.report.problems.append(f"{name}: {view.problem}")
            cells = [f"{each * 1000:.0f} ms" for each in (view.ping, view.gap, view.own)]
        self.peak = max(self.peak, scene.peak)
        if scene.peak > self._memory:
            self.report.problems.append(f"{name}: {scene.peak / 1e6:.0f} MB")
        self.report.problems += [f"{name}: {problem}" for problem in scene.problems]
        self.report.rows.append((name, said, *cells, f"{scene.peak / 1e6:.0f} MB", f"{seconds:.1f} s"))


async def _on_one_gateway(limits: _Limits, watch: Watch, attacks: dict[str, Attack], small: bool) -> None:
    deeds: dict[str, Deed] = {}

    async def act(call: Call) -> None:
        await deeds.get(_words_of(call), _answer)(call)

    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(act) as upstream:
            more = (
                f'api_key = "{SECRET}"\nretries = 0\n'
                f'[providers.steady]\nuses = "openai-compatible"\nbase_url = "{watch.upstream}"\n'
                '[providers.gone]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nretries = 0\n'
                f'query = {{ code = "{SECRET}" }}\n'
            )
            async with running_gateway(Path(folder), upstream.base_url, provider=more) as gateway:
                for name, attack in attacks.items():
                    await _one(limits, watch, gateway, deeds, name, attack, small)
                    upstream.calls.clear()  # the bodies, which may be large
                await _afterwards(limits, gateway, attacks, small)


def _words_of(call: Call) -> str:
    content = call.body["messages"][-1].get("content")
    return content if isinstance(content, str) else ""


async def _answer(call: Call) -> None:
    if not call.body.get("stream"):
        await call.reply("well")
        return
    await call.begin()
    await call.say(delta("well"))
    await call.end()


async def _one(
    limits: _Limits,
    watch: Watch,
    gateway: GatewayProcess,
    deeds: dict[str, Deed],
    name: str,
    attack: Attack,
    small: bool,
) -> None:
    scene = Scene(gateway, small, deeds)
    watched = name not in RESTARTS
    if watched:
        await watch.begin(gateway.port)
    looking = asyncio.create_task(_look(scene))
    started = time.monotonic()
    try:
        said = await attack(scene)
    except Exception as error:  # the other attacks are worth knowing about all the same
        scene.problems.append(f"the attack ended with {error!r}")
        said = "?"
    seconds = time.monotonic() - started
    view = await watch.view() if watched else None
    looking.cancel()
    if not gateway.running and watched:
        scene.problems.append("the gateway is gone")
        await gateway.start()
    if watched:
        reply = await scene.post({"input": "and now?"})
        scene.expect(reply.status == 200, f"an ordinary request afterwards: {reply.status}")
    limits.note(name, scene, said, view, seconds)


async def _look(scene: Scene) -> None:
    while True:
        if scene.gateway.running:
            with suppress(OSError, RuntimeError):  # it was stopped a moment ago
                scene.look()
        await asyncio.sleep(0.02)


async def _afterwards(limits: _Limits, gateway: GatewayProcess, attacks: dict[str, Attack], small: bool) -> None:
    report = limits.report
    traces = gateway.tracebacks()
    if traces:  # the log goes with its folder
        told = gateway.log.read_text()
        print(told[told.index("Traceback") :][:4000], file=sys.stderr)
    report.add(f"tracebacks in the log of {len(attacks)} attack(s)", traces, "0", kept=not traces)
    if len(attacks) > 1:
        await asyncio.sleep(1 if small else 10)
        left = gateway.memory()
        kept = left <= AFTER
        report.add("R17 memory a moment after them", f"{left / 1e6:.0f} MB", f"{AFTER / 1e6:.0f} MB", kept=kept)
