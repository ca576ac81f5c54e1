"""Names lead only where somebody may be called, and an address in place of a name is looked at too."""

from __future__ import annotations

import socket

import pytest

from isthmus.upstream.guard import Forbidden, Guard, family_of, is_address


async def both(host: str, port: int) -> list[str]:
    return ["127.0.0.2", "::1", "127.0.0.1"]


async def test_a_name_leads_to_what_is_allowed_of_its_addresses() -> None:
    assert await Guard(lambda address: ":" not in address, both).find("here", 80) == ["127.0.0.2", "127.0.0.1"]
    assert await Guard(None, both).find("here", 80) == ["127.0.0.2", "::1", "127.0.0.1"]


async def test_a_name_that_leads_nowhere_else_is_refused_in_words() -> None:
    with pytest.raises(Forbidden, match=r"`here` leads to 3 addresses, none of which may be called"):
        await Guard(lambda address: False, both).find("here", 80)
    with pytest.raises(Forbidden, match=r"`localhost` leads to .* address(es)?, none of which may be called"):
        await Guard(lambda address: False).find("localhost", 80)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1%eth0"])
async def test_an_address_in_place_of_a_name_asks_nobody_but_the_guard(address: str) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        raise AssertionError("nothing is to be looked up")

    assert await Guard(lambda _: True, lookup).find(address, 80) == [address]
    with pytest.raises(Forbidden, match=r"may not be called"):
        await Guard(lambda _: False, lookup).find(address, 80)


@pytest.mark.parametrize("name", ["localhost", "127.1", "0x7f.0.0.1", "2130706433", "", "a\0b", "1.2.3.4.5"])
def test_other_spellings_are_names(name: str) -> None:
    assert not is_address(name)


def test_addresses_of_both_kinds_are_told_apart() -> None:
    assert (family_of("1.2.3.4"), family_of("::ffff:1.2.3.4")) == (socket.AF_INET, socket.AF_INET6)
