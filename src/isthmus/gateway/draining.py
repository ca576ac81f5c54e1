"""The end of all runs: they may finish; those that do not are ended, each with its terminal event; then cut off."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from isthmus.gateway.runs import Runs
from isthmus.log import tell

log = logging.getLogger("isthmus.gateway")

_SAVING: Final = 5.0
"""Seconds that those who were cut off have to save what there was."""


async def drain_runs(runs: Runs, grace: float, last_words: float) -> None:
    """Let them finish; after `grace` seconds end the rest. Clients have `last_words` seconds to take that."""
    try:
        async with asyncio.timeout(grace):
            await runs.none()
    except TimeoutError:
        tell(log, "warning", "gateway.drain.grace_over", running=len(runs))
        runs.stop_all("shutdown")
        await _let_go(runs, last_words)


async def _let_go(runs: Runs, last_words: float) -> None:
    """Every run was stopped. A client that does not read cannot be told: it is cut off."""
    try:
        async with asyncio.timeout(last_words):
            await runs.none()
    except TimeoutError:
        tell(log, "warning", "gateway.drain.abandoned", running=len(runs))
        runs.abandon()
        try:
            async with asyncio.timeout(_SAVING):
                await runs.none()
        except TimeoutError:
            tell(log, "error", "gateway.drain.stuck", running=len(runs))
