"""The fuzzer lives in `bench/`, where anyone can let it run for hours; here it runs for seconds."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
