"""`python -m bench.gateways.page`: `docs/benchmarks.md` and its pictures, from the figures in `bench/results/`.

In: the documents of the last runs. Out: the budgets with what was measured beside them, every workload at every
subject, and what could not be run, with its reason. Nothing on the page is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.gateways.plot import Bar, bars
from bench.gateways.results import PLACE, read
from bench.gateways.streams import HELD, PACE
from bench.robustness.report import table

Told = dict[str, Any]
DOCS: Final = Path(__file__).parents[2] / "docs"
QUIET: Final = 0.05
"""Share of the machine that others may have used in a run that is to be trusted."""
CPU_BUDGETS: Final = {
    "small, whole": 300,
    "200 deltas, coalesced": 2200,
    "200 deltas, 2 ms apart": 9000,
    "Codex request 38 kB, whole": 900,
}
STREAMS: Final = 1000
START: Final = 0.6
IDLE: Final = 70e6
STREAM: Final = 50e3
BUSY: Final = 0.9
"""Of its core: a load that takes more measures itself."""
_MISSED: Final = "**missed**"
_PLOTTED: Final = {"small, whole": "small", "200 deltas, 2 ms apart": "apart", "Codex request 38 kB, whole": "codex"}
_COLOURS: Final = {"ours": 0, "gateway": 1, "forwarder": 4, "direct": 4}


def main() -> None:
    for name, text in made().items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def made(place: Path = PLACE) -> dict[str, str]:
    """The page and its pictures, by their paths below `docs/`."""
    from bench.growth import page as growth

    own, peers, grown = (read(name, place) for name in ("own", "peers", "growth"))
    files: dict[str, str] = {}
    lines = [_HEAD]
    told = peers or own
    if told is None:
        return {"benchmarks.md": "\n".join([*lines, "No run has been recorded yet: `make bench`.", ""])}
    lines += ["## The budgets", "", *_budgets(told), ""]
    for title, run in (("Beside others", peers), ("Ours and the floors", own)):
        if run is not None:
            lines += [f"## {title}", "", *_made(run), "", *tables(run), ""]
            if run is told:
                for picture, text in _pictures(run):
                    files[f"images/{picture}"] = text
                    lines += [f"![{_title(text)}](images/{picture})", ""]
    if grown is not None:
        text, pictures = growth.told(grown)
        lines += ["## Growth", "", *_made(grown), "", *text, ""]
        files |= {f"images/{name}": picture for name, picture in pictures.items()}
    files["benchmarks.md"] = "\n".join([*lines, _FOOT])
    return files


_HEAD: Final = """\
# Benchmarks

What a request costs, in CPU time of the gateway's whole process tree, beside floors and other gateways. This page is
made from the files in [`bench/results/`](../bench/results/) by `make bench-page`; none of its figures is typed.

```sh
make bench          # ours and the floors, under ten minutes
make bench-peers    # others too, each pinned in an environment of its own; under twenty minutes
make bench-growth   # cost against size
```
"""
_FOOT: Final = f"""\
## How it is measured

- The gateway has one core to itself, the load and the upstream have the other. The upstream answers from memory in
  Chat Completions; every delta is a write of its own, with no pause (*coalesced*: readers get several at once) or
  2 ms after the one before (each wakes its reader). Sixteen clients ask at once, each on a kept connection.
- CPU time is user and system time of the gateway and of all processes that it started, as the kernel counts it, less
  what it was before, over the number of calls; half a second after the last answer, or longer where a gateway writes
  later, so that what is written behind is counted. Subjects take turns in each round; the middle of all is told.
- Every answer is looked at: its status, its end, and as many words as the upstream said. One of each connection and
  round is parsed and compared with what was said. A subject that answers wrong has no figure but *wrong*.
- *load* is what the load and the upstream themselves took for each call to Isthmus, on their own core. It does not
  count for any gateway. Where deltas come alone, it is as much as a bare forwarder takes: two more sockets in Python.
- Forwarders are asked in Chat Completions with as many bytes, for they translate nothing.
- A stream is *held* where the gap that 99 of 100 do not exceed is at most {HELD:g} times that without a gateway, at one
  word every {PACE} ms, all of them end right, and words come one by one.
  *Newcomers* are 100 clients who come at once meanwhile. What the load and the upstream took of their core stands
  beside: at more than {BUSY:.0%} they would measure themselves.
- A subject that answers nobody for 45 seconds has no figure for that; who does so twice is asked no more. Who is very
  slow has one round instead of several.
- Isthmus runs as it comes: SQLite, traces as metadata. *Nothing kept* is `store: false`, traces off.
- Memory is the resident memory of the tree. A start is the time from the command to the first right answer.
- Others are installed below `.venv-peers`, or where `BENCH_PEERS` says: one that is there already is not fetched again.
- Bifrost is not here: what npm has of it fetches a binary from elsewhere when it is started.

