"""`ordercast`, and `python -m ordercast`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Ctrl-C may come before there is anything to interrupt."""
    try:
        from ordercast.cli import main as act

        return act()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
