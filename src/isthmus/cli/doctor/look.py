"""All areas are looked at side by side, each within its time; whatever goes wrong in one is a finding of that one.

In: `Area`s. Out: what was found, in their order. Worth knowing: a thread cannot be stopped. One that hangs, at a file
on a dead network drive for one, is left alone and goes with the process.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from isthmus.cli.doctor.finding import Area, Finding, Looked
from isthmus.errors import IsthmusError


async def look_at_all(areas: Sequence[Area], within: float, ended: Callable[[str], None]) -> list[Looked]:
    """`ended` hears the name of each area that has been looked at."""

    async def one(area: Area) -> Looked:
        began = monotonic()
        found = await _findings(area, within)
        ended(area.name)
        return Looked(area.name, found, monotonic() - began)

    return list(await asyncio.gather(*map(one, areas)))


async def _findings(area: Area, within: float) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(within):
            if inspect.iscoroutinefunction(area.look):
                found: Sequence[Finding] = await area.look()
                return found
            return await in_thread(area.look)  # type: ignore[arg-type]
    except TimeoutError:
        words = f"could not be looked at within {within:g} s"
        return [Finding("time", "problem", words, "try again with a longer `--timeout`")]
    except IsthmusError as error:
        return [Finding("looking", "problem", f"could not be looked at: {error.message}")]
    except Exception as error:  # our own bug: the other areas are worth showing all the same
        words = f"could not be looked at: {type(error).__name__}: {error}"
        return [Finding("looking", "problem", words, "this is a bug of Isthmus: please report it")]


async def in_thread(look: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
    """A thread that nobody waits for in the end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Sequence[Finding]] = loop.create_future()

    def tell(set_it: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set_it(value)

    def work() -> None:
        try:
            found = look()
        except Exception as error:
            told: tuple[Callable[[Any], None], Any] = (done.set_exception, error)
        else:
            told = (done.set_result, found)
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, *told)

    threading.Thread(target=work, daemon=True, name="doctor").start()
    return await done
