"""A chat body is held to the types of the fields that are relied on; whatever else is in it survives."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec
import pytest

from isthmus.protocol.chat import CreateChatCompletion

FIELDS = sorted(get_type_hints(CreateChatCompletion))


def read(**fields: Any) -> CreateChatCompletion:
    return msgspec.convert({"messages": [], **fields}, CreateChatCompletion)


@pytest.mark.parametrize("field", FIELDS)
def test_a_value_of_the_wrong_type_is_refused(field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        read(**{field: 1.5})


@pytest.mark.parametrize("field", [field for field in FIELDS if field != "messages"])
def test_a_null_is_no_error(field: str) -> None:
    assert read(**{field: None})["messages"] == []


def test_only_messages_must_be_there() -> None:
    with pytest.raises(msgspec.ValidationError, match="messages"):
        msgspec.convert({"model": "m"}, CreateChatCompletion)
    with pytest.raises(msgspec.ValidationError, match="type"):
        read(response_format={"json_schema": {}})
