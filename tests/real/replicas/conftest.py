"""The check lives in `bench/`, where anyone can run it for longer; here it runs for half a minute."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
