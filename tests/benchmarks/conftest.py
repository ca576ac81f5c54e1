"""What is measured lives in `bench/`, where anyone can run it; here it is shown to work, and to be able to fail."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
