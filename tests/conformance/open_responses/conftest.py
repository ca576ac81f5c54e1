"""One gateway for each model behind it and each setting, for all questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from specified import BEHIND, SETTINGS, Specified, specified


@pytest.fixture(scope="session")
def _gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Specified]]:
    with ExitStack() as stack:
        yield {
            (behind, setting): stack.enter_context(specified(behind, setting, tmp_path_factory.mktemp(behind)))
            for behind in BEHIND
            for setting in SETTINGS
        }


@pytest.fixture(params=[(behind, setting) for behind in BEHIND for setting in SETTINGS], ids=" ".join)
def asked(request: pytest.FixtureRequest, _gateways: dict[tuple[str, str], Specified]) -> Specified:
    return _gateways[request.param]
