"""Every request field meets the provider's abilities here, once.

In: a request, the `ProviderCapabilities` of its target and the `Host`. Out: a `CompatibilityPlan` with exactly
one decision per field sent. Later stages carry decisions out; they never look at capabilities again.
"""

from __future__ import annotations

from isthmus.bridge.compat.gates import apply_allow_list, apply_strict
from isthmus.bridge.compat.planner import plan_bridge_compatibility

__all__ = ["apply_allow_list", "apply_strict", "plan_bridge_compatibility"]
