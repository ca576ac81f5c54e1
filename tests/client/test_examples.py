"""Every example runs, offline, as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "client"
SAYS = {
    "approvals.py": ["approval_required", "ok: /tmp/old is gone", "denied:"],
    "limits_and_failures.py": ["did not finish within 0.1 s", "max_turns - but there is an answer: True", "Overloaded"],
    "quick_start.py": ["Sunny in Oslo, 21 °C"],
    "script.py": ["84"],
    "streaming_ui.py": ['[get_weather {"city":"Oslo"} …]', "[get_weather: Sunny in Oslo]", "2 turns"],
    "structured_output.py": ["Report: ['city', 'degrees', 'tags']"],
    "test_my_agent.py": ["the agent works"],
    "three_rungs.py": ["the model asks for: [('get_weather', {'city': 'Oslo'})]", "Sunny in Oslo"],
}


def test_every_example_is_listed_here() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_the_example_runs_and_says_what_it_promises(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    for words in SAYS[name]:
        assert words in done.stdout
