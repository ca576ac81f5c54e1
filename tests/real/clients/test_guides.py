"""What the guides for clients show is run as it stands, with the real package, against `isthmus serve`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from doc_pages import ROOT, Gateway, Shown, check_output, read_blocks, read_commands, read_programs
from node_scripts import installed_modules

pytestmark = pytest.mark.real

GUIDES = ROOT / "docs" / "guides" / "clients"
PAGES = sorted(GUIDES.glob("*.md"))
APART = {"agno.md", "litellm.md", "llamaindex.md", "strands.md"}
"""Their packages want other versions of what the others have, and are in an environment of their own."""
FRAMEWORKS = Path(sys.prefix) / "frameworks" / "bin" / "python"
OPENCODE = Path(sys.prefix) / "opencode" / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"


@pytest.mark.parametrize("shown", [each for page in PAGES for each in read_programs(page)], ids=str)
def test_a_program_in_python_prints_what_its_guide_shows(shown: Shown, gateway: Gateway) -> None:
    apart = shown.block.page.name in APART
    assert not apart or FRAMEWORKS.exists(), "run `make .venv/.installed-frameworks`"
    check_output(shown, gateway.run_program(shown.source, FRAMEWORKS if apart else sys.executable))


@pytest.mark.parametrize("shown", [each for page in PAGES for each in read_programs(page, "js")], ids=str)
def test_a_program_in_javascript_prints_what_its_guide_shows(shown: Shown, gateway: Gateway) -> None:
    check_output(shown, gateway.run_script(shown.source, installed_modules()))


@pytest.mark.skipif(not OPENCODE.exists(), reason="needs `make .venv/.installed-opencode`, on Linux")
def test_opencode_does_its_work_with_the_file_that_its_guide_shows(gateway: Gateway, tmp_path: Path) -> None:
    page = GUIDES / "opencode.md"
    [file] = [block.text for block in read_blocks(page) if block.language == "json"]
    (tmp_path / "opencode.json").write_text(gateway.here(file))
    (gateway.home / "bin").mkdir(exist_ok=True)
    shutil.copy(OPENCODE, gateway.home / "bin" / "opencode")
    for shown in read_commands(page):
        check_output(shown, gateway.run_command(shown.source, tmp_path))
