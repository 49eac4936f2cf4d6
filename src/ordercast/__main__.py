"""`ordercast`, and `python -m ordercast`."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Ctrl-C may come before there is anything to interrupt."""
    try:
        _open_what_is_closed()
        from ordercast.cli import main as act

        return act()
    except KeyboardInterrupt:
        return 130


def _open_what_is_closed() -> None:
    """Where nobody listens (`>&-`) there is nothing to complain of; and what is opened next must
    not get the number of stdout."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "w"))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
