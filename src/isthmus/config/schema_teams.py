"""What a configuration may say of a team: the keys of its members are one owner."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.config.section import Section


class TeamConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One team, under the name that keys are made for."""

    upstream_keys: Mapping[str, str] = {}
    """Provider → the key that it is shown for this team, in place of its own (see also `providers.NAME.keys_for`)."""
