"""A storm: random attacks, a provider in every bad mood, slow and vanishing clients, and ordinary load, together.

Afterwards every law of the state machine holds (what was told is stored, one end each, nothing crosses owners, nothing
goes on), and memory, file descriptors, tasks, threads and processes are back. Then the process is killed in the middle
of a last gust, and all that anybody was told is there again. The seed says what everybody does: `--seed` does it again.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.robustness.attack import SHARED, Attack
from bench.robustness.attack_scene import SECRET as SECRET_KEY
from bench.robustness.attack_scene import Scene
from bench.robustness.client import KEY, Reply
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway
from bench.robustness.storm_after import (
    judge_file,
    judge_rest,
    judge_streams,
    judge_told,
    most_of,
    nothing_unfinished,
    size_of,
    wait_for,
)
from bench.robustness.storm_clients import KEYS, SECRET, Foreign, User
from bench.robustness.storm_deeds import DEEDS, live
from bench.robustness.storm_told import Told
from bench.robustness.storm_upstream import Weather
from bench.robustness.upstream import Upstream
from msgspec.json import encode

from isthmus.ports import StoredResponse
from isthmus.store.sqlite.store import SqliteStore

LEASE: Final = 2.0
PATIENCE: Final = 60.0
"""Seconds in which everything is back."""
MEMORY: Final = 1_500_000_000
"""Resident bytes that it never reaches."""
_GUST: Final = 2.0
_BEAT: Final = 0.05
_LINE: Final = 79


class _Attacker(Scene):
    """As other attackers; it has a key."""

    async def post(self, body: Any, path: str = "/v1/responses", **headers: str) -> Reply:
        return await Scene.post(self, body, path, authorization=f"Bearer {KEYS[0]}", **headers)


@dataclass(slots=True)
class _Storm:
    seed: int
    gateway: GatewayProcess
    weather: Weather
    foreign: list[Foreign]
    told: Told = field(default_factory=Told)
    users: list[User] = field(default_factory=list)
    attacks: int = 0
    peak: int = 0

    async def blow(self, seconds: float, attackers: int = 0) -> None:
        """Everybody does what he does for so long, and then ends what he has begun."""
        over, began = asyncio.Event(), time.monotonic()
        async with asyncio.TaskGroup() as together:
            for user in self.users:
                together.create_task(live(user, self.seed, over))
            for number in range(attackers):
                together.create_task(self.attack(number, over))
            while (now := time.monotonic() - began) < seconds:
                self.peak = most_of(self.peak, self.gateway)
                self.show(now, seconds)
                await asyncio.sleep(min(0.5, seconds - now))
            over.set()

    async def beat(self) -> None:
        """How late this process is: what the machine does to it, it does to the provider that it plays."""
        while True:
            self.told.due = time.monotonic() + _BEAT
            await asyncio.sleep(_BEAT)
            self.told.note_lag()

    async def attack(self, number: int, over: asyncio.Event) -> None:
        """Each attacker has attacks of its own: they leave what the provider shall do under their words."""
        KEY.set(KEYS[0])
        mine: list[tuple[str, Attack]] = list(SHARED.items())[number::2]
        chance = random.Random(f"{self.seed}.attacker.{number}")
        while not over.is_set():
            name, attack = chance.choice(mine)
            scene = _Attacker(self.gateway, True, self.weather.deeds)
            try:
                await attack(scene)
            except (OSError, EOFError, TimeoutError, LookupError, ValueError) as error:
                scene.problems.append(repr(error))
            self.attacks += 1
            self.peak = max(self.peak, scene.peak)
            for problem in scene.problems:
                self.told.expect(False, f"attack {name}: {problem}")

    def show(self, now: float, seconds: float) -> None:
        if sys.stderr.isatty():
            deeds = sum(self.told.counts[deed.__name__] for deed in DEEDS)
            line = (
                f"storm {_minutes(now)} of {_minutes(seconds)}, seed {self.seed}: {deeds:,} deeds, "
                f"{self.attacks} attacks, {len(self.told.wrong)} wrong, {self.peak / 1e6:.0f} MB"
            )
            print(f"\r{line[:_LINE]:<{_LINE}}", end="", file=sys.stderr, flush=True)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


async def check(
    minutes: float = 10.0, seed: int | None = None, *, users: int = 24, attackers: int = 2, patience: float = PATIENCE
) -> Report:
    """`patience`: seconds in which everything is back."""
    seed = int(time.time()) if seed is None else seed
    seconds = minutes * 60
    report = Report(f"Storm: {seconds:g} s, {users} clients, seed {seed} (`storm --seed {seed}` does it again)")
    weather = Weather()
    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(weather.handle, remember=False) as upstream:
            foreign = await _foreign(Path(folder) / "isthmus.db")
            settings: dict[str, Any] = {
                "server": f"api_keys = {list(KEYS)}\nready_interval = 1".replace("'", '"'),
                "background": f"lease = {LEASE}\nmax_running = 24\nmax_queued = 200\n[checks]\nidle = 2",
                "provider": _providers(upstream.base_url),
            }
            async with running_gateway(Path(folder), upstream.base_url, **settings) as gateway:
                storm = _Storm(seed, gateway, weather, foreign)
                storm.users = [User(number, gateway, storm.told, foreign) for number in range(users)]
                KEY.set(KEYS[1])
                beating = asyncio.create_task(storm.beat())
                await storm.blow(min(max(seconds / 10, 3.0), 30.0))
                await wait_for(lambda: nothing_unfinished(gateway.database), patience)
                await wait_for(lambda: _children(gateway), 10)
                before = await size_of(gateway, upstream)
                await storm.blow(seconds, attackers)
                await judge_rest(report, gateway, upstream, weather, before, patience)
                await judge_told(report, gateway, storm.told, foreign, "afterwards")
                await judge_streams(report, storm.users[0], storm.told)
                await _kill_in_a_gust(storm, patience)
                await judge_told(report, gateway, storm.told, foreign, "after kill -9")
                beating.cancel()
                _tell(report, storm)
                await gateway.stop()
                judge_file(report, gateway)
    return report


def _providers(upstream: str) -> str:
    """`again` is asked again when it fails, `spare` is never there: its requests go to `up`."""
    waits = "timeouts = { connect = 2, first_byte = 3, idle = 3 }\n"
    return (
        f'api_key = "{SECRET_KEY}"\nretries = 0\n{waits}'
        f'[providers.again]\nuses = "openai-compatible"\nbase_url = "{upstream}"\nretries = 1\n{waits}'
        '[providers.spare]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nretries = 0\n'
        '[providers.gone]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nretries = 0\n'
        f'query = {{ code = "{SECRET_KEY}" }}\n[models.fallbacks]\n"spare/model" = ["up/model"]\n'
    )


async def _foreign(database: Path) -> list[Foreign]:
    """Responses of another owner, in the same file from the beginning."""
    made = []
    store = SqliteStore(database)
    try:
        for number in range(5):
            id, item = f"resp_carol{number}", f"msg_carol{number}"
            said = {"type": "message", "role": "user", "id": item, "content": [{"type": "input_text", "text": SECRET}]}
            told = {**said, "role": "assistant", "content": [{"type": "output_text", "text": SECRET}], "id": f"{item}a"}
            whole = {"id": id, "object": "response", "status": "completed", "output": [told]}
            record = StoredResponse(id, encode(whole), (encode(said),), created_at=time.time(), owner="carol")
            await store.save(record)
            found = await store.load(id, owner="carol")
            assert found is not None
            made.append(Foreign(id, item, found.response))
    finally:
        await store.aclose()
    return made


async def _children(gateway: GatewayProcess) -> Sequence[int]:
    """Empty as soon as the workers, which nobody needs now, have gone."""
    return range(gateway.children())


async def _kill_in_a_gust(storm: _Storm, patience: float) -> None:
    """While everybody is busy; then what was left behind is seen to by the next process. Whoever left a stream that was
    not in the background may have been too late: its end is written once, at the end."""
    left = set(storm.told.left)
    gust = asyncio.create_task(storm.blow(_GUST + 60))
    await asyncio.sleep(random.Random(storm.seed).uniform(_GUST / 2, _GUST))
    storm.told.killed = True
    await storm.gateway.kill()
    gust.cancel()
    await asyncio.gather(gust, return_exceptions=True)
    await storm.gateway.start()
    await wait_for(lambda: nothing_unfinished(storm.gateway.database), patience)
    storm.told.killed, storm.told.left = False, left


def _tell(report: Report, storm: _Storm) -> None:
    if sys.stderr.isatty():
        print(f"\r{'':<{_LINE}}\r", end="", file=sys.stderr)
    told = storm.told
    deeds = {deed.__name__: told.counts[deed.__name__] for deed in DEEDS}
    report.add("deeds of clients", sum(deeds.values()), "every kind", kept=all(deeds.values()))
    report.add("attacks", storm.attacks)
    for name, count in sorted(told.counts.items()):
        if name.startswith(("ended", "refused")):
            report.add(f"  {name}", count)
    excused, every = told.counts["excused"], sum(deeds.values())
    late = f"{excused}, late by up to {told.worst_lag:.1f} s"
    report.add(
        "answers that this process, as the provider, was too late with", late, "a tenth", kept=excused < every / 10
    )
    report.add("promises broken meanwhile", len(told.wrong), "0", kept=not told.wrong)
    report.problems += told.wrong
    kept = storm.peak <= MEMORY
    report.add("most memory", f"{storm.peak / 1e6:.0f} MB", f"{MEMORY / 1e6:.0f} MB", kept=kept)
    traces = storm.gateway.tracebacks()
    if traces:  # the log goes with its folder
        log = storm.gateway.log.read_text()
        print(log[log.index("Traceback") :][:4000], file=sys.stderr)
    report.add("tracebacks in the log", traces, "0", kept=not traces)
    report.head = ("deed", "times")
    report.rows += [(name, str(count)) for name, count in sorted(deeds.items(), key=lambda each: -each[1])]
