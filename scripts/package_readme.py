"""The readme as PyPI shows it: README.md, its links to files of the repository made absolute. Hatchling calls this.

In: the metadata of a build. Out: the same, with `readme`. Links lead to the files as they were at this version, so that
the page of an old release speaks of the old release.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PARTS: Final = re.compile(
    r"^```.*?^```$"
    r"|(?P<mark>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*)\]\((?P<target>[^)\s]+)\)"
    r"|(?P<before><(?P<tag>img|a|source)\b[^>]*?\b(?:src|href|srcset)=\")(?P<inside>[^\"]+)"
    r"|`[^`\n]*`",
    re.MULTILINE | re.DOTALL,
)
"""Code, links, and the few tags that lead somewhere; whichever begins first. A link may have code in its words."""


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute_links(text, metadata["urls"]["Repository"], f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute_links(text: str, repository: str, tag: str) -> str:
    """Outside of code. A picture is asked for as bytes, everything else as a page."""

    def lead(target: str, picture: bool) -> str:
        if re.match(r"[a-z]+:|#|//", target):
            return target
        return f"{repository}/{'raw' if picture else 'blob'}/{tag}/{target.removeprefix('./')}"

    def replace(found: re.Match[str]) -> str:
        if found["target"]:
            words = _PARTS.sub(replace, found["words"])  # a picture may be a link itself
            return f"{found['mark']}[{words}]({lead(found['target'], found['mark'] == '!')})"
        if found["inside"]:
            return found["before"] + lead(found["inside"], found["tag"] != "a")
        return found[0]

    return _PARTS.sub(replace, text)