Guarded in every `make test`, without any clock: [speed](reference/speed.md). What many agents need:
[scale](reference/scale.md).
"""


def _made(told: Told) -> list[str]:
    made = told["made"]
    packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items())
    versions = ", ".join(f"{each['name']} {each['version']}" for each in told.get("subjects", []) if each["version"])
    changed = " with changes" if made["changed"] else ""
    minutes = f"{made['seconds'] // 60} min {made['seconds'] % 60} s"
    lines = [
        f"{made['date']}, commit `{made['commit']}`{changed}; {made['cores']} cores, {made['processor']}, "
        f"{made['system']}, Python {made['python']} ({packages}).",
        f"It took {minutes}; others used {made['others']:.0%} of the machine meanwhile.",
    ]
    if versions:
        lines.append(f"Versions: {versions}.")
    if made["others"] > QUIET:
        lines += ["", "**Not a quiet machine: read these figures as a trial of the harness, not as results.**"]
    if made["note"]:
        lines += ["", made["note"]]
    lines += [f"Not in this run: {key}: {why}" for key, why in told.get("absent", {}).items()]
    return lines


# ── the budgets ────────────────────────────────────────────────────────────────────────────────────


def _budgets(told: Told) -> list[str]:
    """Ours beside everybody's, all of them from one run."""
    others = [each for each in told["subjects"] if each["key"] not in ("isthmus", "direct")]
    rows = []
    for name, budget in CPU_BUDGETS.items():
        row = told["cpu"].get(name, {})
        mine = row.get("isthmus", {}).get("us")
        cells = [_cell(row.get(each["key"]), " µs") for each in others]
        rows.append((name, *_judged(mine, budget, lambda us: f"{us:,.0f} µs"), *cells))
    held = told["held"].get("isthmus", {})
    most = max((int(count) for count, figures in held.items() if figures["held"]), default=0)
    asked = max(map(int, held), default=0)
    verdict = "kept" if most >= STREAMS else _MISSED if asked >= min(STREAMS, 500) else "not asked"
    cells = [_held_cell(told["held"].get(each["key"])) for each in others]
    mine = f"{most:,}" if most else _held_cell(held)
    rows.append(("streams held by one process", mine, f"≥ {STREAMS:,}", verdict, *cells))
    start = told["start"].get("isthmus", {})
    for name, key, budget, words in (
        ("cold start", "answered", START, lambda value: f"{value:.2f} s"),
        ("memory at rest", "memory", IDLE, _bytes),
    ):
        cells = [_plain(told["start"].get(each["key"], {}).get(key), words) for each in others]
        rows.append((name, *_judged(start.get(key), budget, words), *cells))
    rows.append(
        (
            "memory for each open stream",
            *_judged(_per_stream(held), STREAM, _bytes),
            *(_plain(_per_stream(told["held"].get(each["key"], {})), _bytes) for each in others),
        )
    )
    lines = _table(("", "Isthmus", "budget", "", *(each["name"] for each in others)), rows)
    missed = [row[0] for row in rows if row[3] == _MISSED]
    return [*lines, "", *_profile(told, missed)]


def _profile(told: Told, missed: list[str]) -> list[str]:
    """Where the time of a budgeted request goes: of those that miss theirs first of all."""
    found = told.get("profile", {})
    if not found:
        return []
    rows = [
        (
            f"{name} ({_MISSED})" if name in missed else name,
            ", ".join(f"{room} {share:.0%}" for room, share in parts.items() if share >= 0.02),
        )
        for name, parts in sorted(found.items(), key=lambda each: each[0] not in missed)
    ]
    return [
        f"Missed: {', '.join(missed)}." if missed else "All budgets are kept.",
        "Where the time of the loop goes, by the interpreter's profiler, which makes calls dearer than they are:",
        "",
        *table(("", "rooms and libraries"), rows),
    ]


def _judged(value: float | None, budget: float, words: Any) -> tuple[str, str, str]:
    if value is None:
        return "–", f"≤ {words(budget)}", "not asked"
    return words(value), f"≤ {words(budget)}", "kept" if value <= budget else _MISSED


def _held_cell(held: Told | None) -> str:
    if not held:
        return "–"
    most = max((int(count) for count, figures in held.items() if figures["held"]), default=0)
    return f"{most:,}" if most else f"< {min(map(int, held)):,}"


def _per_stream(held: Told) -> float | None:
    """Of the largest number that was tried and came to its end."""
    found = [figures["memory"] for figures in held.values() if figures.get("memory")]
    return found[-1] if found else None


# ── everything ─────────────────────────────────────────────────────────────────────────────────────


def tables(told: Told) -> list[str]:
    """Every figure of a run."""
    subjects = [each for each in told["subjects"] if each["key"] != "direct"]
    head = ("CPU µs for each call", *(each["name"] for each in subjects), "load")
    rows, reasons = [], []
    for name, row in told["cpu"].items():
        rows.append((name, *(_cell(row.get(each["key"])) for each in subjects), _load(row)))
        for each in subjects:
            figures = row.get(each["key"], {})
            if "wrong" in figures:
                reasons.append(f"- {each['name']}, {name}: wrong: {_short(figures['wrong'])}")
    nots: dict[tuple[str, str], list[str]] = {}
    for name, row in told["cpu"].items():
        for each in subjects:
            if "not" in row.get(each["key"], {}):
                nots.setdefault((each["name"], row[each["key"]]["not"]), []).append(name)
    reasons += [f"- {who}: {', '.join(names)}: {why}" for (who, why), names in nots.items()]
    reasons = ["Where there is no figure:", "", *reasons, ""] if reasons else []
    return [*_table(head, rows), "", *reasons, *_streams(told), "", *_costs(told)]


