"""Metadata as clients attach it to what is kept: sixteen short texts under short names, as OpenAI counts them."""

from __future__ import annotations

from typing import Any, Final

from isthmus.errors import RequestRefused

MAX_PAIRS: Final = 16
MAX_NAME: Final = 64
MAX_TEXT: Final = 512


def check_metadata(given: Any, param: str = "metadata") -> dict[str, str]:
    """The pairs; `None` is none. Refused where they are too many, too long or no texts."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise RequestRefused(f"`{param}` must be an object of texts, or null", code="invalid_type", param=param)
    if len(given) > MAX_PAIRS:
        raise _refused(param, f"has {len(given)} pairs; send {MAX_PAIRS} at most")
    for name, value in given.items():
        if len(name) > MAX_NAME:
            raise _refused(param, f"has a name of {len(name)} characters; {MAX_NAME} at most")
        if not isinstance(value, str):
            raise RequestRefused(f"`{param}.{name}` must be a text", code="invalid_type", param=f"{param}.{name}")
        if len(value) > MAX_TEXT:
            raise _refused(f"{param}.{name}", f"has {len(value)} characters; {MAX_TEXT} at most")
    return given


def _refused(param: str, what: str) -> RequestRefused:
    return RequestRefused(f"`{param}` {what}", code="invalid_value", param=param)
