"""What every section of a configuration is made of: kinds of values, and a base that shows no secret."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from isthmus.values.quantities import DURATION, SIZE
from isthmus.values.redact import redact

Seconds = Annotated[float, Meta(ge=0, extra={"quantity": DURATION})]
"""A number of seconds, or text such as "30s", "5m", "1h30m"."""
Timeout = Annotated[float, Meta(gt=0, extra={"quantity": DURATION})]
Bytes = Annotated[int, Meta(ge=0, extra={"quantity": SIZE})]
"""A number of bytes, or text such as "10MB" (millions) or "10MiB" (2^20)."""
Count = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(min_length=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: prints itself without secrets."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, redact(name, getattr(self, name))) for name in self.__struct_fields__]
