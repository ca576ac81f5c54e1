"""Coroutine tests run in a loop of their own, without a plugin. Property tests repeat the same examples in every run;
`HYPOTHESIS_PROFILE=explore` looks for new ones.
"""

from __future__ import annotations

import asyncio
import inspect
import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure of the code.
settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", max_examples=1000, deadline=None)
# Whatever else runs on this machine is none of a test's business, unless it looks for it.
os.environ["ISTHMUS_DISCOVERY_LOCAL"] = "false"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
