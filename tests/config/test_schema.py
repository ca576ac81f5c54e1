"""The structs of the configuration: whole without a word, frozen, silent about secrets wherever they are printed."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from isthmus.config import Problem, schema
from isthmus.config.schema import Config, EndpointConfig, ProviderConfig, Section, Server
from isthmus.values.read import read_struct

every_section = pytest.mark.parametrize(
    "section", [each for each in vars(schema).values() if isinstance(each, type) and issubclass(each, Section)]
)


@every_section
def test_nothing_has_to_be_said_and_every_default_is_of_its_type(section: type[Section]) -> None:
    default = section()
    problems: list[Problem] = []
    assert read_struct(section, _said(msgspec.to_builtins(default)), problems) == default
    assert problems == []


def _said(table: dict[str, Any]) -> dict[str, Any]:
    """What is empty is left out of a file."""
    return {key: _said(value) if isinstance(value, dict) else value for key, value in table.items() if value != ""}


@every_section
def test_nobody_changes_a_configuration(section: type[Section]) -> None:
    if section.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(section(), section.__struct_fields__[0], None)


def test_no_way_of_printing_shows_a_secret() -> None:
    provider = ProviderConfig(
        api_key="SECRET-1",
        api_keys=["SECRET-2"],
        headers={"Authorization": "SECRET-3"},
        query={"code": "SECRET-4"},
        endpoints=[EndpointConfig(api_key="SECRET-5", base_url="http://u:SECRET-6@h")],
        api_key_file="/run/secrets/openai",
    )
    config = Config(providers={"x": provider}, server=Server(api_keys=["SECRET-7"], admin_key="SECRET-8"))
    out = io.StringIO()
    Console(file=out, width=200).print(config)
    for shown in (repr(config), str(config), f"{provider!r}", out.getvalue()):
        assert "SECRET" not in shown
    assert "/run/secrets/openai" in repr(provider)
