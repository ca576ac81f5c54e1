"""Those around a run: what it is stopped by keeps its reason."""

from __future__ import annotations

from isthmus.conduct.around import Stopped
from isthmus.errors import UpstreamFailed


def test_a_stop_is_nothing_that_a_client_could_be_told() -> None:
    assert not issubclass(Stopped, UpstreamFailed)
