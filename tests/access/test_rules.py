"""Which limits a request counts against."""

from __future__ import annotations

import pytest

from isthmus.access.rules import Rules, Team
from isthmus.ports.admission import Payer, Wanted
from isthmus.ports.keys import Rates

EACH = Rates(requests_per_minute=60, tokens_per_minute=1000)
RULES = Rules(
    EACH,
    {"search": Team(Rates(concurrent_requests=4)), "idle": Team()},
    {"deepseek/*": Rates(requests_per_minute=9), "fast": Rates(concurrent_streams=2), "gpt-?": Rates()},
)
ASKED = Wanted("fast", "deepseek", "deepseek-chat")


def names(payer: Payer, wanted: Wanted = ASKED, rules: Rules = RULES) -> dict[str, Rates]:
    return {rule.name: rule.rates for rule in rules.of(payer, wanted)}


def test_a_key_has_its_own_limits_and_where_it_has_none_those_of_each() -> None:
    own = Payer("key_a", "key_a", rates=Rates(requests_per_minute=5, concurrent_requests=2))
    assert names(own)["key:key_a"] == Rates(5, 1000, 2, 0)
    assert names(Payer("local"))["key:local"] == EACH


def test_the_team_and_every_pattern_that_fits_count_as_well() -> None:
    assert set(names(Payer("team:search", "key_a", "search"))) == {
        *("key:key_a", "team:search", "model:deepseek/*", "model:fast")
    }


@pytest.mark.parametrize(
    ("payer", "wanted"),
    [
        (Payer("team:idle", "key_a", "idle"), Wanted("other", "zhipu", "glm-5")),
        (Payer("team:unknown", "key_a", "unknown"), Wanted("gpt-5", "openai", "gpt-5")),
        (Payer("local"), Wanted("")),
    ],
)
def test_what_limits_nothing_is_no_rule(payer: Payer, wanted: Wanted) -> None:
    assert names(payer, wanted, Rules(teams=RULES.teams, models=RULES.models)) == {}


def test_whose_it_is_is_told_in_words() -> None:
    payer = Payer("team:search", "key_a", "search")
    assert [rule.whose for rule in RULES.of(payer, ASKED)] == [
        *("key `key_a`", "team `search`", "all callers of `deepseek/*`", "all callers of `fast`")
    ]
