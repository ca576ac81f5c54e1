"""The page that lists every key."""

from __future__ import annotations

import msgspec
import pytest

from isthmus.config.reference import config_reference
from isthmus.config.schema import Config, Log, PlanSettings, ProviderConfig, Server, Store, Timeouts

PAGE = config_reference()


@pytest.mark.parametrize("section", [Config, Server, ProviderConfig, Timeouts, Store, PlanSettings, Log])
def test_every_key_is_listed(section: type[msgspec.Struct]) -> None:
    for name in section.__struct_fields__:
        assert f"| `{name}` |" in PAGE or f"{name}]`" in PAGE or f"{name}.NAME]`" in PAGE


def test_a_key_tells_its_type_default_and_meaning() -> None:
    assert "| `port` | an integer from 0 to 65535 | `8484` | TCP port; 0 takes any free one. |" in PAGE
    assert '| `durability` | one of "process", "power" | `"process"` | What a saved response survives' in PAGE
    assert "## `[providers.NAME.timeouts]`" in PAGE
    assert "| `max_body` | a size, such as" in PAGE


def test_a_section_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Config().server.port = 1  # type: ignore[misc]
