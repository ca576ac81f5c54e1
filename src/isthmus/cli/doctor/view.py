"""What was found, for people and for programs: area by area, what to do below each finding, and the sum of it last."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from isthmus import __version__
from isthmus.cli.doctor.finding import Finding, Looked, State
from isthmus.cli.terminal import plural, words
from isthmus.protocol.json import JsonObject

SHAPE: Final = 1
"""Of the JSON: it grows with what is added, and is another only where something is taken away or changes its sense."""
_NARROWEST: Final = 20
SIGNS: Final[Mapping[State, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("! warning", "yellow"),
    "problem": ("✗ problem", "bold red"),
    "skipped": ("– skipped", "dim"),
}


def show_findings(console: Console, found: Sequence[Looked]) -> None:
    for looked in found:
        console.print(Text(looked.area, "bold"))
        for finding in looked.findings:
            _show(console, finding)
    console.print()
    console.print(_summary(found), soft_wrap=True)
    _show_steps(console, found)


def findings_json(found: Sequence[Looked]) -> JsonObject:
    counted = count(found)
    return {
        "shape": SHAPE,
        "isthmus": __version__,
        "ok": not counted["problem"],
        "summary": {state: counted[state] for state in SIGNS},
        "findings": [
            {
                "area": looked.area,
                "check": finding.check,
                "state": finding.state,
                "found": finding.told,
                "remedy": finding.remedy or None,
                "facts": dict(finding.facts),
            }
            for looked in found
            for finding in looked.findings
        ],
        "seconds": {looked.area: round(looked.seconds, 3) for looked in found},
    }


def count(found: Sequence[Looked]) -> Counter[State]:
    return Counter(finding.state for looked in found for finding in looked.findings)


def _show(console: Console, finding: Finding) -> None:
    """Sign and word, then what was found; lines that follow begin where it does, and end between words."""
    sign, style = SIGNS[finding.state]
    texts = [words(finding.told), *([words(f"→ {finding.remedy}")] if finding.remedy else [])]
    _show_below(console, Text(f"  {sign} ", style), texts)


def _show_below(console: Console, start: Text, texts: Sequence[Text]) -> None:
    lines = [line for text in texts for line in _wrap(text, max(console.width - len(start), _NARROWEST))]
    for line in lines:
        line.rstrip()
        console.print(Text.assemble(start, line), soft_wrap=True)
        start = Text(" " * len(start))


def _wrap(text: Text, width: int) -> Sequence[Text]:
    """Lines that end between words; a path that is longer than one stays whole, so that it can be copied."""
    breaks, column = list[int](), 0
    for word in re.finditer(r"\S+\s*", text.plain):
        if column and column + len(word[0].rstrip()) > width:
            breaks.append(word.start())
            column = 0
        column += len(word[0])
    return list(text.divide(breaks))


def _summary(found: Sequence[Looked]) -> Text:
    counted = count(found)
    if not counted["problem"]:
        first = Text.assemble(("Nothing is wrong", "green"))
        first.append(f", {plural(counted['warning'], 'warning')}." if counted["warning"] else ".")
    else:
        first = Text.assemble((plural(counted["problem"], "problem"), "bold red"))
        first.append(f", {plural(counted['warning'], 'warning')}." if counted["warning"] else ".")
    skipped = f" {plural(counted['skipped'], 'check')} skipped." if counted["skipped"] else ""
    fine = "1 check is fine" if counted["ok"] == 1 else f"{counted['ok']} checks are fine"
    first.append(f" {fine}.{skipped}", "dim")
    return first


def _show_steps(console: Console, found: Sequence[Looked]) -> None:
    """What has to be done, once more and all of it together."""
    steps = [
        (looked.area, finding.remedy or finding.told)
        for looked in found
        for finding in looked.findings
        if finding.state == "problem"
    ]
    if steps:
        console.print("What to do:")
    for area, step in steps:
        _show_below(console, Text(f"  {area}: "), [words(step)])
