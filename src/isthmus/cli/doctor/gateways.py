"""A gateway at an address: does it answer, is it ours, does it take this key, does it serve that model?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from isthmus.addresses import is_local
from isthmus.cli.doctor.finding import Finding, State
from isthmus.cli.elsewhere import (
    IN_TROUBLE,
    KEY_MISSING,
    KEY_REFUSED,
    NOT_OURS,
    UNREACHABLE,
    ShownKey,
    gateway_base,
    look_at_gateway,
    unencrypted,
)
from isthmus.errors import ConfigError, IsthmusError


async def look_elsewhere(url: str, key: ShownKey, within: float) -> Sequence[Finding]:
    """The gateway that the user named."""
    try:
        base = gateway_base(url)
    except ConfigError as error:
        return [Finding("gateway", "problem", error.message)]
    found = [await reach("gateway", base, None, key, within)]
    if found[0].state == "ok":
        found.append(await readiness(base, key.value, within))
    if words := unencrypted(base, key):
        found.append(Finding("encryption", "warning", words, "", {"address": base}))
    return found


async def reach(
    check: str, base: str, model: str | None, key: ShownKey, within: float, *, by: str = "", own: str | None = None
) -> Finding:
    """Whether what is set up to ask it could. `by`: who, as the beginning of the words; `own`: where the gateway of
    this configuration listens."""
    facts: dict[str, Any] = {"address": base, "model": model, "key": _source(key)}
    try:
        found = await look_at_gateway(base, model, key, within)
    except ConfigError as error:
        told = error.message.partition("; is it running there")[0]
        return Finding(check, "problem", f"{by}{told}", _remedy(error, base, own), {**facts, "code": error.code})
    count = len(found.listing["models"])
    version = (await ask_welcome(base, key.value, within) or {}).get("version")
    which = f" (Isthmus {version})" if version else ""
    served = f"serves `{model}`" if model else f"serves {count} models"
    shown = f", with {_source(key)}" if key.value else ""
    words = f"{by}the gateway at `{base}`{which} answers and {served}{shown}"
    return Finding(check, "ok", words, "", {**facts, "models": count, "version": version})


async def readiness(base: str, key: str, within: float) -> Finding:
    """What it says of its own parts."""
    told = await _get(base, "/ready", key, within)
    if told is None:
        return Finding("ready", "warning", f"`{base}/ready` tells nothing", "look at the log of the gateway")
    if _wants_key(told):
        return Finding("ready", "skipped", "how it is, it tells only who shows a key", "", {"address": base})
    troubles = _troubles(told)
    facts = {"address": base, "status": told.get("status"), "troubles": troubles}
    if told.get("status") == "ready" and not troubles:
        return Finding("ready", "ok", "it is ready", "", facts)
    words = "; ".join(f"{part}: {word}" for part, word in troubles.items()) or "it says no more"
    state: State = "problem" if told.get("status") == "not ready" else "warning"
    remedy = f"`curl {base}/ready` shows all of it"
    return Finding("ready", state, f"it is {told.get('status')}: {words}", remedy, facts)


async def ask_welcome(base: str, key: str, within: float) -> Mapping[str, Any] | None:
    """What an Isthmus says of itself, at least its version; `None`: it is none, or nobody answers."""
    told = await _get(base, "/", key, within)
    if told is not None and _wants_key(told):
        health = await _get(base, "/health", "", within)  # which needs none
        return health if health is not None and isinstance(health.get("version"), str) else None
    return told if told is not None and told.get("name") == "isthmus" else None


def _wants_key(told: Mapping[str, Any]) -> bool:
    error = told.get("error")
    return isinstance(error, dict) and error.get("code") in ("missing_api_key", "invalid_api_key")


async def _get(base: str, path: str, key: str, within: float) -> Mapping[str, Any] | None:
    import msgspec

    from isthmus.scrub import Secret
    from isthmus.upstream.endpoint import Endpoint, Patience
    from isthmus.upstream.wire import Wire

    headers = {"authorization": f"Bearer {key}"} if key else {}
    endpoint = Endpoint("gateway", base, headers, patience=Patience(within, within, within), called="the gateway")
    wire = Wire(endpoint, (Secret(key, "key"),))
    try:
        incoming = await wire.send(None, method="GET", url=f"{base}{path}")
        try:
            told = msgspec.json.decode(await incoming.whole())
        finally:
            incoming.close()
    except (IsthmusError, ValueError, RecursionError):
        return None
    finally:
        await wire.aclose()
    return told if isinstance(told, dict) else None


def _troubles(told: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in ("gateway", "store"):
        if told.get(part) not in ("ok", None):
            found[part] = str(told[part])
    for part in ("providers", "mcp", "webhooks"):
        entries = told.get(part)
        for name, word in entries.items() if isinstance(entries, dict) else ():
            if word != "ok":
                found[f"{part}.{name}"] = str(word)
    return found


def _remedy(error: ConfigError, base: str, own: str | None) -> str:
    match error.code:
        case c if c == UNREACHABLE and is_local(base):
            port = "" if base == own else f" --port {urlsplit(base).port or 80}"
            return f"start it with `isthmus serve{port}`"
        case c if c == UNREACHABLE:
            return "have it started there, or correct the address; a proxy or a firewall may stand between"
        case c if c in (KEY_MISSING, KEY_REFUSED):
            return "get a key from whoever runs it (`isthmus keys create NAME`), and set up with that one"
        case c if c == NOT_OURS:
            return "correct the address"
        case c if c == IN_TROUBLE:
            return "look at the log of that gateway"
    return "name another model"


def _source(key: ShownKey) -> str | None:
    if not key.value:
        return None
    return f"the key in `${key.variable}`" if key.variable else "the key that it has"
