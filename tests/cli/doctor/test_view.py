"""How findings look, and what they add up to."""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from isthmus.cli.doctor.finding import Finding, Looked
from isthmus.cli.doctor.view import _wrap, findings_json, show_findings

FOUND = [
    Looked(
        "store", [Finding("store", "ok", "`a.db` is fine"), Finding("disk", "warning", "little room", "free some")], 0.5
    ),
    Looked("port", [Finding("port", "problem", "taken", "use `--port 1`"), Finding("x", "skipped", "not asked")], 0.1),
]


def shown(found: list[Looked], width: int = 80) -> str:
    out = StringIO()
    show_findings(Console(file=out, width=width, highlight=False), found)
    return out.getvalue()


def test_the_sum_comes_last_with_what_to_do() -> None:
    assert shown(FOUND).splitlines() == [
        "store",
        "  ✓ a.db is fine",
        "  ! warning little room",
        "            → free some",
        "port",
        "  ✗ problem taken",
        "            → use --port 1",
        "  – skipped not asked",
        "",
        "1 problem, 1 warning. 1 check is fine. 1 check skipped.",
        "What to do:",
        "  port: use --port 1",
    ]


def test_what_to_do_goes_on_below_its_words_where_the_line_is_full() -> None:
    remedy = "look at the network, at a proxy (`HTTPS_PROXY`), and at `providers.deepseek.base_url`"
    found = [Looked("providers", [Finding("provider", "problem", "no answer", remedy)], 0.1)]
    assert shown(found, 80).splitlines()[-2:] == [
        "  providers: look at the network, at a proxy (HTTPS_PROXY), and at",
        "             providers.deepseek.base_url",
    ]


def test_programs_read_the_same() -> None:
    told = findings_json(FOUND)
    assert told["ok"] is False
    assert told["summary"] == {"ok": 1, "warning": 1, "problem": 1, "skipped": 1}
    assert told["findings"][0] == {
        "area": "store",
        "check": "store",
        "state": "ok",
        "found": "`a.db` is fine",
        "remedy": None,
        "facts": {},
    }
    assert told["seconds"] == {"store": 0.5, "port": 0.1}


@given(st.text(alphabet="ab /`", max_size=200), st.integers(1, 40))
def test_no_word_is_broken_and_none_is_lost(plain: str, width: int) -> None:
    lines = [line.plain for line in _wrap(Text(plain), width)]
    assert "".join(lines) == plain
    assert [word for line in lines for word in line.split()] == plain.split()
    assert all(len(line.rstrip()) <= width or len(line.split()) == 1 for line in lines)
