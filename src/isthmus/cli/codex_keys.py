"""The keys in Codex's configuration that are ours, what they are set to, and the comments that stand beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from isthmus.cli.codex_document import KeyPath, Statement, parse_document, read_document, written_value
from isthmus.errors import ConfigError

FILE: Final = "config.toml"
CATALOGUE: Final = "isthmus-models.json"

PROVIDER: Final = "isthmus"
PROVIDERS: Final = "model_providers"
TABLE: Final[KeyPath] = (PROVIDERS, PROVIDER)
ROOT_KEYS: Final = ("model", "model_provider", "model_catalog_json")
SEARCH: Final = "web_search"
"""Set where the gateway searches and the user has said nothing of it: by itself Codex asks only for what is cached."""
TABLE_KEYS: Final = (
    *("name", "base_url", "wire_api", "env_key", "env_key_instructions", "experimental_bearer_token"),
    *("supports_websockets", "supports_standalone_web_search"),
)
NAME: Final = "Isthmus"
HEADERS: Final = "http_headers"
ACTOR: Final = "x-openai-actor-authorization"
"""A header without which Codex offers its image tool only to who is logged in at OpenAI; any value will do
(seen with 0.166). It is ours alone: other headers that somebody has put beside it are not."""
Values = Mapping[str, str | bool | Mapping[str, str]]

MARK: Final = "# isthmus codex setup: `isthmus codex setup --undo` takes this out again"
JOINED: Final = " (joined)"
"""After a mark: before us, the file had no line end at its end."""
OLD_MARKS: Final = ("# >>> isthmus codex setup", "# <<< isthmus codex setup")
"""What version 0.1.0 wrote around its lines."""
OURS: Final = "  # isthmus codex setup"
"""Behind a key that may just as well be the user's own."""
KEPT: Final = "# isthmus keeps: "
"""Before a statement that the user had where ours is now."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What Codex is told about the gateway."""

    base_url: str
    model: str
    catalogue: str
    """Path of the catalogue file."""
    key_env: str | None = None
    """The variable with a key for the gateway, where it wants one."""
    key: str = field(default="", repr=False)
    """The key itself, where no variable holds it."""
    websockets: bool = False
    """Whether Codex keeps one WebSocket for a conversation, in place of a request for each turn."""
    images: bool = False
    """Whether the gateway draws images, so that Codex's tool for them works."""

    search: bool = False
    """Whether the gateway searches the web."""
    live: bool = True
    """Whether Codex is told to use that; where the user has said something of it, it is not."""

    @property
    def root(self) -> dict[str, str]:
        keys = {"model": self.model, "model_provider": PROVIDER, "model_catalog_json": self.catalogue}
        return {**keys, SEARCH: "live"} if self.search and self.live else keys

    @property
    def provider(self) -> Values:
        block: dict[str, str | bool | Mapping[str, str]] = {
            "name": NAME,
            "base_url": self.base_url,
            "wire_api": "responses",
        }
        if self.key_env:
            block["env_key"] = self.key_env
            # What Codex says after the name of a variable that is not set.
            block["env_key_instructions"] = f"It holds your key for the Isthmus gateway: export {self.key_env}=..."
        elif self.key:
            block["experimental_bearer_token"] = self.key
        if self.websockets:
            block["supports_websockets"] = True
        if self.search:
            block["supports_standalone_web_search"] = True
        if self.images:
            block[HEADERS] = {ACTOR: PROVIDER}
        return block

    @property
    def lines(self) -> dict[str, str | bool]:
        """The same, each with its dotted key."""
        flat: dict[str, str | bool] = {}
        for key, value in self.provider.items():
            if isinstance(value, Mapping):
                flat |= {f"{key}.{name}": text for name, text in value.items()}
            else:
                flat[key] = value
        return flat


OWN_PATHS: Final = frozenset({*((*TABLE, key) for key in TABLE_KEYS), (*TABLE, HEADERS, ACTOR)})
"""Where our keys stand."""


def is_mark(statement: Statement) -> bool:
    return statement.comment.startswith((MARK.partition("`")[0], *OLD_MARKS))


def keep_statement(text: str, newline: str) -> str:
    """A statement of the user's as one line of comment; one of many lines becomes a string."""
    line = text.removesuffix("\n").removesuffix("\r")
    words = written_value(line) if "\n" in line else line
    return f"{KEPT}{words}{text[len(line) :] or newline}"


def kept_statement(statement: Statement) -> Statement | None:
    """The statement that a comment keeps; `None`: it is no such comment."""
    if not statement.comment.startswith(KEPT):
        return None
    line = statement.text.lstrip().removeprefix(KEPT)
    try:
        if line.startswith('"') and "value" in (whole := parse_document(f"value = {line}", FILE)):
            line = whole["value"] + line[len(line.rstrip()) :]
    except ConfigError:
        pass  # a statement whose key stands in quotes
    try:
        return next((each for each in read_document(line, FILE) if each.kind == "key"), None)
    except ConfigError:
        return None  # somebody's own words


def is_our_search(statement: Statement) -> bool:
    return statement.path == (SEARCH,) and statement.value == "live" and OURS.strip() in statement.text


def is_our_catalogue(statement: Statement) -> bool:
    if statement.path != ("model_catalog_json",) or not isinstance(statement.value, str):
        return False
    return re.split(r"[/\\]", statement.value)[-1] == CATALOGUE


def comparable(value: Any) -> Any:
    """The same value with floats as text: `nan` is not equal to itself."""
    match value:
        case dict():
            return {key: comparable(entry) for key, entry in value.items()}
        case list():
            return [comparable(entry) for entry in value]
        case float():
            return repr(value)
    return value
