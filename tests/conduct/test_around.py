"""Those around a run: what it is stopped by keeps its reason."""

from __future__ import annotations

from isthmus.conduct.around import Refused, Stopped
from isthmus.errors import UpstreamFailed


def test_a_refusal_keeps_the_failure_that_it_tells() -> None:
    failure = UpstreamFailed("it is full", code="server_is_overloaded", status=503)
    refused = Refused(failure)
    assert refused.failure is failure
    assert str(refused) == str(failure)


def test_a_stop_is_nothing_that_a_client_could_be_told() -> None:
    assert not issubclass(Stopped, UpstreamFailed)
