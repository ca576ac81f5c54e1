"""The shared servers of the flows."""

from __future__ import annotations

from flow_fixtures import _house, flow, special

__all__ = ["_house", "flow", "special"]
