"""The data of tool planning: made once per request, consumed by builder and assembler alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityDiagnostic
from isthmus.bridge.types.managed import Listing, ManagedKind
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused
from isthmus.protocol.items import CallItem
from isthmus.protocol.json import JsonObject


class CatalogTool(msgspec.Struct, frozen=True):
    """One tool the client offered, wherever it was declared, with namespaces already opened."""

    path: str
    """Where it stands in the request: `tools[3]`, `tools[1].tools[0]`, `input[0].tools[2]`."""
    type: str
    name: str
    namespace: str | None
    tool: JsonObject
    """The client's own declaration; a field that is `null` says nothing and is left out."""
    namespace_description: str = ""
    deferred: bool = False
    """Whether its declaration may wait for a search to find it."""


class ToolIdentity(msgspec.Struct, frozen=True):
    requested_name: str
    requested_type: str
    provider_name: str
    provider_type: str
    namespace: str | None = None
    tool: JsonObject = {}
    """The client's own declaration: original schema, grammar."""
    managed: ManagedKind | None = None
    """What the host runs itself, if it does: the model calls a function, the client never has to answer."""
    asks: bool = False
    """Whether the user has to approve each call first."""


class ToolIdentityMap:
    """Provider name ↔ requested tool. Two different tools can never share a provider name."""

    __slots__ = ("_by_provider", "_by_request")

    def __init__(self, identities: tuple[ToolIdentity, ...] = ()) -> None:
        self._by_provider: dict[str, ToolIdentity] = {}
        self._by_request: dict[tuple[str | None, str], ToolIdentity] = {}
        for identity in identities:
            known = self._by_provider.setdefault(identity.provider_name, identity)
            if known != identity:
                raise RequestRefused(
                    f"tools `{known.requested_name}` and `{identity.requested_name}` both become "
                    f"`{identity.provider_name}` upstream; rename one of them",
                    code=BRIDGE_REQUEST_UNSUPPORTED_PARAMETER,
                    param="tools",
                )
            self._by_request.setdefault((identity.namespace, identity.requested_name), identity)

    def __iter__(self) -> Iterator[ToolIdentity]:
        return iter(self._by_provider.values())

    def __len__(self) -> int:
        return len(self._by_provider)

    def by_provider_name(self, name: str) -> ToolIdentity | None:
        """The tool the provider means; exact name only (see `restore` for lenient spellings)."""
        return self._by_provider.get(name)

    def by_request(self, name: str, namespace: str | None = None) -> ToolIdentity | None:
        return self._by_request.get((namespace, name))


class ToolDeclarationPlan(msgspec.Struct, frozen=True):
    """One tool's fate: its decision and, unless it is ignored, what the provider is told."""

    source: CatalogTool
    decision: CompatibilityDecision
    identity: ToolIdentity | None = None
    description: str = ""
    parameters: JsonObject | None = None
    """The projected schema the provider gets; the original stays in `source.tool`."""
    strict: bool | None = None
    fields: JsonObject = {}
    """The whole declaration of a tool that is not a function upstream (`web_search`, `retrieval`, `mcp`)."""


class ToolChoicePlan(msgspec.Struct, frozen=True):
    """The resolved choice. `mode` is `omit` when nothing is sent upstream."""

    mode: Literal["omit", "none", "auto", "required", "named"] = "omit"
    identity: ToolIdentity | None = None
    decision: CompatibilityDecision | None = None
    keep: frozenset[str] | None = None
    """Provider names that the list is narrowed to, and whose calls may reach the client; `None`: all of them."""
    instruction: str = ""
    """What the system message has to say where the mode alone cannot carry the choice."""


class ToolPlan(msgspec.Struct, frozen=True):
    declarations: tuple[ToolDeclarationPlan, ...] = ()
    """Only those that are really sent, in order."""
    identities: ToolIdentityMap = msgspec.field(default_factory=ToolIdentityMap)
    """Every tool that survived, also where the choice sends none: past calls in the history still need their names."""
    choice: ToolChoicePlan = ToolChoicePlan()
    decisions: tuple[CompatibilityDecision, ...] = ()
    deferred: tuple[ToolDeclarationPlan, ...] = ()
    """Those that are sent once the model has searched for them."""
    listings: Mapping[str, Listing] = {}
    """By label: MCP servers whose tools run here."""
    written: dict[str, list[JsonObject]] = msgspec.field(default_factory=dict)
    """The declarations as a dialect writes them, by its name: the same for every request with this plan."""


class ProviderCall(msgspec.Struct, frozen=True):
    id: str
    name: str
    arguments: str


class RestoredCall(msgspec.Struct, frozen=True):
    """A finished output item of the type the client asked for, and what had to be said about it."""

    item: CallItem
    diagnostics: tuple[CompatibilityDiagnostic, ...] = ()
