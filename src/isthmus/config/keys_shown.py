"""Where a provider's key comes from, in words; never the key."""

from __future__ import annotations

from isthmus.config.load import Reading
from isthmus.values.redact import redact


def key_words(reading: Reading, name: str) -> str:
    provider, path = reading.config.providers.get(name), ("providers", name, "api_key")
    if provider is None:
        return "none"
    if provider.api_keys:
        return f"{len(provider.api_keys)} keys"
    if any(place.api_key for place in provider.endpoints):
        return "per endpoint"
    if provider.api_key_file:
        return provider.api_key_file
    if not provider.api_key:
        return "missing" if any(problem.key == path for problem in reading.problems) else "none"
    reference = reading.written.get(path)
    if isinstance(reference, str):
        return str(redact("reference", reference))
    return "in the file" if path in reading.origins and reading.origins[path].kind == "file" else "given"
