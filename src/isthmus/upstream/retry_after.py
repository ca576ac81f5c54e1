"""How long a server asks us to wait, read from either form of `Retry-After`, within sane bounds."""

from __future__ import annotations

import email.utils
import re
from datetime import UTC
from typing import Final

from isthmus.errors import sane_wait

_NUMBER: Final = re.compile(r"\d{1,400}(\.\d{0,400})?(e\+?\d{1,3})?", re.IGNORECASE)


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait; `None` for what is neither a number nor a date."""
    told = (value or "").strip()
    if _NUMBER.fullmatch(told):
        return sane_wait(float(told))
    try:
        date = email.utils.parsedate_to_datetime(told)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)  # HTTP knows no other, and its oldest form does not say so
        return sane_wait(max(date.timestamp() - now, 0.0))
    except (ValueError, TypeError, OverflowError):
        return None
