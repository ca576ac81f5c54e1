"""What the providers' servers say of their own models: heard in the background, believed from the next request on.

Nobody waits for it. A server on this machine is asked when the gateway starts: that costs nothing, and nobody else
hears of it. A vendor is asked when it is first used: who only starts a gateway has not asked for a request to every
house whose key is set; who wants the list of models has. After that both are asked again when they are used and their
word has grown old; one that did not answer is left alone for a while, longer each time. Several processes share a
store: what one has heard, the others take from there. There is no timer: what nobody uses is not asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from isthmus.errors import IsthmusError
from isthmus.gateway.directory import Served
from isthmus.log import Level, tell
from isthmus.ports import Store, StoredWord
from isthmus.providers.word.told import Told, decode_told, encode_told

log = logging.getLogger("isthmus.gateway")

_FIRST_WAIT: Final = 5.0
"""Seconds after which a server that did not answer may be asked again; twice as many each time."""
_LONGEST_WORD: Final = 2_000_000
"""Bytes of a word that is kept in the store."""


class Words:
    def __init__(
        self,
        served: Mapping[str, Served],
        store: Store,
        *,
        refresh: float,
        keep: float,
        now: Callable[[], float],
    ) -> None:
        """`refresh`: seconds after which a word is old; 0: nobody is asked. `keep`: seconds until one that cannot be
        had anew is forgotten."""
        found = ((name, each, each.asking) for name, each in served.items() if refresh)
        self._asked = {name: (each, asking) for name, each, asking in found if asking is not None}
        self._store = store
        self._refresh = refresh
        self._keep = keep
        self._now = now
        self._due: dict[str, float] = dict.fromkeys(self._asked, 0.0)
        self._failed: dict[str, int] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._recalling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Recall what was heard before, then ask the servers of this machine."""
        if self._asked:
            self._recalling = asyncio.create_task(self._begin(), name="recall what the servers said")

    def used(self, name: str) -> None:
        """A request goes there: its word may have to be heard anew. Costs a look at the clock."""
        due = self._due.get(name)
        if due is not None and self._now() >= due and name not in self._asking and self._recalling is None:
            self._asking[name] = asyncio.create_task(self._ask(name), name=f"ask {name} about its models")

    async def settled(self, within: float) -> None:
        """Have the servers asked whose word is old. Those of this machine, and those that were never heard and did not
        fail either, are waited for; nobody waits longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._recalling is not None:
                    await asyncio.wait([self._recalling])
                for name in self._asked:
                    self.used(name)
                if pending := [task for name, task in self._asking.items() if self._worth_a_wait(name)]:
                    await asyncio.wait(pending)

    def _worth_a_wait(self, name: str) -> bool:
        served, asking = self._asked[name]
        return asking.own or (not served.provider.told.at and name not in self._failed)

    async def aclose(self) -> None:
        pending = self._pending()
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)

    def _pending(self) -> list[asyncio.Task[None]]:
        return [task for task in (self._recalling, *self._asking.values()) if task is not None]

    async def _begin(self) -> None:
        try:
            for word in await self._kept(self._keep):
                if (told := self._understood(word)) is not None:
                    self._asked[word.provider][0].hear(told)
                    self._due[word.provider] = told.at + self._refresh
        finally:
            self._recalling = None
        for name, (_, asking) in self._asked.items():
            if asking.own:
                self.used(name)

    async def _ask(self, name: str) -> None:
        served, asking = self._asked[name]
        try:
            told = await self._heard_elsewhere(name) or await asking.ask()
        except Exception as error:
            self._wait(name, error)
            return
        finally:
            self._asking.pop(name, None)
        self._failed.pop(name, None)
        self._due[name] = told.at + self._refresh
        before = served.provider.told
        served.hear(told)
        if (told.models, told.words) != (before.models, before.words):
            tell(log, "info", "word.heard", provider=name, models=len(told.models), described=len(told.words))
        await self._save(name, asking.place, told)

    async def _heard_elsewhere(self, name: str) -> Told | None:
        """What another process has heard meanwhile, if it is fresh."""
        found = [self._understood(word) for word in await self._kept(self._refresh) if word.provider == name]
        known = self._asked[name][0].provider.told.at
        return next((told for told in found if told is not None and told.at > known), None)

    async def _kept(self, seconds: float) -> list[StoredWord]:
        """What was heard within this time; a store that does not answer keeps nobody from asking."""
        if not self._keep:
            return []
        try:
            return await self._store.words(since=self._now() - seconds)
        except IsthmusError as error:
            tell(log, "error", "words.not_read", reason=str(error))
            return []

    def _understood(self, word: StoredWord) -> Told | None:
        """What is said of a provider that is served, by the server that it still has."""
        _, asking = self._asked.get(word.provider, (None, None))
        return decode_told(word.data) if asking is not None and asking.place == word.place else None

    def _wait(self, name: str, error: Exception) -> None:
        failed = self._failed[name] = self._failed.get(name, 0) + 1
        wait = min(_FIRST_WAIT * 2 ** min(failed - 1, 20), self._refresh)
        self._due[name] = self._now() + wait
        known = isinstance(error, IsthmusError)
        level: Level = "info" if known else "error"
        trace = None if known else error
        tell(log, level, "word.not_heard", provider=name, reason=str(error), again_in=wait, trace=trace)

    async def _save(self, name: str, place: str, told: Told) -> None:
        data = encode_told(told)
        if not self._keep or not told.says or len(data) > _LONGEST_WORD:
            return
        try:
            await self._store.hear(StoredWord(name, place, data, told.at), since=self._now() - self._keep)
        except IsthmusError as error:
            tell(log, "error", "word.not_kept", provider=name, reason=str(error))
