from __future__ import annotations

from typing import Final

VERSION: Final = "anthropic-version"
"""The header that every client of Anthropic's API sends."""
