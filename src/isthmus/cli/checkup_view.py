"""What was found out about providers, for people and for programs.

In: `Checkup`s. Out: a line for each with a sign and a word, the remedy below it; or JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.text import Text

from isthmus.cli.layout import show_table
from isthmus.cli.terminal import WIDE, lined_table, plural, words
from isthmus.config.keys import WANTING
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.upstream.knock import Verdict
    from isthmus.wiring_checkup import Checkup

SIGNS: Final[dict[Verdict, tuple[str, str]]] = {
    "ready": ("✓ ready", "green"),
    "unproven": ("~ reachable", "yellow"),
    "no_key": ("✗ no key", "red"),
    "key_withheld": ("✗ key withheld", "red"),
    "key_refused": ("✗ key refused", "red"),
    "spent": ("✗ no credit", "red"),
    "limited": ("✗ rate limited", "red"),
    "not_found": ("✗ not found", "red"),
    "unreachable": ("✗ unreachable", "red"),
    "timeout": ("✗ no answer", "red"),
    "failing": ("✗ failing", "red"),
    "strange": ("✗ strange", "red"),
    "not_configured": ("✗ not configured", "red"),
}
_NAMES: Final = 20
"""Models that JSON names; all are counted."""


def show_checkups(console: Console, found: Sequence[Checkup]) -> None:
    wide = console.width >= WIDE
    table = lined_table("provider", "verdict", "found", *(("time",) if wide else ()))
    table.columns[1].no_wrap = True
    for each in found:
        sign, style = SIGNS[each.verdict]
        table.add_row(
            Text(each.provider, "bold"), Text(sign, style), _found(each), *((_seconds(each),) if wide else ())
        )
    show_table(console, table, indent=0)
    sound = sum(each.sound for each in found)
    console.print()
    console.print(Text(f"{sound} of {plural(len(found), 'provider')} can be used.", "dim"))


def checkup_json(found: Checkup) -> JsonObject:
    listed: JsonObject = {}
    if found.models is not None:
        listed = {"count": len(found.models), "first": list(found.models[:_NAMES])}
    return {
        "provider": found.provider,
        "ok": found.sound,
        "verdict": found.verdict,
        "found": found.told,
        "remedy": found.remedy or None,
        "address": found.address or None,
        "credential": found.credential or None,
        "models": listed or None,
        "seconds": round(found.seconds, 3),
        "by": found.by,
        "paid": found.paid,
    }


def _found(each: Checkup) -> Group:
    lines = [words(each.told)]
    if each.remedy:
        lines.append(words(f"→ {each.remedy}"))
    if each.address:
        sent = f"; {_sent(each.credential)}" if each.sound and each.by != "connection" else ""
        lines.append(words(f"{each.address}{sent}", "dim"))
    return Group(*lines)


def _sent(credential: str) -> str:
    """Where it works without a key, nobody has to set one."""
    return "it wants no key" if credential.startswith(WANTING) else f"it was sent {credential}"


def _seconds(each: Checkup) -> Text:
    return Text(f"{each.seconds:.2f} s" if each.by != "nothing" else "–", "dim")
