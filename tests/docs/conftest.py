"""The makers of the pages are scripts; the tests import them as their command does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts" / "docs"))
