"""The identity map: both names of a tool lead to it, and no two tools share one."""

from __future__ import annotations

import pytest

from isthmus.bridge.types.tools import ToolIdentity, ToolIdentityMap
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused


def test_two_tools_can_never_share_a_provider_name() -> None:
    first = ToolIdentity("a.b", "function", "a_b", "function")
    ToolIdentityMap((first, first))
    with pytest.raises(RequestRefused, match="a_b") as refused:
        ToolIdentityMap((first, ToolIdentity("a/b", "function", "a_b", "function")))
    assert refused.value.code == BRIDGE_REQUEST_UNSUPPORTED_PARAMETER


def test_a_tool_is_found_by_either_name() -> None:
    plain = ToolIdentity("f", "function", "f", "function")
    boxed = ToolIdentity("f", "function", "box__f", "function", "box")
    identities = ToolIdentityMap((plain, boxed))
    assert list(identities) == [plain, boxed]
    assert len(identities) == 2
    assert identities.by_provider_name("box__f") is boxed
    assert (identities.by_request("f"), identities.by_request("f", "box")) == (plain, boxed)
    assert identities.by_provider_name("F") is None


def test_the_first_of_two_that_were_asked_for_alike_is_meant() -> None:
    first = ToolIdentity("f", "function", "f", "function")
    identities = ToolIdentityMap((first, ToolIdentity("f", "custom", "f_2", "function")))
    assert identities.by_request("f") is first
