"""Writes the snapshot of providers and models: what is known of those that nobody keeps a file for.

    python scripts/make_snapshot.py EXPORT [--date DAY] [--prices FILE --prices-name NAME --prices-date DAY]

EXPORT is https://models.dev/api.json as it is (say the day with `--date`), or the same wrapped with its own date:
`{"source": …, "date": …, "licence": …, "providers": {…}}`. FILE is `prices/new_data/v2/data.json` of
pydantic/genai-prices; its prices replace those of the export where it names exactly the same model and its day is
later. The same input gives the same bytes.

The file has one line with where it comes from, one with the index of providers, then one for each provider with its
models, newest first: who names one provider reads the index and that one line.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "src/isthmus/providers/data/snapshot/providers.jsonl"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
READS = {"image": "image", "pdf": "file", "audio": "audio", "video": "video"}

PROTOCOLS = {
    "@ai-sdk/openai-compatible": "chat",
    "@openrouter/ai-sdk-provider": "chat",
    # The package asks `/responses` unless it is told otherwise.
    "@ai-sdk/openai": "responses",
    "@ai-sdk/amazon-bedrock/mantle": "responses",
    "@ai-sdk/anthropic": "messages",
}
"""What the packages speak that work with any address."""

ADDRESSES = {
    # Their packages know the address themselves; checked on 2026-11-16 in the vendors' documentation.
    "anthropic": ("messages", "https://api.anthropic.com/v1"),
    "openai": ("responses", "https://api.openai.com/v1"),
    "aihubmix": ("chat", "https://aihubmix.com/v1"),
    "cerebras": ("chat", "https://api.cerebras.ai/v1"),
    "cloudflare-ai-gateway": (
        "chat",
        "https://gateway.ai.cloudflare.com/v1/${CLOUDFLARE_ACCOUNT_ID}/${CLOUDFLARE_GATEWAY_ID}/compat",
    ),
    "cohere": ("chat", "https://api.cohere.ai/compatibility/v1"),
    "deepinfra": ("chat", "https://api.deepinfra.com/v1/openai"),
    "google": ("chat", "https://generativelanguage.googleapis.com/v1beta/openai"),
    "groq": ("chat", "https://api.groq.com/openai/v1"),
    "merge-gateway": ("chat", "https://api-gateway.merge.dev/v1"),
    "mistral": ("chat", "https://api.mistral.ai/v1"),
    "perplexity": ("chat", "https://api.perplexity.ai"),
    "togetherai": ("chat", "https://api.together.xyz/v1"),
    "v0": ("chat", "https://api.v0.dev/v1"),
    "venice": ("chat", "https://api.venice.ai/api/v1"),
    "vercel": ("chat", "https://ai-gateway.vercel.sh/v1"),
    "xai": ("chat", "https://api.x.ai/v1"),
}
"""Protocol and address of providers whose entry names a package of their own and no address."""

PRICED = {
    "amazon-bedrock": "aws",
    "cloudflare-workers-ai": "cloudflare",
    "fireworks-ai": "fireworks",
    "moonshotai-cn": "moonshotai",
    "minimax-cn": "minimax",
    "novita-ai": "novita",
    "perplexity-agent": "perplexity",
    "togetherai": "together",
    "xai": "x-ai",
}
"""Names of genai-prices where they differ."""

OTHER_WORK = re.compile(r"embed|rerank|whisper|\btts\b", re.IGNORECASE)
"""In the names of models that turn text into numbers, or speech into text: the export says that they write text."""
SMALLEST = 1_000

NO_KEY = ("_ENDPOINT", "_RESOURCE_NAME", "_REGION", "_ACCOUNT", "_ACCOUNT_ID", "_GATEWAY_ID", "_PROJECT", "_LOCATION")
"""Variables that a provider's entry names beside its key: where it is, not who asks."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("--date", default="", help="the day of the export, where it does not say so itself")
    parser.add_argument("--prices", type=Path)
    parser.add_argument("--prices-name", default="genai-prices")
    parser.add_argument("--prices-date", default="", help="the day up to which FILE was kept")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if given.prices and not given.prices_date:
        parser.error("say with --prices-date up to which day the prices were kept")
    prices = json.loads(given.prices.read_text(encoding="utf-8")) if given.prices else None
    export = json.loads(given.export.read_text(encoding="utf-8"))
    try:
        made = make_snapshot(
            export, date=given.date, prices=prices, prices_name=given.prices_name, prices_date=given.prices_date
        )
    except ValueError as error:
        parser.error(str(error))
    given.out.write_bytes(made)
    head = json.loads(made.partition(b"\n")[0])
    print(f"{given.out}: {head['providers']} providers, {head['models']} models, {len(made):,} bytes", file=sys.stderr)
    print(f"left out: {head['left_out'] or 'nothing'}; prices replaced: {head['repriced']}", file=sys.stderr)