def _streams(told: Told) -> list[str]:
    rows = []
    for each in told["subjects"]:
        first, held = told["first"].get(each["key"]), told["held"].get(each["key"], {})
        if first is None:
            continue
        if "wrong" in first:
            rows.append((each["name"], "wrong", *[""] * 3, _holds(held)))
            continue
        added = "" if each["key"] == "direct" else f"{first['added_p50']:+.2f}"
        rows.append(
            (
                each["name"],
                f"{first['first_p50']:.2f}",
                added,
                f"{first['gap_p50']:.2f}",
                f"{first['gap_p99']:.2f}",
                _holds(held),
            )
        )
    lines = _table(("streams, ms", "first word p50", "added", "gap p50", "gap p99", "held"), rows)
    rows, wrongs = [], []
    for each in told["subjects"]:
        for count, figures in told["held"].get(each["key"], {}).items():
            if "wrong" in figures:
                rows.append((each["name"], f"{int(count):,}", "wrong", *[""] * 6))
                wrongs.append(f"- {each['name']}, {int(count):,} streams: {_short(figures['wrong'])}")
                continue
            new = figures["newcomers"]
            rows.append(
                (
                    each["name"],
                    f"{int(count):,}",
                    f"{figures['gap_p50']:.1f}, {figures['gap_p99']:.1f} ms",
                    f"{figures['completed']:,}",
                    "yes" if figures["held"] else "no",
                    _bytes(figures["memory"]) if figures["memory"] else "",
                    f"{figures['core']:.0%}" if figures["core"] else "",
                    f"{figures.get('load', 0):.0%}" + (" (at its limit)" if figures.get("load", 0) > BUSY else ""),
                    f"{new['p50']:.0f}, {new['p99']:.0f} ms" + (f", {new['wrong']} wrong" if new["wrong"] else ""),
                )
            )
    head = (
        "",
        "streams at once",
        "gap p50, p99",
        "right to their end",
        "held",
        "memory each",
        "of its core",
        "load, of its",
        "newcomers p50, p99",
    )
    return [*lines, "", *_table(head, rows), *(["", *wrongs] if wrongs else [])]


def _costs(told: Told) -> list[str]:
    rows, wrongs = [], []
    for each in told["subjects"]:
        start, memory = told["start"].get(each["key"]), told["memory"].get(each["key"])
        if start is None:
            continue
        found = [words for figures in (start, memory or {}) if (words := figures.get("wrong"))]
        wrongs += [f"- {each['name']}: {_short(words if isinstance(words, str) else words[0])}" for words in found]
        began, grown = ("", "", ""), ("", "", "")
        if "answered" in start:
            began = (f"{start['answered']:.2f} s", f"{start['cpu']:.2f} s", _bytes(start["memory"]))
        if memory and "before" in memory:
            grown = (_bytes(memory["before"]), f"{memory['requests']:,}", _bytes(memory["after"]))
        rows.append((each["name"], *began, *grown))
    head = ("", "start", "CPU until then", "memory at rest", "warm", "requests", "memory after them")
    return [*_table(head, rows), *(["", *wrongs] if wrongs else [])]


def _cell(figures: Told | None, unit: str = "") -> str:
    if figures is None or "not" in figures:
        return "–"
    return "wrong" if "wrong" in figures else f"{figures['us']:,.0f}{unit}"


def _load(row: Told) -> str:
    found = [each["load_us"] + each["upstream_us"] for key, each in row.items() if key == "isthmus" and "us" in each]
    return f"{found[0]:,.0f}" if found else ""


def _holds(held: Told) -> str:
    return _held_cell(held) if held else ""


def _plain(value: float | None, words: Any) -> str:
    return words(value) if value else "–"


def _bytes(value: float) -> str:
    return f"{value / 1e6:.1f} MB" if value >= 1e6 else f"{value / 1e3:.0f} kB"


def _short(words: str) -> str:
    return " ".join(words.replace("|", "/").split())[:160]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = table(head, rows)
    lines[1] = "|---|" + "--:|" * (len(head) - 1)
    return lines


def _pictures(told: Told) -> Iterator[tuple[str, str]]:
    for name, short in _PLOTTED.items():
        row = told["cpu"].get(name, {})
        given = []
        for each in told["subjects"]:
            figures = row.get(each["key"], {"not": ""})
            if "not" in figures:
                continue
            value = figures.get("us")
            given.append(Bar(each["name"], value, "" if value else "answers wrong", _COLOURS[each["kind"]]))
        given.sort(key=lambda bar: bar.value or 1e12)
        yield f"bench-{short}.svg", bars(f"{name}: CPU for each call", "µs", given, CPU_BUDGETS.get(name))


def _title(picture: str) -> str:
    return picture.partition('aria-label="')[2].partition('"')[0]


if __name__ == "__main__":
    main()
