"""What counts when a configuration is read again, setting by setting."""

from __future__ import annotations

import msgspec
import pytest

from isthmus.config.reload import ADDRESS, FIELDS, SECTIONS, plan_reload
from isthmus.config.schema import Config, Models, ProviderConfig, Server, Store, Trace


def test_aliases_providers_keys_and_limits_count_at_once() -> None:
    before = Config()
    after = Config(
        server=Server(api_keys=["sk-new"], max_concurrent=3),
        models=Models(aliases={"a": "b/c"}),
        providers={"main": ProviderConfig(api_key="sk-other")},
        store=Store(max_chain=3),
    )
    plan = plan_reload(before, after)
    assert plan.config == after
    assert plan.waiting == ()
    assert not plan.moves


def test_what_needs_a_new_process_keeps_its_old_value_and_is_named() -> None:
    before = Config(store=Store(url="sqlite:a.db"))
    after = Config(server=Server(port=1, grace=7), store=Store(url="sqlite:b.db", max_chain=3), trace=Trace(max_age=5))
    plan = plan_reload(before, after)
    assert plan.waiting == ("server.port", "store.url", "trace.max_age")
    assert plan.moves
    assert plan.config.server == Server(grace=7)
    assert plan.config.store == Store(url="sqlite:a.db", max_chain=3)
    assert plan.config.trace == before.trace
    assert plan_reload(plan.config, after).waiting == plan.waiting, "it is told again until it is done"


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_every_setting_that_is_named_exists(name: str) -> None:
    section, _, key = name.partition(".")
    assert key in getattr(Config(), section).__struct_fields__
    assert section not in SECTIONS, "all of that section waits already"


def test_every_section_that_is_named_exists() -> None:
    assert all(isinstance(getattr(Config(), section), msgspec.Struct) for section in SECTIONS)
    assert ADDRESS <= FIELDS