def make_snapshot(
    export: Mapping[str, Any],
    *,
    date: str = "",
    prices: list[Any] | None = None,
    prices_name: str = "genai-prices",
    prices_date: str = "",
) -> bytes:
    """The whole file."""
    providers = export.get("providers") if isinstance(export.get("providers"), Mapping) else export
    date = date or str(export.get("date") or "")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise ValueError("the export does not say its day; give it with --date YYYY-MM-DD")
    newer = _prices(prices, prices_date) if prices is not None and prices_date > date else {}
    counts: Counter[str] = Counter()
    index: list[list[Any]] = []
    lines: list[bytes] = []
    start = 0
    for id, given in sorted(providers.items()):
        protocol, address, why = _way(id, given)
        models = list(_models(id, given, protocol, newer, counts))
        if not models:
            counts["providers without a model that writes text"] += 1
            continue
        line = _encode(models)
        keys = _key_variables(given.get("env") or [], address)
        row = [id, given.get("name") or id, given.get("doc") or "", keys, address, protocol, why, len(models)]
        also = _also(given, protocol, address)
        index.append([*row, start, len(line), *([also] if also else [])])
        lines.append(line)
        start += len(line)
        counts["models"] += len(models)
    head = {
        "source": "models.dev",
        "date": date,
        "licence": export.get("licence") or "MIT, Copyright (c) 2025 models.dev",
        "prices": prices_name if newer else "",
        "prices_date": prices_date if newer else "",
        "prices_licence": "MIT, Copyright (c) Pydantic Services Inc. 2025 to present" if newer else "",
        "providers": len(index),
        "models": counts.pop("models", 0),
        "repriced": counts.pop("repriced", 0),
        "left_out": dict(sorted(counts.items())),
    }
    return b"".join([_encode(head), _encode(index), *lines])


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


# ── providers ──────────────────────────────────────────────────────────────────────────────────────


def _way(id: str, given: Mapping[str, Any]) -> tuple[str, str, str]:
    """Protocol, address, and why there is none."""
    npm = given.get("npm") or ""
    address = given.get("api") or ""
    protocol = PROTOCOLS.get(npm, "") if address else ""
    if not protocol and id in ADDRESSES:
        protocol, address = ADDRESSES[id]
    if not protocol:
        return "", address, f"its package `{npm}` speaks a protocol of its own"
    spoken = Counter(_protocol_of(model, protocol) for model in given.get("models", {}).values())
    most = max(spoken.values(), default=0)
    if protocol not in (name for name, count in spoken.items() if count == most):
        protocol = min(name for name, count in spoken.items() if count == most and name)
    # One entry names the whole path.
    return protocol, address.rstrip("/").removesuffix("/chat/completions"), ""


def _protocol_of(model: Mapping[str, Any], otherwise: str) -> str:
    """What one model is spoken to in; empty where that is none of ours."""
    said = model.get("provider") or {}
    if shape := {"responses": "responses", "completions": "chat"}.get(said.get("shape", "")):
        return shape
    return PROTOCOLS.get(said["npm"], "") if "npm" in said else otherwise


def _also(given: Mapping[str, Any], protocol: str, address: str) -> dict[str, str]:
    """What some of its models are spoken to in besides: protocol → address, empty where that is the same. Responses
    are only looked for beside the rest; an address of ours (`ADDRESSES`) is known for one protocol only."""
    if not protocol or not given.get("api"):
        return {}
    found: dict[str, str] = {}
    for _, model in sorted(given.get("models", {}).items()):
        spoken = _protocol_of(model, protocol)
        there = ((model.get("provider") or {}).get("api") or "").rstrip("/")
        elsewhere = there if there != address else ""
        if spoken not in ("", protocol) and not (elsewhere and spoken == "responses"):
            found.setdefault(spoken, elsewhere)
    return found


def _key_variables(variables: list[str], address: str) -> list[str]:
    return [name for name in variables if f"${{{name}}}" not in address and not name.endswith(NO_KEY)]


# ── models ─────────────────────────────────────────────────────────────────────────────────────────


