"""Who asks: made once at the door, first argument of everything that the gateway does."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus import ports
from isthmus.bridge.types.clients import ANY_CLIENT, ClientProfile
from isthmus.ports.keys import EVERYTHING, Grant


class Caller(msgspec.Struct, frozen=True):
    owner: str = ports.LOCAL
    """Whose responses these are: nobody sees another owner's."""
    key: str = ""
    """The id of the key that was shown, never the key; empty: none was needed."""
    scopes: frozenset[str] = frozenset()
    team: str = ""
    """The team that the key belongs to, if it does."""
    grant: Grant = EVERYTHING
    """What the key opens."""
    name: str = ""
    """What people call the key."""
    team_models: tuple[str, ...] = ()
    """What its team may use of all models; empty: any."""
    client: ClientProfile = ANY_CLIENT
    request: str = ""
    """The request that they ask it in (`req_…`)."""
    asked_at: float = 0.0
    """When all of that was there, by the gateway's clock; 0: nobody knows."""

    @property
    def behalf(self) -> ports.Behalf:
        """For whom upstreams are asked."""
        return ports.Behalf(self.owner, self.key, self.team)

    def speaking(self, client: ClientProfile) -> Caller:
        """The same, with another client; `replace` would take ten times as long, here and below."""
        who = (self.owner, self.key, self.scopes, self.team, self.grant, self.name, self.team_models, client)
        return Caller(*who, self.request, self.asked_at)

    def asking(self, request: str, at: float) -> Caller:
        """The same, in this request. Every one comes by here."""
        who = (self.owner, self.key, self.scopes, self.team, self.grant, self.name, self.team_models, self.client)
        return Caller(*who, request, at)


LOCAL: Final = Caller()
