"""The guide to traces shows what the commands print, in the order of the page, on a gateway of its own."""

from __future__ import annotations

import json
from pathlib import Path

from doc_pages import ROOT, Gateway, check_output, read_blocks, read_commands
from isthmus.config import load_config
from waiting import until

PAGE = ROOT / "docs" / "guides" / "traces.md"


def test_its_commands_print_what_it_shows(own_gateway: Gateway) -> None:
    asked = 0
    for shown in read_commands(PAGE):
        check_output(shown, own_gateway.run_command(shown.source))
        if shown.source.startswith("curl"):
            asked += 1
            until(lambda count=asked: traced(own_gateway) == count, "a request was never traced")  # type: ignore[misc]
    assert asked == 2


def traced(gateway: Gateway) -> int:
    """How many requests, once there are any: the file is made with the first."""
    found = json.loads(gateway.run_command("isthmus trace list --json 2>/dev/null || echo '{\"traces\": []}'"))
    return len(found["traces"])


def test_its_configuration_is_whole(tmp_path: Path) -> None:
    (block,) = [block for block in read_blocks(PAGE) if block.language == "toml"]
    file = tmp_path / "isthmus.toml"
    file.write_text(block.text)
    assert load_config(file, environ={"HOME": str(tmp_path)}).config.trace.capture == "full"