def _models(
    id: str, given: Mapping[str, Any], protocol: str, newer: Mapping[str, Any], counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    models = sorted(given.get("models", {}).items())
    models.sort(key=lambda item: item[1].get("release_date") or "", reverse=True)  # stable: by name within a day
    for name, model in models:
        outputs = model.get("output_kinds") or (model.get("modalities") or {}).get("output") or ["text"]
        if "text" not in outputs or OTHER_WORK.search(name):
            counts["models that write no text"] += 1
        elif 0 < int((model.get("limit") or {}).get("context") or 0) < SMALLEST:
            counts["models without room for a conversation"] += 1
        elif model.get("status") == "deprecated":
            counts["models that their provider has given up"] += 1
        else:
            yield _model(name, model, protocol, newer.get(PRICED.get(id, id), {}), counts)


def _model(
    name: str, model: Mapping[str, Any], protocol: str, newer: Mapping[str, Any], counts: Counter[str]
) -> dict[str, Any]:
    """What is known, and nothing that is not: a key that is missing is not known (see `providers.snapshot.Row`)."""
    row: dict[str, Any] = {"id": name}
    if (model.get("name") or name) != name:
        row["title"] = model["name"]
    limit = model.get("limit") or {}
    context, output = int(limit.get("context") or 0), int(limit.get("output") or 0)
    if context:
        row["context"] = context
    if output and (not context or output <= context):  # more than all there is room for is no limit
        row["output"] = output
    said = model.get("input") or (model.get("modalities") or {}).get("input") or ["text"]
    if reads := [READS[kind] for kind in READS if kind in said]:
        row["reads"] = reads
    cost, repriced = _cost(name, model.get("cost") or {}, newer)
    if cost:
        row["cost"] = cost
    if repriced:
        row["repriced"] = True
        counts["repriced"] += 1
    row.update(_abilities(model))
    other = _protocol_of(model, protocol)
    if other != protocol:
        row["speaks"] = other
    return row


def _abilities(model: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if model.get("reasoning"):
        yield "thinks", True
        options = model.get("reasoning_options") or []
        efforts = {value for option in options for value in option.get("values") or ()}
        known = [effort for effort in EFFORTS if effort in efforts]
        if known not in ([], ["none"]):  # a scale with nothing but off on it is a switch
            yield "efforts", known
        interleaved = model.get("interleaved")
        if isinstance(interleaved, Mapping) and interleaved.get("field"):
            yield "back", interleaved["field"]
    if model.get("tool_call") is False:
        yield "tools", False
    if isinstance(model.get("structured_output"), bool):
        yield "schemas", model["structured_output"]
    if model.get("temperature") is False:
        yield "temperature", False


def _cost(name: str, cost: Mapping[str, Any], newer: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """Input, cached input, output, in dollars for a million tokens; and whether the newer list changed them."""
    said = [_number(cost.get(kind)) for kind in ("input", "cache_read", "output")]
    found = [_number(price) for price in newer.get(name.lower()) or said]
    spent, cached, made = found
    if spent is None or made is None or (spent > 0 and made == 0):  # answers that cost nothing are ones not counted
        return [], False
    sound = cached if cached is not None and cached <= spent else None  # else it is the price of something else
    return [spent, sound, made], found != said


def _number(price: Any) -> int | float | None:
    if price is None:
        return None
    value = round(float(price), 6)
    return int(value) if value == int(value) else value


def _prices(providers: list[Any], day: str) -> dict[str, dict[str, list[Any]]]:
    """Provider → model → prices on that day. Only names that are given whole: a pattern may mean another model."""
    return {
        provider["id"]: {
            name.lower(): found
            for model in provider["models"]
            for found in [_price_on(model["prices"], day)]
            for name in (model["id"], *_equals(model["match"]))
            if found[0] is not None and found[2] is not None
        }
        for provider in providers
    }


def _equals(match: Mapping[str, Any]) -> Iterator[str]:
    if "equals" in match:
        yield match["equals"]
    for inner in match.get("or") or ():
        yield from _equals(inner)


def _price_on(prices: Any, day: str) -> list[Any]:
    """The last price that had begun; of those that hang on the hour, the dearest: better too much than too little."""
    conditional = [{"prices": prices}] if isinstance(prices, Mapping) else prices
    begun = [each for each in conditional if (each.get("constraint") or {}).get("start_date", "") <= day]
    of_the_day = [each for each in begun if "start_time" not in (each.get("constraint") or {})]
    hourly = [each for each in begun if "start_time" in (each.get("constraint") or {})]
    usable = [*of_the_day[-1:], *hourly] or conditional[:1]
    return max((_plain(each["prices"]) for each in usable), key=lambda found: (found[0] or 0, found[2] or 0))


def _plain(prices: Mapping[str, Any]) -> list[Any]:
    """The price of the first tier: that of requests of an ordinary length."""
    found = [prices.get(key) for key in ("input_mtok", "cache_read_mtok", "output_mtok")]
    return [price["base"] if isinstance(price, Mapping) else price for price in found]


if __name__ == "__main__":
    main()
