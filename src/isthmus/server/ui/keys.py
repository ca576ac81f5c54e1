"""Keys on the page: operators see all of them, make, rotate and revoke them; anybody else sees what their own opens.

A key that was just made stands on the page that answers the form, and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from isthmus.access.keeper import Keeper, Made
from isthmus.access.told import tell_key
from isthmus.access.wishes import RATES, Wishes, read_wishes
from isthmus.errors import RequestRefused
from isthmus.ports.keys import ENDPOINTS
from isthmus.server.deeds import keeper_for

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

_DAY: Final = 86_400
_SHOWN: Final = 500
"""Keys of one page; `isthmus keys list` has all of them."""
_LISTS: Final = ("models", "endpoints", "tools")
_NUMBERS: Final = (*RATES, "daily_budget", "monthly_budget")


async def keys_view(look: Look, made: Made | None = None, problem: str = "") -> dict[str, Any]:
    """The values of the template; `made`: what the form has just made."""
    now, visitor = time.time(), look.visitor
    keys = await look.gateway.store.keys()
    if not visitor.operates:
        own = next((key for key in keys if key.id == visitor.caller.key), None)
        return {"own": None if own is None else tell_key(own, now), "keys": None}
    newest = [tell_key(key, now) for key in reversed(keys)]
    listed = sorted(newest, key=lambda told: told["status"] != "active")
    return {
        "own": None,
        "keys": listed[:_SHOWN],
        "left": max(len(listed) - _SHOWN, 0),
        "made": None if made is None else {**tell_key(made.key, now), "key": made.secret},
        "problem": problem,
        "endpoints": ENDPOINTS,
        "origin": look.origin,
        "needed": look.options.keys.needed,
    }


async def carry_out(look: Look, given: Mapping[str, str]) -> Made | None:
    """What the form asks for. Refused to whoever is no operator."""
    if not look.visitor.operates:
        raise RequestRefused("only an operator looks after keys", code="operator_only")
    keeper = keeper_for(look.scope, look.gateway, look.options, look.visitor.caller.key)
    made = await _do(keeper, given)
    if look.options.keys.book is not None:
        await look.options.keys.book.look()
    return made


async def _do(keeper: Keeper, given: Mapping[str, str]) -> Made | None:
    id = given.get("id", "")
    match given.get("do"):
        case "create":
            return await keeper.create(_wishes(given))
        case "rotate":
            return await keeper.rotate(id, _number(given, "grace_hours") * 3600)
        case "revoke":
            await keeper.revoke(id)
            return None
        case other:
            raise RequestRefused(f"nothing is known of `{other}`", code="invalid_value", param="do")


def _wishes(given: Mapping[str, str]) -> Wishes:
    """What was left empty was not wished for."""
    fields: dict[str, Any] = {"name": given.get("name", ""), "admin": given.get("admin") == "on"}
    if team := given.get("team", "").strip():
        fields["team"] = team
    for name in _LISTS:
        if words := [word.strip() for word in given.get(name, "").split(",") if word.strip()]:
            fields[name] = [] if name == "tools" and words == ["none"] else words
    for name in _NUMBERS:
        if given.get(name, "").strip():
            amount = _number(given, name)
            fields[name] = int(amount) if name in RATES and amount.is_integer() else amount
    if given.get("days", "").strip():
        fields["expires_in"] = _number(given, "days") * _DAY
    return read_wishes(fields)


def _number(given: Mapping[str, str], name: str) -> float:
    try:
        return float(given.get(name, "").strip() or 0)
    except ValueError as error:
        raise RequestRefused(f"`{name}` must be a number", code="invalid_value", param=name) from error
