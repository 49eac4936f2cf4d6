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
    """Where nobody listens (`>&-`) or speaks (`<&-`) there is nothing to complain of; and what is
    opened next must not get one of these numbers: libuv, for one, would not close it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
