"""What a gateway tells at `/metrics`, read by Prometheus' own parser.

numbers = scrape(talk); numbers["isthmus_requests_total", {"door": "chat"}]   # the sum of all that match
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from talking import Talk
from waiting import until

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}
Labels = Mapping[str, str]


class Numbers:
    def __init__(self, text: str) -> None:
        families: Any = text_string_to_metric_families(text)
        self.samples = [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]

    def __getitem__(self, asked: str | tuple[str, Labels]) -> float:
        name, labels = (asked, {}) if isinstance(asked, str) else asked
        return sum(value for found, told, value in self.samples if found == name and labels.items() <= told.items())

    def labels(self, name: str) -> list[Labels]:
        return [told for found, told, _ in self.samples if found == name]


def scrape(talk: Talk, **headers: str) -> Numbers:
    answer = talk.request("GET", "/metrics", headers={**OPENMETRICS, **headers})
    assert answer.status == 200, answer.body
    return Numbers(answer.body.decode())


def scrape_until(talk: Talk, reached: Callable[[Numbers], bool], what: str = "it was never counted") -> Numbers:
    """An answer is told before it is counted: what was counted is waited for."""

    def look() -> Numbers | None:
        numbers = scrape(talk)
        return numbers if reached(numbers) else None

    found = until(look, what)
    assert found is not None
    return found
