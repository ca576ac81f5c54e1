"""The guard lives in `bench/speed/`, where anyone can run it alone; here it runs with every `make test`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
