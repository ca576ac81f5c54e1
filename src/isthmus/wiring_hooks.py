"""`[hooks]` → the operator's own code. Loaded only where there is some, at once: a mistake in it is told at start."""

from __future__ import annotations

from isthmus.bridge.limits import RequestLimits, take_limits
from isthmus.conduct.aside import Aside
from isthmus.config.schema import Config
from isthmus.hooks.bounded import Bounded
from isthmus.hooks.hooked import Hooks
from isthmus.hooks.load import load_hooks


def open_hooks(config: Config, aside: Aside | None = None) -> Hooks:
    settings = config.hooks
    return Hooks(
        load_hooks(settings.uses, settings.folder),
        Bounded(settings.timeout, settings.at_once),
        settings.on_failure,
        take_limits(RequestLimits, config.limits),
        aside,
    )
